"""Maintenance runs the statements that pay off, and stays within its budget."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyzorder.maintenance.decisions import MOST_PARTITIONS, UNKNOWN_COLUMNS, decide, worthwhile
from pyzorder.maintenance.outlook import Outlook, Part

MB = 1 << 20


def part(name: str | None, megabytes: float, saved: float, lookups: int = 10) -> Part:
    """A part whose rewrite replaces 4 files with 2. Sizes are in MiB."""
    worth = saved * lookups
    pays = worth > 0 and worth >= megabytes
    return Part(name, 4, int(megabytes * MB), 2, saved * MB, worth * MB, pays)


def table(*parts: Part, **state: Any) -> Outlook:
    return Outlook(**{
        "target": "t", "columns": ("a",), "z_order": "", "is_auto": False, "kind": "pays", "sentence": "Pays off.",
        "parts": parts, "files": 10, **state,
    })  # fmt: skip


A, B, C = part("p = 1", 10, 5), part("p = 2", 10, 0.5), part("p = 3", 30, 30)

# (table, budget in MiB, statements, MiB that are postponed)
CASES: dict[str, tuple[Outlook, float, list[str], float]] = {
    "a whole table": (table(part(None, 10, 5)), math.inf, ["OPTIMIZE t"], 0),
    "all partitions": (table(A, C), math.inf, ["OPTIMIZE t"], 0),
    "partitions": (table(A, B, C), math.inf, ["OPTIMIZE t WHERE (p = 3) OR (p = 1)"], 0),
    "a budget": (table(A, B, C), 35, ["OPTIMIZE t WHERE (p = 3)"], 10),
    "a smaller budget": (table(A, B, C), 25, ["OPTIMIZE t WHERE (p = 1)"], 30),
    "no budget": (table(A, C), 0, [], 40),
    "the whole table exceeds the budget": (table(part(None, 10, 5)), 5, [], 10),
    "only the sum pays off": (table(B, part("p = 4", 1, 0.05)), math.inf, ["OPTIMIZE t"], 0),
    "harmful": (table(A, C, kind="harms"), math.inf, [], 0),
    "useless, but not everywhere": (
        table(A, B, kind="useless"), math.inf, ["OPTIMIZE t WHERE (p = 1)"], 0,
    ),
    "few lookups": (
        table(part("p = 1", 10, 5, lookups=1), part("p = 3", 30, 30, lookups=1)), math.inf,
        ["OPTIMIZE t WHERE (p = 3)"], 0,
    ),
    "many lookups": (table(A, part("p = 2", 10, 0.5, lookups=20)), math.inf, ["OPTIMIZE t"], 0),
    "no lookups": (
        table(part("p = 1", 10, 5, lookups=0), kind="useless"), math.inf, [], 0,
    ),
    "unindexed files": (
        table(kind="nothing", unindexed=3), math.inf, ["REFRESH SKIPPING INDEX ON t"], 0,
    ),
    "partitions of a table without an index": (
        table(A, B, files=None), math.inf,
        ["OPTIMIZE t WHERE (p = 1)", "REFRESH SKIPPING INDEX ON t"], 0,
    ),
    "a table without an index": (table(A, C, files=None), math.inf, ["OPTIMIZE t"], 0),
    "unindexed files outside the partitions": (
        table(A, B, unindexed=3), math.inf,
        ["OPTIMIZE t WHERE (p = 1)", "REFRESH SKIPPING INDEX ON t"], 0,
    ),
    "OPTIMIZE adds entries": (table(A, C, unindexed=3), math.inf, ["OPTIMIZE t"], 0),
    "the budget does not concern REFRESH": (
        table(A, unindexed=3), 0, ["REFRESH SKIPPING INDEX ON t"], 10,
    ),
    "expired files": (table(kind="nothing", expired_files=2), math.inf, ["VACUUM t"], 0),
    "OPTIMIZE deletes expired files": (table(A, expired_files=2), math.inf, ["OPTIMIZE t"], 0),
    "small files in a table with an index": (
        table(part(None, 1, 9), columns=()), math.inf, ["OPTIMIZE t"], 0,
    ),
    "a table that was never optimized": (
        table(part(None, 1, 9), columns=(), files=None), math.inf, [], 0,
    ),
    "a declared table": (table(part(None, 1, 9), files=None), math.inf, ["OPTIMIZE t"], 0),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_statements(case: str) -> None:
    outlook, budget, statements, postponed = CASES[case]
    decision = decide(outlook, budget * MB)
    assert [task.statement for task in decision.tasks] == statements
    assert (decision.postponed.bytes if decision.postponed else 0) == postponed * MB
    assert bool(decision.nothing) == (not statements and not postponed)


def test_reasons() -> None:
    assert decide(table(kind="nothing", sentence="Nothing to do."), 0).nothing == "Nothing to do."
    assert decide(table(columns=(), files=None), 0).nothing == UNKNOWN_COLUMNS
    auto = table(columns=(), files=None, is_auto=True, kind="nothing", sentence="AUTO keeps …")
    assert decide(auto, 0).nothing == "AUTO keeps …"
    (some,) = decide(table(A, B, C), math.inf).tasks
    assert some.reason == "Pays off in 2 of 3 partitions: 8 files would become 4."
    assert some.covered == (2, 3)
    left = decide(table(A, B, C), 35 * MB).postponed
    assert left is not None
    assert left.reason == "It would replace 10.0 MiB, but only 5.0 MiB of the budget is left."


def test_many_partitions() -> None:
    """A statement names a limited number of partitions, so that Spark can parse it."""
    parts = [part(f"p = {n}", 1, 1) for n in range(MOST_PARTITIONS + 7)]
    tasks = decide(table(*parts, B), math.inf).tasks
    assert [task.covered for task in tasks] == [(200, 208), (7, 208)]
    assert sum(task.statement.count("p = ") for task in tasks) == len(parts)


PARTS = st.lists(st.tuples(st.integers(0, 100), st.floats(-50, 50)), max_size=8)


@given(PARTS, st.sampled_from(["pays", "useless", "nothing"]), st.floats(0, 300), st.booleans())
def test_budget(parts: list[tuple[int, float]], kind: str, budget: float, named: bool) -> None:
    """The statements stay within the budget. Together with what is postponed, they cover exactly
    the parts that pay off. They leave out a part only if it no longer fits."""
    made = [part(f"p = {i}" if named else None, *p) for i, p in enumerate(parts)]
    outlook = table(*(made if named else made[:1]), kind=kind)
    decision = decide(outlook, budget * MB)
    chosen = sum(task.bytes for task in decision.tasks)
    left = decision.postponed.bytes if decision.postponed else 0
    paying = worthwhile(outlook)
    assert chosen <= budget * MB
    assert chosen + left == sum(p.bytes for p in paying)
    assert left == 0 or any(p.bytes > budget * MB - chosen for p in paying)
    if kind != "pays":
        assert all(p.worth >= p.bytes for p in paying)
