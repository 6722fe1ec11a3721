"""The functions for engines other than Spark. Each function imports what it needs when it is
called."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyzorder.engines import failures

if TYPE_CHECKING:
    import polars
    import pyarrow.dataset


def files(
    path: str | os.PathLike[str],
    where: str | None = None,
    *,
    time_zone: str | None = None,
    max_staleness: str | float | timedelta | None = None,
    filesystem: Any = None,
) -> list[str]:
    """Returns a table's data files that may have rows for which a condition is TRUE.

    Even while an OPTIMIZE runs, or after one has been killed, the files contain each matching
    row of the table exactly once. Needs neither Spark nor Java.

    Args:
        path: the folder of a table, or of one of its partitions; a local path or a URI.
        where: a condition in Spark SQL. Parts that pyzorder does not support do not exclude any
            files. By default, all files are returned.
        time_zone: the time zone for timestamps in `where` that do not specify one. By default, such
            timestamps do not exclude any files.
        max_staleness: the maximum age of the information about the files, such as `30min`. If the
            index is recent enough, the folder is not listed. By default, it is always listed.
        filesystem: the PyArrow or fsspec file system that contains the path.

    Returns:
        Paths that PyArrow, pandas, DuckDB and Polars can read. If `filesystem` is given, these are
        paths in that file system.

    Raises:
        ZOrderError: the path is not the folder of a plain table, `where` is not a condition, or
            `where` refers to a column that the table does not have.
    """
    with needed_packages("arrow"):
        from pyzorder.engines.matching_files import matching_files
    return matching_files(path, where, time_zone, max_staleness, filesystem).paths


def dataset(
    path: str | os.PathLike[str],
    where: str | None = None,
    *,
    schema: pyarrow.Schema | None = None,
    columns: Sequence[str] | None = None,
    format: str | None = None,
    max_staleness: str | float | timedelta | None = None,
    filesystem: Any = None,
) -> pyarrow.dataset.Dataset:
    """Returns a PyArrow dataset that uses a table's index to skip files.

    Minima and maxima are attached to each of the dataset's files. Engines that push filters down
    to a dataset, such as PyArrow, DuckDB and Polars, do not open files whose bounds show that no
    row can match. The files are listed when this function is called.

    Args:
        path: the folder of a table, or of one of its partitions; a local path or a URI.
        where: a condition in Spark SQL, as in `files`. The dataset then omits the files that
            cannot contain a matching row, so all queries on it must include this condition. Unlike
            pushed-down filters, this condition is also checked against the index's sketches.
        schema: the columns to read. As in Spark, the default is the columns of the first file,
            followed by the partition columns.
        columns: the columns whose bounds are attached to the files. By default, these are the
            columns by which most files are clustered, followed by other columns. The number of
            columns is limited so that the dataset opens quickly.
        format: parquet or orc. By default, it is inferred from the first file's name.
        max_staleness: the maximum age of the information about the files, such as `30min`. If the
            index is recent enough, the folder is not listed. By default, it is always listed.
        filesystem: the PyArrow or fsspec file system that contains the path.

    Raises:
        ZOrderError: the path is not the folder of a plain table, or has no data files; or `where`
            is not a condition, or refers to a column that the table does not have.
    """
    with needed_packages("arrow"):
        from pyzorder.engines.arrow_dataset import open_dataset
    return open_dataset(path, schema, columns, format, max_staleness, filesystem, where)


def scan_polars(
    path: str | os.PathLike[str],
    *,
    max_staleness: str | float | timedelta | None = None,
) -> polars.LazyFrame:
    """Returns a Polars LazyFrame that uses a table's index to skip files.

    The files are listed when this function is called. When the frame is collected, Polars passes
    its filters down, and only files that may have matching rows are opened.

    Args:
        path: the folder of a table of Parquet files, or of one of its partitions; a local path or
            a URI.
        max_staleness: the maximum age of the information about the files, such as `30min`. If the
            index is recent enough, the folder is not listed. By default, it is always listed.

    Raises:
        ZOrderError: the path is not the folder of a plain table of Parquet files, or has no data
            files.
    """
    with needed_packages("polars"):
        from pyzorder.engines.polars_source import open_frame
    return open_frame(path, max_staleness)


@contextmanager
def needed_packages(extra: str) -> Iterator[None]:
    """If a package is missing, raises an error naming the extra that installs it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        name = missing.name or "a package"
        if name.startswith("pyzorder"):
            raise
        raise failures.package_missing(name.partition(".")[0], extra) from None
