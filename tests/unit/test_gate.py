"""benchmarks/gate.py reports which results are worse than the committed results."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
KNOWN = [["64", "uniform_2", "pyzorder", "64", "0.125", "0.125 0.125", "0.044", "0.044"]]


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("gate")


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        (4, "0.125", "same"),
        (4, "0.127", "same"),  # the difference is within 2%
        (4, "0.140", "loss"),
        (4, "0.110", "gain"),
        (6, "0.050", "loss"),
        (7, "0.050", "loss"),
        (3, "65", "loss"),  # shares are comparable only for the same number of files
        (2, "hilbert", "loss"),  # there is no committed result to compare with
    ],
)
def test_told(gate: Any, column: int, value: str, told: str) -> None:
    line = [*KNOWN[0]]
    line[column] = value
    (part,) = (part for part in gate.PARTS if part.name == "layout_uniform")
    found = {told for told, _ in part.compared(line, KNOWN)}
    assert found == {told, "same"} or found == {told}


def test_every_part_has_committed_results(gate: Any) -> None:
    report = importlib.import_module("report")
    for part in gate.PARTS:
        lines = report.read(part.name)
        assert len({part.named(line) for line in lines}) == len(lines) > 0
        for line in lines:
            assert all(told == "same" for told, _ in part.compared(line, lines))
