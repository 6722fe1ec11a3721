"""Literals, casts and comparisons have the same results as in Spark, or are rejected as
unsupported."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from sqlglot import parse_one

from pyzorder.engines.evaluation import evaluator_of
from pyzorder.engines.values import Value, micros_of
from pyzorder.index.predicates.conditions import NotUnderstood, Verbatim

#: (a constant expression, its value, its type)
CONSTANTS = [
    ("7", 7, "int"),
    ("2147483648", 2**31, "bigint"),
    ("9223372036854775808", 2**63, "decimal(19,0)"),
    ("5L", 5, "bigint"),
    ("-5", -5, "int"),
    ("2.50", "2.50", "decimal(3,2)"),
    ("0.5", "0.5", "decimal(1,1)"),
    ("1e3", 1000.0, "double"),
    ("'a'", b"a", "string"),
    ("X'0F'", b"\x0f", "binary"),
    ("TRUE", True, "boolean"),
    ("NULL", None, "void"),
    ("CAST(NULL AS DATE)", None, "date"),
    ("DATE'1970-01-03'", 2, "date"),
    ("DATE'1582-10-04'", -141438, "date"),
    ("CAST('0' AS DOUBLE)", 0.0, "double"),
    ("CAST(2.5BD AS DECIMAL(10, 3))", "2.500", "decimal(10,3)"),
    ("double('1e2')", 100.0, "double"),
    ("CAST(0.3 AS DOUBLE)", 0.3, "double"),
    ("TIMESTAMP'1970-01-01 00:00:01Z'", 1_000_000, "timestamp"),
    ("TIMESTAMP'1970-01-01T01:00:00.5+01:00'", 500_000, "timestamp"),
    ("TIMESTAMP_NTZ'1970-01-01 00:00:00.000001'", 1, "timestamp_ntz"),
    ("CAST(DATE'1970-01-02' AS TIMESTAMP_NTZ)", 86_400_000_000, "timestamp_ntz"),
    ("CAST(TIMESTAMP_NTZ'1969-12-31 23:59:59' AS DATE)", -1, "date"),
    ("year(DATE'1969-12-31')", 1969, "int"),
]

#: Expressions that are not supported, and expressions whose value depends on the session.
REJECTED = [
    "TIMESTAMP'1970-01-01 00:00:00'",
    "CAST('1970-01-01' AS TIMESTAMP)",
    "CAST(DATE'1970-01-01' AS TIMESTAMP)",
    "DATE'2024-02-30'",
    "CAST('2024-1-1' AS DATE)",
    "CAST('2024-01-01 10:00:00' AS DATE)",
    "CAST(' 7' AS INT)",
    "CAST(300 AS TINYINT)",
    "CAST(2.5 AS INT)",
    "CAST(1.1 AS FLOAT)",
    "CAST(99.9BD AS DECIMAL(2, 1))",
    "CAST('0x1' AS DOUBLE)",
    "CAST(1 AS STRING)",
    "rand()",
    "1 + 1",
    "'a' || 'b'",
]


def value(text: str, columns: Any = None) -> Value:
    return evaluator_of(columns or {}, None)._value(parse_one(text, dialect=Verbatim))


@pytest.mark.parametrize(("text", "expected", "data_type"), CONSTANTS)
def test_constants(text: str, expected: Any, data_type: str) -> None:
    found = value(text)
    shown = found.data.as_py()
    assert (str(shown) if isinstance(expected, str) else shown) == expected
    assert found.data_type == data_type


@pytest.mark.parametrize("text", REJECTED)
def test_rejected(text: str) -> None:
    with pytest.raises(NotUnderstood):
        value(text)


#: (a column's type and value, a comparison with a constant, its result or None if it is not
#: supported)
COMPARED = [
    ("int", 5, "= 5", True), ("int", 5, "< 5.5", True), ("int", 5, "= 5.0", True),
    ("int", 5, "= '5'", True), ("int", 5, "< 3000000000", True), ("int", 5, "= 5D", True),
    ("int", 16777217, "= CAST(16777216 AS FLOAT)", None),
    ("bigint", 2**53 + 1, "= 9007199254740992D", True),  # Spark converts both sides to doubles
    ("float", 0.5, "= 0.5", True), ("float", 0.5, "> 16777217", None), ("float", 0.5, "< 3", True),
    ("double", 1.5, "< double('NaN')", True), ("double", 1.5, ">= double('NaN')", False),
    ("double", 0.0, "= -0.0D", True), ("double", float("inf"), "< double('NaN')", True),
    ("decimal(3,1)", "0.3", "= 0.3D", True), ("decimal(3,1)", "0.3", "= 0.30", True),
    ("decimal(38,30)", "0.3", "= 5", None),
    ("string", b"z", "< 'é'", True), ("string", "\uffff".encode(), "< '𝄞'", True),
    ("string", b"5", "= 5", None), ("binary", b"\xff", "> X'7F'", True),
    ("date", 1, "= '1970-01-02'", True), ("date", 1, "< '1970-01-02 10:00:00'", None),
    ("date", 1, "< TIMESTAMP_NTZ'1970-01-02 10:00:00'", True),
    ("date", 1, "< TIMESTAMP'1970-01-02 10:00:00Z'", None),
    ("timestamp", 0, "= '1970-01-01T00:00:00Z'", True), ("timestamp", 0, "= '1970-01-01'", None),
    ("timestamp_ntz", 0, "= '1970-01-01'", True), ("boolean", True, "> false", True),
]  # fmt: skip


@pytest.mark.parametrize(("data_type", "stored", "comparison", "expected"), COMPARED)
def test_comparisons(data_type: str, stored: Any, comparison: str, expected: bool | None) -> None:
    from decimal import Decimal

    from pyzorder.engines.values import null_of

    given = Decimal(stored) if data_type.startswith("decimal") else stored
    data = pa.array([given], null_of(data_type).data.type)
    columns = {("c",): Value(data, data_type)}
    if expected is None:
        with pytest.raises(NotUnderstood):
            value(f"c {comparison}", columns)
    else:
        assert value(f"c {comparison}", columns).data.to_pylist() == [expected]


def test_time_zones() -> None:
    """As in Spark, a clock time that occurs twice denotes its first occurrence, and a clock time
    that is skipped is moved forward by the length of the gap."""
    zone = "America/Los_Angeles"
    hour = 3_600_000_000
    assert micros_of("1970-01-01", "timestamp", zone) == 8 * hour
    first = micros_of("2024-11-03 01:30:00", "timestamp", zone)
    assert micros_of("2024-11-03 02:30:00", "timestamp", zone) - first == 2 * hour
    skipped = micros_of("2024-03-10 02:30:00", "timestamp", zone)
    assert skipped == micros_of("2024-03-10 03:30:00", "timestamp", zone)
