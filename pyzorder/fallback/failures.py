"""Errors raised by the fallback. There is one function per failure.

The messages are in error_conditions.json.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from pyzorder.errors import ZOrderError, error

P = ParamSpec("P")
T = TypeVar("T")

#: Hadoop does not say why it cannot create a folder. If the command itself has just created the
#: parent folder, the reason is a lack of space.
_FULL = "No space left on device|Disk quota exceeded|Mkdirs failed to create"
_DENIED = "Permission denied|Operation not permitted|Read-only file system"
_EMPTY = "UNABLE_TO_INFER_SCHEMA"
_ABSENT = "PATH_NOT_FOUND|Path does not exist"
_DAMAGED = "Could not read footer|CANNOT_READ|FAILED_READ|is not a Parquet file|Malformed ORC"


def explained(command: Callable[P, T]) -> Callable[P, T]:
    """Decorator for commands that have a `table` parameter.

    It explains problems with the table's files, which Python, Java and Spark report in many ways.
    The decorated command raises a ZOrderError instead, with the condition ZORDER_NO_SPACE,
    ZORDER_NOT_WRITABLE, ZORDER_NO_FILES, ZORDER_PATH_NOT_FOUND or ZORDER_UNREADABLE_FILE.
    """

    @wraps(command)
    def explains(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except ZOrderError:
            raise
        except Exception as failure:
            table = inspect.signature(command).bind(*args, **kwargs).arguments["table"]
            for pattern, failed in (
                (_FULL, full),
                (_DENIED, not_writable),
                (_EMPTY, no_files),
                (_ABSENT, absent),
                (_DAMAGED, unreadable),
            ):
                said = re.search(f"({pattern}).*", str(failure))
                if said:
                    raise failed(table, said[0].rstrip(" .")) from failure
            raise

    return explains


def obstacle(table: str, reason: str) -> ZOrderError:
    """The table cannot be indexed.

    Args:
        reason: the table's `obstacle`.
    """
    return error("ZORDER_FALLBACK_TABLE.OBSTACLE", table=table, reason=reason)


def single_file(table: str) -> ZOrderError:
    """The path is a file instead of a table's folder."""
    return error("ZORDER_FALLBACK_TABLE.FILE", table=table)


def foreign(table: str, format: str) -> ZOrderError:
    """The folder belongs to a table in a format with its own log."""
    return error("ZORDER_FALLBACK_TABLE.FOREIGN", table=table, format=format)


def streaming_sink(path: str) -> ZOrderError:
    """The folder contains the file list of a streaming query."""
    return error("ZORDER_STREAMING_SINK", path=path)


def no_column(table: str, column: str, known: Sequence[str]) -> ZOrderError:
    """The column does not exist, or cannot have statistics.

    Args:
        known: the columns that can have statistics.
    """
    listed = ", ".join(known) or "none"
    return error("ZORDER_FALLBACK_TABLE.COLUMN", table=table, column=column, known=listed)


def unsupported_type(column: str, data_type: str) -> ZOrderError:
    """The fallback cannot cluster by columns of this type."""
    return error("ZORDER_FALLBACK_TABLE.TYPE", column=column, type=data_type)


def not_a_list(table: str, column: str) -> ZOrderError:
    """A string was given instead of a list of columns."""
    return error("ZORDER_FALLBACK_TABLE.TEXT", table=table, column=column)


def no_clustering_columns(table: str) -> ZOrderError:
    """No clustering columns are given, or a column is given twice."""
    return error("ZORDER_FALLBACK_TABLE.COLUMNS", table=table)


def bucketed(table: str) -> ZOrderError:
    """The table is bucketed, but DataFrame.write would not preserve its buckets."""
    return error("ZORDER_FALLBACK_TABLE.BUCKETED", table=table)


