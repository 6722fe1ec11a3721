"""What the fallback refuses, a sentence each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from pyzorder.errors import ZOrderError

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
            for pattern, error in (
                (_FULL, full),
                (_DENIED, not_writable),
                (_EMPTY, no_files),
                (_ABSENT, absent),
                (_DAMAGED, unreadable),
            ):
                said = re.search(f"({pattern}).*", str(failure))
                if said:
                    raise error(table, said[0].rstrip(" .")) from failure
            raise

    return explains


def refused(target: str, reason: str) -> ZOrderError:
    """A table that the fallback does not index or optimize."""
    return ZOrderError("ZORDER_FALLBACK_TABLE", f"{target} {reason}.")


def path_not_found(path: str) -> ZOrderError:
    """A folder that is not there."""
    return ZOrderError(
        "ZORDER_PATH_NOT_FOUND", f"The path {path} does not exist. Check its spelling."
    )


def absent(table: str, said: str) -> ZOrderError:
    """A folder that Spark does not find. `said`: by Spark."""
    return path_not_found(table)


def no_files(table: str, said: str) -> ZOrderError:
    """A folder without data files. `said`: by Spark."""
    return ZOrderError(
        "ZORDER_NO_FILES",
        f"There is no data file of the format asked for in {table}: write the table first, or pass "
        "the format of its files.",
    )


def unfinished(folder: str, run: int) -> ZOrderError:
    """A reader came while files change places, or after a writer died there."""
    return ZOrderError(
        "ZORDER_FALLBACK_UNFINISHED",
        f"Run {run} on {folder} is replacing files, or was killed while it did. Read the table "
        "again in a moment. If the run was killed, any OPTIMIZE or VACUUM on the table with "
        "pyzorder's jar completes or undoes it.",
    )


def remote_writes(location: str) -> ZOrderError:
    """An index in a table's own folder is for local disks only."""
    return ZOrderError(
        "ZORDER_FALLBACK_STORE",
        f"Without the jar, pyzorder indexes only tables on this machine's file system, and "
        f"{location} is not: write a copy with fallback.optimize, which has an index, or run "
        "CREATE SKIPPING INDEX in a Spark with pyzorder's jar.",
    )


def unreachable(location: str) -> ZOrderError:
    """No way to the store."""
    return ZOrderError(
        "ZORDER_FALLBACK_STORE",
        f"The store of {location} cannot be reached from here. A Spark Connect client needs a "
        "mount of it, or credentials that PyArrow finds.",
    )


def unseen(folder: str) -> ZOrderError:
    """Spark's files are not there for this process."""
    return ZOrderError(
        "ZORDER_FALLBACK_STORE",
        f"Spark has written a copy to {folder}, but this process does not see its files as they "
        "were written. A Spark Connect client must see the same store as its server. Delete the "
        "copy, and check that nothing else writes there.",
    )


def target(folder: str, reason: str) -> ZOrderError:
    """The copy's folder cannot be written to."""
    return ZOrderError(
        "ZORDER_FALLBACK_TARGET",
        f"{folder} {reason}. Name a folder that does not exist yet, or first delete what an "
        "interrupted copy left there.",
    )


def conflict(what: str) -> ZOrderError:
    """Others changed the table while it was read."""
    return ZOrderError(
        "ZORDER_CONFLICT", f"{what} while it was copied. The table is unchanged; retry."
    )


def changed(table: str, copy: str) -> ZOrderError:
    """Others wrote to the table while it was copied."""
    return ZOrderError(
        "ZORDER_CONFLICT",
        f"Files of {table} were added, replaced or deleted while it was copied. The copy in {copy} "
        "has the rows of before, and the table keeps its location. Delete the copy, and retry "
        "while nothing writes to the table.",
    )


def row_count(table: str, read: int, written: int) -> ZOrderError:
    """The copy does not hold the rows of the table."""
    return ZOrderError(
        "ZORDER_ROW_COUNT",
        f"{table} holds {read} rows, its copy {written}, or some of them in other partitions. The "
        "table is unchanged. Check whether anything else writes to either, delete the copy, and "
        "retry.",
    )


def undeclared(table: str, columns: list[str]) -> ZOrderError:
    """Files have columns that queries of the table do not read."""
    return ZOrderError(
        "ZORDER_UNDECLARED_COLUMNS",
        f"Files of {table} have columns that it does not declare ({', '.join(columns)}), and "
        "a copy would not have them. Add them to the table; those of a path are found with "
        "spark.sql.parquet.mergeSchema (or orc).",
    )


def full(table: str, said: str) -> ZOrderError:
    """The disk has no room left, or a quota is used up. `said`: by the system."""
    return ZOrderError(
        "ZORDER_NO_SPACE",
        f"There is no room for what this command writes for {table}: {said}. Every row of the "
        "table is as it was. Free some space, then retry.",
    )


def not_writable(table: str, said: str) -> ZOrderError:
    """A permission is missing. `said`: by the system."""
    return ZOrderError(
        "ZORDER_NOT_WRITABLE",
        f"This command must create files for {table}, and may not: {said}. Every row of the table "
        "is as it was. Grant that permission, then retry.",
    )


def unreadable(table: str, said: str) -> ZOrderError:
    """Spark cannot read a data file. `said`: by Spark."""
    return ZOrderError(
        "ZORDER_UNREADABLE_FILE",
        f"A file of {table} cannot be read: {said}. The table is unchanged. Repair or remove what "
        "is damaged, then retry.",
    )
