"""Opens a table as a PyArrow dataset.

Each of the dataset's fragments carries the guarantees that the index gives for its file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from pyzorder.engines import failures
from pyzorder.engines.guarantees import guarantees
from pyzorder.engines.selection import parsed_condition, select_files
from pyzorder.engines.staleness import seconds_of
from pyzorder.engines.tables import Table, arrow_system, open_table, without_garbage_collection
from pyzorder.index.predicates.conditions import NotUnderstood


@without_garbage_collection()
def open_dataset(
    path: str | os.PathLike[str],
    schema: pa.Schema | None,
    columns: Sequence[str] | None,
    format: str | None,
    max_staleness: str | float | timedelta | None,
    filesystem: Any,
    where: str | None = None,
) -> ds.Dataset:
    """Opens a table. The parameters are those of `pyzorder.dataset`.

    Raises:
        ZOrderError: see `pyzorder.dataset`.
    """
    staleness = seconds_of(max_staleness)
    _check_format(format)
    table = open_table(path, filesystem, staleness)
    if not table.files and schema is None:
        raise failures.no_files(table.location)
    file_format = format_of(table, format)
    system, scheme = arrow_system(table)
    if schema is None:
        schema = schema_of(table, file_format)
    if where is not None:
        with suppress(NotUnderstood):  # if it is not understood, all files are kept
            kept = select_files(table, parsed_condition(where)).kept
            table = replace(table, files=table.files.only(kept))
    fragments = [
        file_format.make_fragment(
            file.place[scheme:], filesystem=system, partition_expression=guarantee
        )
        for file, guarantee in zip(table.files, guarantees(table, schema, columns), strict=True)
    ]
    return ds.FileSystemDataset(fragments, schema, file_format, system)


def _check_format(format: str | None) -> None:
    if format is not None and format.lower() not in ("parquet", "orc"):
        raise failures.not_a_format(format)


def format_of(table: Table, format: str | None) -> ds.FileFormat:
    """Returns `format` or, if it is None, the format that the first file's name indicates."""
    if format is None and table.files and table.files[0].path.endswith(".orc"):
        format = "orc"
    return ds.OrcFileFormat() if (format or "").lower() == "orc" else ds.ParquetFileFormat()


def schema_of(table: Table, file_format: ds.FileFormat) -> pa.Schema:
    """Returns the columns of the first file, and the partition columns.

    As in Spark, a partition column replaces a column with the same name in the files.

    Raises:
        ZOrderError: the file cannot be read.
    """
    system, scheme = arrow_system(table)
    first = table.files[0]
    try:
        own = file_format.inspect(first.place[scheme:], filesystem=system)
    except (pa.ArrowException, OSError) as failure:
        reason = str(failure).splitlines()[0].rstrip(".")
        raise failures.unreadable(first.path, reason) from failure
    partitions = {
        column.name.lower(): pa.field(column.name, column.arrow_type) for column in table.partitions
    }
    fields = [partitions.pop(field.name.lower(), field) for field in own]
    return pa.schema([*fields, *partitions.values()])
