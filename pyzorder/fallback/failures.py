"""What the fallback refuses, a function each; the sentences are in error_conditions.json."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from pyzorder.errors import ZOrderError, error

P = ParamSpec("P")
T = TypeVar("T")

#: Of a folder that cannot be made Hadoop does not say why: in one that a command has just made
#: itself it is for want of room.
_FULL = "No space left on device|Disk quota exceeded|Mkdirs failed to create"
_DENIED = "Permission denied|Operation not permitted|Read-only file system"
_EMPTY = "UNABLE_TO_INFER_SCHEMA"
_ABSENT = "PATH_NOT_FOUND|Path does not exist"
_DAMAGED = "Could not read footer|CANNOT_READ|FAILED_READ|is not a Parquet file|Malformed ORC"


def explained(command: Callable[P, T]) -> Callable[P, T]:
    """A command on a `table` that says in one sentence what is wrong with its folder or files, for
    Python, Java and Spark say it in many ways. Raises ZOrderError: ZORDER_NO_SPACE,
    ZORDER_NOT_WRITABLE, ZORDER_NO_FILES, ZORDER_PATH_NOT_FOUND, ZORDER_UNREADABLE_FILE."""

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
    """A table that cannot be indexed. `reason`: its `obstacle`."""
    return error("ZORDER_FALLBACK_TABLE.OBSTACLE", table=table, reason=reason)


def single_file(table: str) -> ZOrderError:
    """A file where the folder of a table is needed."""
    return error("ZORDER_FALLBACK_TABLE.FILE", table=table)


def foreign(table: str, format: str) -> ZOrderError:
    """A folder with the log of a table format."""
    return error("ZORDER_FALLBACK_TABLE.FOREIGN", table=table, format=format)


def streaming_sink(path: str) -> ZOrderError:
    """A folder with a streaming query's list of files."""
    return error("ZORDER_STREAMING_SINK", path=path)


def no_column(table: str, column: str, known: Sequence[str]) -> ZOrderError:
    """A column that has no statistics. `known`: those that have."""
    listed = ", ".join(known) or "none"
    return error("ZORDER_FALLBACK_TABLE.COLUMN", table=table, column=column, known=listed)


def unsupported_type(column: str, data_type: str) -> ZOrderError:
    """A clustering column of a type that the fallback does not order."""
    return error("ZORDER_FALLBACK_TABLE.TYPE", column=column, type=data_type)


def not_a_list(table: str, column: str) -> ZOrderError:
    """A text in place of a list of columns."""
    return error("ZORDER_FALLBACK_TABLE.TEXT", table=table, column=column)


def no_clustering_columns(table: str) -> ZOrderError:
    """No columns to cluster by, or one that is named twice."""
    return error("ZORDER_FALLBACK_TABLE.COLUMNS", table=table)


def bucketed(table: str) -> ZOrderError:
    """A table with buckets, which DataFrame.write does not keep."""
    return error("ZORDER_FALLBACK_TABLE.BUCKETED", table=table)


def unsupported_setting(table: str, setting: str, value: str, supported: str) -> ZOrderError:
    """A way of laying files out that the fallback does not know. `setting`: of zorder.optimize."""
    return error(
        "ZORDER_FALLBACK_TABLE.SETTING",
        table=table,
        setting=setting,
        value=value,
        supported=supported,
    )


def not_a_size(size: str) -> ZOrderError:
    """A target size that is none."""
    return error("ZORDER_FALLBACK_TABLE.SIZE", size=size)


def not_external(table: str) -> ZOrderError:
    """A table whose location cannot be switched."""
    return error("ZORDER_FALLBACK_TABLE.NOT_EXTERNAL", table=table)


def path_not_found(path: str) -> ZOrderError:
    """A folder that is not there."""
    return error("ZORDER_PATH_NOT_FOUND", path=path)


def absent(table: str, said: str) -> ZOrderError:
    """A folder that Spark does not find. `said`: by Spark."""
    return path_not_found(table)


def no_files(table: str, said: str) -> ZOrderError:
    """A folder without data files. `said`: by Spark."""
    return error("ZORDER_NO_FILES.OF_FORMAT", target=table)


def unfinished(folder: str, run: int) -> ZOrderError:
    """A reader came while files change places, or after a writer died there."""
    return error("ZORDER_FALLBACK_UNFINISHED", folder=folder, run=run)


def remote_writes(location: str) -> ZOrderError:
    """An index in a table's own folder is for local disks only."""
    return error("ZORDER_FALLBACK_STORE.REMOTE", location=location)


def unreachable(location: str) -> ZOrderError:
    """No way to the store."""
    return error("ZORDER_FALLBACK_STORE.UNREACHABLE", location=location)


def unseen(folder: str) -> ZOrderError:
    """Spark's files are not there for this process."""
    return error("ZORDER_FALLBACK_STORE.UNSEEN", folder=folder)


def target_claimed(folder: str) -> ZOrderError:
    """Another copy is written to the same folder."""
    return error("ZORDER_FALLBACK_TARGET.CLAIMED", folder=folder)


def target_overlaps(folder: str, location: str) -> ZOrderError:
    """The copy's folder is within the table's, or around it."""
    return error("ZORDER_FALLBACK_TARGET.OVERLAPS", folder=folder, location=location)


def target_not_empty(folder: str) -> ZOrderError:
    """Something is in the copy's folder already."""
    return error("ZORDER_FALLBACK_TARGET.NOT_EMPTY", folder=folder)


def changed(table: str, copy: str) -> ZOrderError:
    """Others wrote to the table while it was copied."""
    return error("ZORDER_CONFLICT.COPIED", table=table, copy=copy)


def row_count(table: str, read: int, written: int) -> ZOrderError:
    """The copy does not hold the rows of the table."""
    return error("ZORDER_ROW_COUNT.COPY", table=table, read=read, written=written)


def undeclared(table: str, columns: list[str]) -> ZOrderError:
    """Files have columns that queries of the table do not read."""
    return error("ZORDER_UNDECLARED_COLUMNS.COPY", table=table, columns=", ".join(columns))


def full(table: str, said: str) -> ZOrderError:
    """The disk has no room left, or a quota is used up. `said`: by the system."""
    return error("ZORDER_NO_SPACE.FULL", target=table, reason=said)


def not_writable(table: str, said: str) -> ZOrderError:
    """A permission is missing. `said`: by the system."""
    return error("ZORDER_NOT_WRITABLE.TABLE", target=table, reason=said)


def unreadable(table: str, said: str) -> ZOrderError:
    """Spark cannot read a data file. `said`: by Spark."""
    return error("ZORDER_UNREADABLE_FILE.DAMAGED", path=table, reason=said)