def unsupported_setting(table: str, setting: str, value: str, supported: str) -> ZOrderError:
    """The fallback does not support the value of a setting.

    Args:
        setting: the setting's name, without the prefix `spark.sql.zorder.optimize.`.
        supported: the only supported value.
    """
    return error(
        "ZORDER_FALLBACK_TABLE.SETTING",
        table=table,
        setting=setting,
        value=value,
        supported=supported,
    )


def not_a_size(size: str) -> ZOrderError:
    """The target file size is not a valid size."""
    return error("ZORDER_FALLBACK_TABLE.SIZE", size=size)


def not_external(table: str) -> ZOrderError:
    """The table is not external, so its location cannot be switched."""
    return error("ZORDER_FALLBACK_TABLE.NOT_EXTERNAL", table=table)


def path_not_found(path: str) -> ZOrderError:
    """The folder does not exist."""
    return error("ZORDER_PATH_NOT_FOUND", path=path)


def absent(table: str, said: str) -> ZOrderError:
    """Spark cannot find the folder.

    Args:
        said: Spark's message.
    """
    return path_not_found(table)


def no_files(table: str, said: str) -> ZOrderError:
    """The folder has no data files.

    Args:
        said: Spark's message.
    """
    return error("ZORDER_NO_FILES.OF_FORMAT", target=table)


def unfinished(folder: str, run: int) -> ZOrderError:
    """A run is moving the table's files, or was killed while moving them."""
    return error("ZORDER_FALLBACK_UNFINISHED", folder=folder, run=run)


def remote_writes(location: str) -> ZOrderError:
    """The fallback writes an index into a table's own folder only on local disks."""
    return error("ZORDER_FALLBACK_STORE.REMOTE", location=location)


def unreachable(location: str) -> ZOrderError:
    """The store cannot be reached."""
    return error("ZORDER_FALLBACK_STORE.UNREACHABLE", location=location)


def unseen(folder: str) -> ZOrderError:
    """This process cannot see the files that Spark has written."""
    return error("ZORDER_FALLBACK_STORE.UNSEEN", folder=folder)


def target_claimed(folder: str) -> ZOrderError:
    """Another copy is being written to the same folder."""
    return error("ZORDER_FALLBACK_TARGET.CLAIMED", folder=folder)


def target_overlaps(folder: str, location: str) -> ZOrderError:
    """The copy's folder is inside the table's folder, or contains it."""
    return error("ZORDER_FALLBACK_TARGET.OVERLAPS", folder=folder, location=location)


def target_not_empty(folder: str) -> ZOrderError:
    """The copy's folder is not empty."""
    return error("ZORDER_FALLBACK_TARGET.NOT_EMPTY", folder=folder)


def changed(table: str, copy: str) -> ZOrderError:
    """Another writer changed the table while it was being copied."""
    return error("ZORDER_CONFLICT.COPIED", table=table, copy=copy)


def row_count(table: str, read: int, written: int) -> ZOrderError:
    """The copy and the table have different numbers of rows, in total or in a partition."""
    return error("ZORDER_ROW_COUNT.COPY", table=table, read=read, written=written)


def undeclared(table: str, columns: list[str]) -> ZOrderError:
    """Files have columns that the table does not declare."""
    return error("ZORDER_UNDECLARED_COLUMNS.COPY", table=table, columns=", ".join(columns))


def full(table: str, said: str) -> ZOrderError:
    """The disk is full, or a quota is exhausted.

    Args:
        said: the system's message.
    """
    return error("ZORDER_NO_SPACE.FULL", target=table, reason=said)


def not_writable(table: str, said: str) -> ZOrderError:
    """The user has no permission to write.

    Args:
        said: the system's message.
    """
    return error("ZORDER_NOT_WRITABLE.TABLE", target=table, reason=said)


def unreadable(table: str, said: str) -> ZOrderError:
    """Spark cannot read a data file.

    Args:
        said: Spark's message.
    """
    return error("ZORDER_UNREADABLE_FILE.DAMAGED", path=table, reason=said)
