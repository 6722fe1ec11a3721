"""Opens a table as a PyArrow dataset.

Each of the dataset's fragments carries the guarantees that the index gives for its file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from pyzorder.engines import failures
from pyzorder.engines.columns import format_of, schema_of
from pyzorder.engines.guarantees import guarantees
from pyzorder.engines.selection import select_where
from pyzorder.engines.tables import (
    arrow_system,
    open_table,
    opening,
    place_of,
)
from pyzorder.text.durations import seconds_of


@opening
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
    staleness = seconds_of(max_staleness, "staleness")
    _check_format(format)
    table = open_table(path, filesystem, staleness)
    if not table.files and schema is None:
        raise failures.no_files(table.location)
    file_format = format_of(table, format)
    system, scheme = arrow_system(table)
    if schema is None:
        schema = schema_of(table, file_format)
    if where is not None:
        kept = select_where(table, where, schema=schema).kept
        table = replace(table, files=table.files.only(kept))
    fragments = [
        file_format.make_fragment(
            place_of(file)[scheme:], filesystem=system, partition_expression=guarantee
        )
        for file, guarantee in zip(table.files, guarantees(table, schema, columns), strict=True)
    ]
    return ds.FileSystemDataset(fragments, schema, file_format, system)


def _check_format(format: str | None) -> None:
    if format is not None and format.lower() not in ("parquet", "orc"):
        raise failures.not_a_format(format)
