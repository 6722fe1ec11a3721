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
_DAMAGED = "Could not read footer|CANNOT_READ|FAILED_READ|is not a Parquet file|Malformed ORC"


def told(command: Callable[P, T]) -> Callable[P, T]:
    """A command on a `table` that says in one sentence what is wrong with its folder or files, for
    Python, Java and Spark say it in many ways. Raises ZOrderError: ZORDER_NO_SPACE,
    ZORDER_NOT_WRITABLE, ZORDER_NO_FILES, ZORDER_UNREADABLE_FILE."""

    @wraps(command)
    def tells(*args: P.args, **kwargs: P.kwargs) -> T:
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
                (_DAMAGED, unreadable),
            ):
                said = re.search(f"({pattern}).*", str(failure))
                if said:
                    raise error(table, said[0].rstrip(" .")) from failure
            raise

    return tells


def unfinished(folder: str, run: int) -> ZOrderError:
    """A reader came while files change places, or after a writer died there."""
    return ZOrderError(
        "ZORDER_FALLBACK_UNFINISHED",
        f"Run {run} on {folder} is replacing files, or died while it did: read the table again, "
        "or, if its writer is dead, finish the run with pyzorder.fallback.recover(spark, table).",
    )


def remote_writes(location: str) -> ZOrderError:
    """Indexes and OPTIMIZE are for local paths only."""
    return ZOrderError(
        "ZORDER_FALLBACK_STORE",
        f"Without the jar, pyzorder writes only to folders of this machine's file system, and "
        f"{location} is none: run the statement in a Spark with pyzorder's jar.",
    )


def refused(target: str, reason: str) -> ZOrderError:
    """A table that the fallback does not index or optimize."""
    return ZOrderError("ZORDER_FALLBACK_TABLE", f"{target} {reason}.")


def conflict(what: str) -> ZOrderError:
    """Someone else changed what a run was about to replace."""
    return ZOrderError(
        "ZORDER_CONFLICT",
        f"{what} while OPTIMIZE ran. Nothing of the other writer's was changed; run it again.",
    )


def paused() -> ZOrderError:
    """A run slept through its lease, or its lock was taken."""
    return conflict(
        "another writing command declared this one dead, or may have done so: it gave no sign of "
        "life for longer than its lease, or its lock was taken"
    )


def concurrent(owner: str, run: int, lease: int) -> ZOrderError:
    """Another writer holds the lock, or held it when it died. `lease` in milliseconds."""
    return ZOrderError(
        "ZORDER_CONCURRENT_OPTIMIZE",
        f"Run {run} of the table, {owner}, is not finished. Wait for its end; if it is dead, its "
        f"lock ends {lease // 1000} seconds after its last sign of life, and SET "
        f"spark.sql.zorder.journal.takeOver={run} takes it at once.",
    )


def switched(folder: str) -> ZOrderError:
    """The run is one of those that publish by another location of the table."""
    return ZOrderError(
        "ZORDER_FALLBACK_TABLE",
        f"A command of the jar has switched the location of the table in {folder}, or was killed "
        "before it had. Name the table by where it lies now, or run VACUUM on it with the jar.",
    )


def shared_folder(folder: str, journal: str) -> ZOrderError:
    """A partition's folder is a table of its own, too. `journal`: of that one."""
    return ZOrderError(
        "ZORDER_SHARED_FOLDER",
        f"{folder} is the folder of another table as well, which has a journal of its own there. "
        "Nothing was changed. Optimize it through one of the two tables only, and leave it out "
        f"with where in the other; if the other table is gone, delete {journal}.",
    )


def shared_now(folder: str, marker: str) -> ZOrderError:
    """Another table's command is at work in a folder. `marker`: of that command."""
    return ZOrderError(
        "ZORDER_SHARED_FOLDER",
        f"{folder} is the folder of another table as well, a command on which is at work there, or "
        "was killed. Nothing was changed. Wait for its end, or run pyzorder.fallback.recover on "
        f"that table to finish what it left; if that table is gone, delete {marker}.",
    )


def incomplete(folder: str, failure: Exception) -> ZOrderError:
    """After COMMIT, not all files could be moved."""
    return ZOrderError(
        "ZORDER_UNFINISHED",
        f"The new files of {folder} count from now on, but not all files could be brought to their "
        f"places: {failure}. Mend that, and run pyzorder.fallback.recover on the table: until then "
        "readers without pyzorder's jar may miss rows or read some twice.",
    )


def full(table: str, said: str) -> ZOrderError:
    """The disk has no room left, or a quota is used up. `said`: by the system."""
    return ZOrderError(
        "ZORDER_NO_SPACE",
        f"There is no room for what this command writes into {table}: {said}. Every row of the "
        "table is as it was. Free some space, or run vacuum with fewer hours to be retained.",
    )


def not_writable(table: str, said: str) -> ZOrderError:
    """Somebody may not do what was tried. `said`: by the system."""
    return ZOrderError(
        "ZORDER_NOT_WRITABLE",
        f"This command must create, rename and delete files in {table}, and may not: {said}. Every "
        "row of the table is as it was. Get the right to, and run the command again.",
    )


def path_not_found(path: str) -> ZOrderError:
    """A folder that is not there."""
    return ZOrderError(
        "ZORDER_PATH_NOT_FOUND", f"The path {path} does not exist. Check its spelling."
    )


def no_files(table: str, said: str) -> ZOrderError:
    """A folder without data files. `said`: by Spark."""
    return ZOrderError(
        "ZORDER_NO_FILES",
        f"There is no data file of the format asked for in {table}: write the table first, or pass "
        "the format of its files.",
    )


def unreadable(table: str, said: str) -> ZOrderError:
    """A data file that Spark does not take for one. `said`: by Spark."""
    return ZOrderError(
        "ZORDER_UNREADABLE_FILE",
        f"A file of {table} cannot be read: {said}. Nothing was changed. Repair or remove what is "
        "damaged, and run the command again.",
    )


def retention(hours: float) -> ZOrderError:
    """VACUUM would delete what queries read."""
    return ZOrderError(
        "ZORDER_RETENTION_TOO_SHORT",
        f"Retaining {hours} hours would delete files that running queries may still read, and that "
        "RESTORE needs. Retain at least 1 hour, or, to erase data at once, set "
        "spark.sql.zorder.vacuum.retentionCheck to false.",
    )


def row_count(folder: str, read: int, written: int) -> ZOrderError:
    """The new files do not hold the rows of the old ones."""
    return ZOrderError(
        "ZORDER_ROW_COUNT",
        f"The files to be replaced in {folder} hold {read} rows, the new ones {written}. Nothing "
        "was changed; see that spark.sql.files.ignoreCorruptFiles and ignoreMissingFiles are off.",
    )


def undeclared(table: str, columns: list[str], file: str) -> ZOrderError:
    """A file has columns that queries of the table do not read."""
    return ZOrderError(
        "ZORDER_UNDECLARED_COLUMNS",
        f"The file {file} has columns that {table} does not declare ({', '.join(columns)}), and "
        "rewriting it would lose them: add them to the table, or leave its partition out.",
    )


def no_space(folder: str, size: int) -> ZOrderError:
    """The store cannot hold old and new files at once."""
    return ZOrderError(
        "ZORDER_NO_SPACE",
        f"Writing {folder} anew takes about {size} bytes, and fewer are left: the files it "
        "replaces stay until VACUUM. Free some space, or choose fewer partitions with where.",
    )
