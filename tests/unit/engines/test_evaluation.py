"""Filters on the index are evaluated with three-valued logic, and unsupported operands never
exclude a file."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyzorder.engines.evaluation import evaluator_of
from pyzorder.engines.values import Value
from pyzorder.index.predicates.conditions import NotUnderstood

COLUMNS = {
    ("m",): Value(pa.array([1, 5, None]), "int"),
    ("t",): Value(pa.array([True, False, None]), "boolean"),
    ("s",): Value(pa.array([b"abc", b"b", None]), "string"),
}

CASES = [
    ("m <= 2", [True, False, None]),
    ("coalesce(m <= 2, true)", [True, False, True]),
    ("m IS NULL", [False, False, True]),
    ("m IS NOT NULL", [True, True, False]),
    ("NOT t", [False, True, None]),
    ("t AND m IS NULL", [False, False, None]),
    ("t OR m IS NULL", [True, False, True]),
    ("CASE WHEN t THEN false ELSE true END", [False, True, True]),
    ("CASE WHEN t THEN false WHEN m = 5 THEN t END", [False, False, None]),
    ("coalesce(startswith(s, 'ab'), false)", [True, False, False]),
    ("exists(array(1, 7), r -> coalesce(m = r, false))", [True, False, False]),
    ("exists(array(CAST(NULL AS INT), 5), r -> m = r)", [None, True, None]),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_filters(text: str, expected: list[bool | None]) -> None:
    assert evaluator_of(COLUMNS, None).keeps(text).to_pylist() == expected


#: Filters with the unsupported operand `rand() < 1`. The operand never excludes a file, even under
#: NOT.
PARTLY = [
    ("rand() < 1 AND m <= 2", [True, False, None]),
    ("rand() < 1 OR m <= 2", [True, True, True]),
    ("NOT (rand() < 1 AND m <= 2)", [True, True, True]),
    ("NOT (rand() < 1 OR m <= 2)", [False, True, None]),
    ("NOT (NOT (rand() < 1) OR m > 2)", [True, False, None]),
    ("(CASE WHEN t THEN rand() < 1 ELSE false END) AND m <= 2", [True, False, None]),
]


@pytest.mark.parametrize(("text", "expected"), PARTLY)
def test_operands_that_are_not_supported(text: str, expected: list[bool | None]) -> None:
    assert evaluator_of(COLUMNS, None).keeps(text).to_pylist() == expected


@pytest.mark.parametrize("text", ["rand() < 1", "m", "unknown = 1", "m = ", "m + 1 = 2"])
def test_filters_that_are_not_supported(text: str) -> None:
    with pytest.raises(NotUnderstood):
        evaluator_of(COLUMNS, None).keeps(text)


def test_types() -> None:
    evaluator = evaluator_of(COLUMNS, None)
    assert evaluator.type_of("array(m, 5L)") == "array<bigint>"
    assert evaluator.type_of("array(s, 'a', NULL)") == "array<string>"
    with pytest.raises(NotUnderstood):
        evaluator.type_of("array(m, 'a')")
