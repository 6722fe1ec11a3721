"""The advisor recognizes which columns a predicate uses, and how."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlglot")

from sqlglot import parse_one

from pyzorder.advisor.column_uses import columns_of, uses_of

USES = [
    ("a = 5", [("a", "equality")]),
    ("5 <=> a", [("a", "equality")]),
    ("CAST(a AS BIGINT) = 5", [("a", "equality")]),
    ("a > 5 AND b BETWEEN 1 AND 2", [("a", "range"), ("b", "range")]),
    ("a IN (1, 2)", [("a", "in")]),
    ("startswith(a, 'x')", [("a", "prefix")]),
    ("a LIKE 'x%'", [("a", "prefix")]),
    ("a LIKE '%x'", [("a", "other")]),
    ("a LIKE '_x'", [("a", "other")]),
    ("a LIKE ''", [("a", "other")]),
    ("year(a) = 2024", [("a", "other")]),
    ("a + b = 5", [("a", "other"), ("b", "other")]),
    ("NOT a = 5", [("a", "other")]),
    ("(a = 5 OR (b < 1 AND c IS NULL))", [("a", "equality"), ("b", "range"), ("c", "other")]),
    ("`a.b` = 5", [("`a.b`", "equality")]),
    ("rand() < 0.5", []),
]


@pytest.mark.parametrize(("predicate", "uses"), USES)
def test_uses(predicate: str, uses: list[tuple[str, str]]) -> None:
    assert list(uses_of(parse_one(predicate, dialect="spark"))) == uses


def test_columns_of_a_key() -> None:
    assert columns_of("coalesce(a, `b``c`)") == ["a", "`b``c`"]
