"""Errors raised by the functions for other engines. There is one function per failure.

The messages are in error_conditions.json.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from pyzorder.errors import ZOrderError, error, store_not_writable

#: The reason for which no engine can open a file that Python can open.
NOT_TEXT = "its name is not UTF-8"


def package_missing(package: str, extra: str) -> ZOrderError:
    """A package that a function needs is not installed.

    Args:
        extra: the extra of pyzorder-spark that installs it.
    """
    return error("ZORDER_ENGINE_MISSING", package=package, extra=extra)


def not_a_condition(text: str, reason: str) -> ZOrderError:
    """The text of `where` is not an SQL condition."""
    return error("ZORDER_NOT_A_CONDITION", text=text, reason=reason)


def not_a_format(value: str) -> ZOrderError:
    """The format is neither Parquet nor ORC."""
    return error("ZORDER_ENGINE_TABLE.FORMAT", format=value)


def orc_for_polars(path: str) -> ZOrderError:
    """Polars cannot read the table's ORC files."""
    return error("ZORDER_ENGINE_TABLE.ORC", path=path)


def orc_footers(path: str) -> ZOrderError:
    """The table has ORC files, but statistics are read only from the footers of Parquet files."""
    return error("ZORDER_ENGINE_TABLE.ORC_FOOTERS", path=path)


def not_local(path: str) -> ZOrderError:
    """The table is not on a local disk.

    On other stores, the index cannot be written, because PyArrow has no atomic create-if-absent.
    """
    return error("ZORDER_ENGINE_TABLE.NOT_LOCAL", path=path)


def already_indexed(path: str) -> ZOrderError:
    """Columns to index were passed, but the table already has an index."""
    return error("ZORDER_ENGINE_TABLE.INDEXED", path=path)


def no_column(path: str, column: str, known: Sequence[str]) -> ZOrderError:
    """A column to index does not exist, or cannot have statistics.

    Args:
        known: the columns that can have statistics.
    """
    listed = ", ".join(known) or "none"
    return error("ZORDER_ENGINE_TABLE.COLUMN", path=path, column=column, known=listed)


def unknown_column(path: str, column: str, known: Sequence[str]) -> ZOrderError:
    """A condition refers to a column that the table does not have.

    Args:
        known: columns that the user may have meant.
    """
    return error("ZORDER_UNKNOWN_COLUMN", table=path, column=column, known=", ".join(known))


def not_written(folder: str, failure: OSError) -> ZOrderError:
    """The index cannot be written."""
    if failure.errno in (errno.ENOSPC, errno.EDQUOT):
        return error("ZORDER_NO_SPACE.FULL", target=folder, reason=failure.strerror)
    return store_not_writable(folder, failure.strerror or str(failure))


def not_a_zone(value: str) -> ZOrderError:
    """The time zone does not exist."""
    return error("ZORDER_ENGINE_TABLE.ZONE", zone=value)


def path_not_found(path: str) -> ZOrderError:
    """The folder does not exist."""
    return error("ZORDER_PATH_NOT_FOUND", path=path)


def single_file(path: str) -> ZOrderError:
    """The path is a file instead of a table's folder."""
    return error("ZORDER_ENGINE_TABLE.FILE", path=path)


def foreign(path: str, format: str) -> ZOrderError:
    """The folder belongs to a table in a format that has its own log."""
    return error("ZORDER_ENGINE_TABLE.FOREIGN", path=path, format=format)


def streaming_sink(path: str) -> ZOrderError:
    """The folder contains the file list of a streaming query."""
    return error("ZORDER_STREAMING_SINK", path=path)


def no_files(path: str) -> ZOrderError:
    """The folder has no data files, so the table's columns are unknown."""
    return error("ZORDER_NO_FILES.OF_FORMAT", target=path)


def other_format(path: str) -> ZOrderError:
    """The folder has files, but none of them is a Parquet or ORC file."""
    return error("ZORDER_NO_FILES.ANY", target=path)


def unreadable(path: str, reason: str) -> ZOrderError:
    """A data file's schema cannot be read.

    Args:
        reason: PyArrow's message.
    """
    return error("ZORDER_UNREADABLE_FILE.DAMAGED", path=path, reason=reason)


def unreachable(path: str, reason: str) -> ZOrderError:
    """The store cannot be reached, or PyArrow does not support it.

    Args:
        reason: the message of PyArrow or fsspec.
    """
    return error("ZORDER_ENGINE_TABLE.STORE", path=path, reason=reason)


def not_readable(path: str, reason: str) -> ZOrderError:
    """The user may not read a file or a folder."""
    return error("ZORDER_NOT_READABLE", path=path, reason=reason)


def keeps_changing(path: str) -> ZOrderError:
    """The journal changed during every attempt to list the table's files."""
    return error("ZORDER_CONFLICT.CHANGED", what=f"the journal of {path} kept changing")


def store_failed(path: str, failure: BaseException) -> ZOrderError:
    """The store failed, or a file has contents that a library cannot read."""
    return error("ZORDER_STORE_FAILED", target=path, reason=first_line(failure))


def first_line(failure: BaseException) -> str:
    """Returns the first line of an exception's message or, if it has none, the exception's name."""
    return next(iter(str(failure).splitlines()), type(failure).__name__).rstrip(".")


def partition_folders(path: str) -> ZOrderError:
    """The partition folders do not share a common parent folder."""
    return error("ZORDER_PARTITION_FOLDERS.PLACES", path=path)


def partition_columns(path: str, found: Sequence[Sequence[str]]) -> ZOrderError:
    """The names of the partition folders contain different columns.

    Args:
        found: the columns of two of the folders.
    """
    first, second = (", ".join(names) for names in found)
    return error("ZORDER_PARTITION_FOLDERS.COLUMNS", path=path, first=first, second=second)


def partition_name(path: str, folder: str) -> ZOrderError:
    """A folder's name has an equals sign but no column or no value."""
    return error("ZORDER_PARTITION_FOLDERS.NAME", path=path, folder=folder)
