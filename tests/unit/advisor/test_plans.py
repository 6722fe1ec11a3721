"""Filters in Spark plans from event logs are converted to SQL."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlglot")

from pyzorder.advisor.plans import fields_of, key_of, parts_of, split_keys, sql_of
from pyzorder.advisor.workload import NotUnderstood

TYPES = {"a": "int", "b": "bigint", "s": "string", "d": "date", "t.u": "int"}

FILTERS = [
    ("EqualTo(a,7)", "`a` = CAST('7' AS int)"),
    ("EqualTo(a,-7)", "`a` = CAST('-7' AS int)"),
    ("EqualNullSafe(a,7)", "`a` <=> CAST('7' AS int)"),
    ("GreaterThanOrEqual(d,2020-01-05)", "`d` >= CAST('2020-01-05' AS date)"),
    ("EqualTo(s,it's)", r"`s` = 'it\'s'"),
    ("EqualTo(s,a, b)", "`s` = 'a, b'"),
    ("StringStartsWith(s,x (y), 1)", "startswith(`s`, 'x (y), 1')"),
    ("In(b, [1,2])", "`b` IN (CAST('1' AS bigint), CAST('2' AS bigint))"),
    ("IsNull(a)", "`a` IS NULL"),
    ("Not(EqualTo(a,1))", "(NOT `a` = CAST('1' AS int))"),
    ("Or(In(b, [1,2]),EqualTo(s,a, b))",
     "(`b` IN (CAST('1' AS bigint), CAST('2' AS bigint)) OR `s` = 'a, b')"),
    ("Or(And(IsNull(a),IsNull(b)),Not(And(IsNull(s),IsNull(d))))",
     "((`a` IS NULL AND `b` IS NULL) OR (NOT (`s` IS NULL AND `d` IS NULL)))"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sql"), FILTERS)
def test_sql_of(text: str, sql: str) -> None:
    assert sql_of(text, TYPES) == sql


@pytest.mark.parametrize(
    "text",
    ["Odd(a,1)", "EqualTo(unknown,1)", "EqualTo(a,1", "Or(IsNull(a))", "EqualTo(x,[B@1a2b3c)"],
)
def test_what_is_not_understood(text: str) -> None:
    with pytest.raises(NotUnderstood):
        sql_of(text, TYPES)


def test_parts_of_a_list() -> None:
    texts = [text for text, _ in FILTERS]
    assert parts_of(", ".join(texts)) == texts
    assert parts_of("") == []


def test_types_of_a_schema() -> None:
    schema = "struct<a:int,s:struct<x:int,y:decimal(7,2)>,d:decimal(7,2)>"
    assert dict(fields_of(schema)) == {
        "a": "int",
        "s": "struct<x:int,y:decimal(7,2)>",
        "d": "decimal(7,2)",
    }


@pytest.mark.parametrize(
    ("text", "attribute", "sql"),
    [
        ("b#10L", "b#10L", "`b`"),
        ("cast(b#2 as bigint)", "b#2", "CAST(`b` AS bigint)"),
        ("cast(b#2 as decimal(7,2))", "b#2", "CAST(`b` AS decimal(7,2))"),
    ],
)
def test_key_of(text: str, attribute: str, sql: str) -> None:
    assert key_of(text) == (attribute, sql)


def test_a_key_that_is_computed() -> None:
    with pytest.raises(NotUnderstood, match="computes"):
        key_of("(b#2 + 1)")


def test_keys_of_a_join() -> None:
    assert split_keys("a#1, cast(b#2 as decimal(7,2)), c#3L") == [
        "a#1",
        "cast(b#2 as decimal(7,2))",
        "c#3L",
    ]
