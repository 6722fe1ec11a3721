"""Prometheus' own parser can parse a table's health metrics in OpenMetrics format."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as older

from pyzorder import openmetrics
from pyzorder.history import Run

ODD = 'a "quoted"\\n\n{table}, größe 数'

NAMES = [
    "files",
    "unindexed_files",
    "clustered_files",
    "lookup_files_ratio",
    "range_files_ratio",
    "skipped_files_ratio",
    "retired_bytes",
    "last_optimize_timestamp_seconds",
]


def row(column: str, **more: Any) -> dict[str, Any]:
    known = {
        "column": column,
        "files": 7,
        "unindexed": 2,
        "clustered": 5,
        "lookup_share": 0.1,
        "range_share": 1 / 3,
        "last_optimize": datetime(2024, 1, 31, 23, 59, 59, 500_000, timezone.utc),
    }
    return {**known, **more}


def run(number: int, kept: int) -> Run:
    return Run(number, "OPTIMIZE", None, None, True, 1, 1, 1, 1, 1, kept, 1, None, False)


def samples(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """The samples by metric family. Asserts that both parsers from Prometheus return the same
    samples."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge" and family.documentation
        assert not family.unit or family.name.endswith(f"_{family.unit}")
        found[family.name] = [(sample.labels, sample.value) for sample in family.samples]
    assert found == {f.name: [(s.labels, s.value) for s in f.samples] for f in older(text)}
    return found


def test_every_gauge() -> None:
    rows = [row("a"), row(ODD, lookup_share=None, range_share=float("nan"), clustered=0)]
    gauges = openmetrics.health(ODD, rows, [run(1, 30), run(2, 2**60)], {ODD: 0.875})
    found = samples(openmetrics.text(gauges))
    table = {"table": ODD}
    assert list(found) == [f"pyzorder_{name}" for name in NAMES]
    assert found["pyzorder_files"] == [(table, 7)]
    assert found["pyzorder_unindexed_files"] == [(table, 2)]
    assert found["pyzorder_clustered_files"] == [
        ({**table, "column": "a"}, 5),
        ({**table, "column": ODD}, 0),
    ]
    assert found["pyzorder_lookup_files_ratio"] == [({**table, "column": "a"}, 0.1)]
    assert found["pyzorder_range_files_ratio"] == [({**table, "column": "a"}, 1 / 3)]
    assert found["pyzorder_skipped_files_ratio"] == [({**table, "where": ODD}, 0.875)]
    assert found["pyzorder_retired_bytes"] == [(table, 2**60 + 30)]
    assert found["pyzorder_last_optimize_timestamp_seconds"] == [(table, 1706745599.5)]


@pytest.mark.parametrize(
    ("rows", "known"),
    [
        ([], ["retired_bytes"]),
        ([row("a", lookup_share=None, range_share=None, last_optimize=None)],
         ["files", "unindexed_files", "clustered_files", "retired_bytes"]),
    ],
)  # fmt: skip
def test_what_is_not_known_is_left_out(rows: list[dict[str, Any]], known: list[str]) -> None:
    found = samples(openmetrics.text(openmetrics.health("t", rows, [], {})))
    assert list(found) == [f"pyzorder_{name}" for name in known]
    assert found["pyzorder_retired_bytes"] == [({"table": "t"}, 0)]


def test_control_characters_are_replaced() -> None:
    text = openmetrics.text(openmetrics.health("t\x1b[2J", [row("a\u202e")], [], {}))
    assert 't\ufffd[2J"' in text and 'column="a\ufffd"' in text


def test_the_end_is_marked() -> None:
    assert openmetrics.text([]) == "# EOF\n"
    text = openmetrics.text(openmetrics.health("t", [row("a")], [], {}))
    assert text.endswith("\n# EOF\n") and text.count("# EOF") == 1
