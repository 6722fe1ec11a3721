"""Explanations have the expected text. tests/spark checks explanations of real queries."""

from __future__ import annotations

from typing import Any

import pytest

from pyzorder.explain import Explanation, scan_explanation

# (counts of all, selected, skipped and unindexed files; other fields; the text)
SCANS: list[tuple[tuple[int, int, int, int], dict[str, Any], str]] = [
    ((1, 1, 0, 0), {}, "t: opens 1 of 1 file"),
    ((1200, 1100, 100, 0), {}, "t: opens 1,100 of 1,200 files"),
    ((7, 0, 5, 2), {}, "t: opens 2 of 7 files (2 unindexed)"),
    (
        (9, 1, 2, 1),
        {"answered": 5},
        "t: opens 2 of 9 files (1 unindexed, 5 answered from the index)",
    ),
    (
        (7, 2, 5, 0),
        {"joinKeys": ["a", "b"], "skippedByJoins": 3, "reasons": ["not usable: f(a)"]},
        "t: opens 2 of 7 files\n  3 skipped by join keys of a and b\n  not usable: f(a)",
    ),
    ((9, 1, 8, 0), {"skippedBySketches": 6}, "t: opens 1 of 9 files\n  6 skipped by sketches"),
    (
        (4, 1, 3, 0),
        {"asOf": 1_700_000_000_500},
        "t: opens 1 of 4 files\n  as of 2023-11-14 22:13:20+00:00",
    ),
]


@pytest.mark.parametrize(("counts", "more", "text"), SCANS)
def test_scans(counts: tuple[int, int, int, int], more: dict[str, Any], text: str) -> None:
    names = ("total", "selected", "skipped", "unindexed")
    scan = scan_explanation({"table": "t", **dict(zip(names, counts, strict=True)), **more})
    assert str(scan) == str(Explanation([scan])) == text
    assert scan.opened == counts[1] + counts[3]
    assert f">{counts[0]:,}</td>" in Explanation([scan])._repr_html_()


def test_removed_scans() -> None:
    explanation = Explanation(removed=["sales"])
    assert str(explanation) == (
        "sales: no details: Spark removed the scan from the plan, because part of the query has no rows"
    )
    assert "sales" in explanation._repr_html_()


def test_no_scan() -> None:
    assert str(Explanation()) == "The query scans no Parquet or ORC table."
