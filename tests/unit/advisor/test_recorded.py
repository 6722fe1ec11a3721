"""Recorded conditions are used only if they compare the table's columns with constants, because
anyone with write access to the table's folder can forge them."""

from __future__ import annotations

import pytest
from pyspark.sql import Row

from pyzorder.advisor import recorded
from pyzorder.advisor.workload import Reading, TableNames, Workload

TABLE = TableNames(("db", "sales"), "file:/data/sales", ("id", "Day", "s", "odd name"))


def read(*examples: str, queries: int = 1, join_keys: tuple[str, ...] = ()) -> Workload:
    workload = Workload()
    row = Row(examples=examples, queries=queries, join_keys=join_keys)
    recorded.read([row], TABLE, workload)
    return workload


def conditions(workload: Workload) -> list[str]:
    return [p.sql for reading in workload.readings for p in reading.predicates]


#: (a recorded condition, the SQL that the advisor evaluates, how it uses the columns)
USED = [
    ("(id = 7L)", ["id = CAST(7 AS BIGINT)"], [("id", "equality")]),
    ("(id = -7)", ["id = -7"], [("id", "equality")]),
    (
        "(id > 3) AND (day <= DATE '2024-01-05')",
        ["id > 3", "day <= CAST('2024-01-05' AS DATE)"],
        [("id", "range"), ("day", "range")],
    ),
    ("(id IN (1, 2))", ["id IN (1, 2)"], [("id", "in")]),
    ("startswith(s, 'a')", ["STARTSWITH(s, 'a')"], [("s", "prefix")]),
    ("s LIKE 'a%'", ["s LIKE 'a%'"], [("s", "prefix")]),
    (
        "((s IS NULL) OR (NOT (id = 4)))",
        ["(s IS NULL) OR (NOT (id = 4))"],
        [("s", "other"), ("id", "other")],
    ),
    ("(`odd name` <=> 1)", ["`odd name` IS NOT DISTINCT FROM 1"], [("odd name", "equality")]),
    ("(day.`a` > 3)", ["day.`a` > 3"], [("day.a", "range")]),
]


@pytest.mark.parametrize(("example", "sql", "uses"), USED)
def test_used(example: str, sql: list[str], uses: list[tuple[str, str]]) -> None:
    found = read(example)
    assert conditions(found) == sql
    [reading] = found.readings
    assert [use for p in reading.predicates for use in p.uses] == uses
    assert not found.unread


LEFT_OUT = [
    "(id IN (SELECT k FROM secrets))",
    "EXISTS (SELECT 1 FROM secrets)",
    "(id = (SELECT max(k) FROM secrets))",
    "(reflect('java.lang.System', 'exit', '1') = s)",
    "(java_method('java.lang.System', 'exit', 1) IS NULL)",
    "(id = reflect('java.lang.System', 'exit', '1'))",
    "CASE WHEN reflect('a', 'b') = '' THEN true END",
    "(substring(s, 1, 1) = 'x')",
    "(secrets.k = 1)",
    "(nope = 1)",
    "(id = CAST(reflect('a', 'b') AS INT))",
    "(s LIKE reflect('a', 'b'))",
    "(s LIKE '%a%a%a%')",
    "('aaa' LIKE '%a%a%b' OR id = 1)",
    "(s LIKE 'a_%')",
    "(CAST(id AS ARRAY<ARRAY<INT>>) IS NULL)",
    "(id IN (1, reflect('a', 'b')))",
    "(id + 1 = 7)",
    "id",
    "read_files('/etc')",
    "(((",
    "; DROP TABLE sales",
    "(" * 5000 + "id = 1" + ")" * 5000,
]


@pytest.mark.parametrize("example", LEFT_OUT)
def test_left_out(example: str) -> None:
    found = read(example)
    assert conditions(found) == []
    assert sum(found.unread.values()) == 1


def test_the_rest_of_a_condition_is_used() -> None:
    found = read("(id = 1) AND (upper(s) = 'A') AND (day > DATE '2024-01-01')")
    assert conditions(found) == ["id = 1", "day > CAST('2024-01-01' AS DATE)"]
    assert sum(found.unread.values()) == 1


def test_queries_are_divided_among_the_examples() -> None:
    found = read("(id = 1)", "(id = 2)", "(id = 3)", queries=8)
    assert sorted(found.readings.values()) == [2, 3, 3]
    assert (found.statements, found.reading_statements) == (8, 8)


def test_only_a_join() -> None:
    found = read(queries=5, join_keys=("id",))
    assert found.readings == {Reading(): 5}
    assert found.unread == {"joins whose keys are not recorded": 5}


def test_the_keys_of_a_join() -> None:
    found = read("((id = 1) OR ((id >= 5) AND (id <= 9)))", join_keys=("id",))
    assert conditions(found) == ["(id = 1) OR ((id >= 5) AND (id <= 9))"]
    assert not found.unread
