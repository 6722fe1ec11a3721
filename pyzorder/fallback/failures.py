"""What the fallback refuses, a sentence each."""

from __future__ import annotations

from pyzorder.errors import ZOrderError


def missing_package(name: str) -> ZOrderError:
    """A package that only the fallback needs is not installed."""
    return ZOrderError(
        "ZORDER_FALLBACK_PACKAGES",
        f"pyzorder.fallback needs {name}: pip install 'pyzorder[fallback]'.",
    )


def unfinished(folder: str, run: int) -> ZOrderError:
    """A reader came while files change places, or after a writer died there."""
    return ZOrderError(
        "ZORDER_FALLBACK_UNFINISHED",
        f"Run {run} on {folder} is replacing files, or died while it did: read the table again, "
        "or, if its writer is dead, have it finished by a writing command of a Spark with the jar.",
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
    """A run slept through its lease."""
    return conflict("this process gave no sign of life for longer than its lease")


def concurrent(owner: str, run: int) -> ZOrderError:
    """Another writer holds the lock, or held it when it died."""
    return ZOrderError(
        "ZORDER_CONCURRENT_OPTIMIZE",
        f"Run {run} of the table, {owner}, is not finished. Wait for its end; if it is dead, its "
        f"lock ends two minutes after its last sign of life, and SET "
        f"spark.sql.zorder.journal.takeOver={run} takes it at once.",
    )


def row_count(folder: str, read: int, written: int) -> ZOrderError:
    """The new files do not hold the rows of the old ones."""
    return ZOrderError(
        "ZORDER_ROW_COUNT",
        f"The files to be replaced in {folder} hold {read} rows, the new ones {written}. Nothing "
        "was changed; see that spark.sql.files.ignoreCorruptFiles and ignoreMissingFiles are off.",
    )


def undeclared(table: str, column: str, file: str) -> ZOrderError:
    """A file has a column that queries of the table do not read."""
    return ZOrderError(
        "ZORDER_UNDECLARED_COLUMNS",
        f"{file} has a column {column} that {table} does not declare, and that would be lost: add "
        "it to the table, or give the path a folder whose files have the same columns.",
    )


def no_space(folder: str, size: int) -> ZOrderError:
    """The store cannot hold old and new files at once."""
    return ZOrderError(
        "ZORDER_NO_SPACE",
        f"Writing {folder} anew takes about {size} bytes, and fewer are left: the files it "
        "replaces stay until VACUUM. Free some space, or choose fewer partitions with where.",
    )
