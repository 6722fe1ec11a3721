"""The rows of optimize_history are converted to runs, and each run has a summary of what it did."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pyzorder.history import FIELDS, History, run_of

ROW: dict[str, Any] = {
    **dict.fromkeys(FIELDS, 0),
    "operation": "OPTIMIZE",
    "began": 1_700_000_000_000,
    "ended": 1_700_000_001_500,
    "committed": True,
    "removed": 1200,
    "added": 8,
    "seconds": 1.5,
    "undone": False,
}

# (fields that differ from the row above, the summary)
RESULTS: list[tuple[dict[str, Any], str]] = [
    ({}, "replaced 1,200 files with 8"),
    ({"undone": True}, "replaced 1,200 files with 8, undone"),
    ({"committed": False}, "replaced no files"),
    ({"committed": False, "operation": "VACUUM"}, "deleted expired files, if any"),
    ({"ended": None, "seconds": None}, "unfinished"),
]


@pytest.mark.parametrize(("fields", "result"), RESULTS)
def test_results(fields: dict[str, Any], result: str) -> None:
    assert run_of(**{**ROW, **fields}).result == result


def test_times_are_in_utc() -> None:
    run = run_of(**ROW)
    assert run.began == datetime(2023, 11, 14, 22, 13, 20, tzinfo=timezone.utc)
    assert run.took == timedelta(seconds=1.5)


def test_a_torn_record() -> None:
    run = run_of(**{**ROW, **dict.fromkeys(("operation", "began", "ended", "seconds"))})
    assert (run.operation, run.began, run.took) == ("", None, None)
    assert "<td" in History([run])._repr_html_()


def test_kept_bytes_are_those_of_all_runs() -> None:
    assert History(run_of(**{**ROW, "keptBytes": size}) for size in (3, 0, 4)).kept_bytes == 7


#: runs (operation, committed, undone), and whether a RESTORE can undo one of them
UNDO: list[tuple[list[tuple[str, bool, bool]], bool]] = [
    ([], False),
    ([("OPTIMIZE", True, False)], True),
    ([("OPTIMIZE", False, False)], False),
    ([("OPTIMIZE", True, True), ("RESTORE", True, False)], False),
    ([("OPTIMIZE", True, False), ("RESTORE", False, False)], True),
    ([("OPTIMIZE", True, False), ("OPTIMIZE", True, True), ("RESTORE", True, False)], True),
]


@pytest.mark.parametrize(("runs", "expected"), UNDO)
def test_can_restore(runs: list[tuple[str, bool, bool]], expected: bool) -> None:
    history = History(
        run_of(**{**ROW, "operation": operation, "committed": committed, "undone": undone})
        for operation, committed, undone in runs
    )
    assert history.can_restore == expected
