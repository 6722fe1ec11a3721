"""Lists the files of a table that may have rows for which a condition is TRUE."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from pyzorder.engines import failures
from pyzorder.engines.selection import select_files, select_where
from pyzorder.engines.tables import open_table, opening
from pyzorder.text.durations import seconds_of


@dataclass(frozen=True)
class MatchingFiles:
    """The files that may have matching rows.

    Attributes:
        paths: the paths from which to read the files. While a run is unfinished, some of these
            paths may be in hidden folders.
        total: the number of files in the table.
        unindexed: the number of files in the table that have no entry in the index.
        reasons: the parts of the condition that are not used to rule out files, and why.
    """

    paths: list[str]
    total: int
    unindexed: int
    reasons: tuple[str, ...] = ()


@opening
def matching_files(
    path: str | os.PathLike[str],
    where: str | None,
    time_zone: str | None,
    max_staleness: str | float | timedelta | None,
    filesystem: Any,
) -> MatchingFiles:
    """Lists a table's files and applies a condition. The parameters are those of `pyzorder.files`.

    Raises:
        ZOrderError: see `pyzorder.files`.
    """
    staleness = seconds_of(max_staleness, "staleness")
    if time_zone is not None:
        _check_zone(time_zone)
    table = open_table(path, filesystem, staleness)
    found = select_files(table, []) if where is None else select_where(table, where, time_zone)
    return MatchingFiles(
        [table.files.place(number) for number in np.flatnonzero(found.kept).tolist()],
        len(table.files),
        found.unindexed,
        found.reasons,
    )


def _check_zone(time_zone: str) -> None:
    try:
        ZoneInfo(time_zone)
    except (ValueError, KeyError, OSError):
        raise failures.not_a_zone(time_zone) from None
