"""Strategies that generate SQL predicates on columns of given types. Values are written as SQL
literals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.support.values import BY_TYPE

Draw = Callable[[st.SearchStrategy[Any]], Any]

COMPARISONS = ["=", "<", "<=", ">", ">=", "!=", "<=>"]
INTEGERS = ["tinyint", "smallint", "int", "bigint"]
NUMBERS = [*INTEGERS, "float", "double", "decimal(7,2)", "decimal(38,10)"]

#: For each type, expressions that contain a column `{0}`, and the types of their results.
AROUND: dict[str, list[tuple[str, str]]] = {
    **{t: [("{0} + 1", "bigint"), ("-{0}", "bigint"), ("{0} % 7", "int"), ("abs({0})", "bigint"),
           ("CAST({0} AS BIGINT)", "bigint"), ("CAST({0} AS DOUBLE)", "double"),
           ("CAST({0} AS STRING)", "string"), ("CAST({0} AS DECIMAL(38,10))", "decimal(38,10)"),
           ("CAST({0} AS TINYINT)", "tinyint"), ("coalesce({0}, 3)", "bigint")] for t in INTEGERS},
    "float": [("CAST({0} AS DOUBLE)", "double"), ("-{0}", "float"), ("CAST({0} AS INT)", "int")],
    "double": [("CAST({0} AS FLOAT)", "float"), ("abs({0})", "double"), ("{0} * 2", "double")],
    "decimal(7,2)": [("CAST({0} AS DECIMAL(38,10))", "decimal(38,10)"), ("CAST({0} AS INT)", "int"),
                     ("-{0}", "decimal(7,2)"), ("CAST({0} AS DOUBLE)", "double")],
    "date": [("year({0})", "int"), ("month({0})", "int"), ("trunc({0}, 'MONTH')", "date"),
             ("trunc({0}, 'YEAR')", "date"), ("CAST({0} AS TIMESTAMP)", "timestamp"),
             ("CAST({0} AS TIMESTAMP_NTZ)", "timestamp_ntz"), ("date_add({0}, 1)", "date"),
             ("date_trunc('QUARTER', {0})", "timestamp"), ("dayofmonth({0})", "int")],
    "timestamp": [("CAST({0} AS DATE)", "date"), ("year({0})", "int"), ("hour({0})", "int"),
                  ("date_trunc('DAY', {0})", "timestamp"), ("date_trunc('MONTH', {0})", "timestamp"),
                  ("date_trunc('HOUR', {0})", "timestamp"), ("trunc({0}, 'MONTH')", "date"),
                  ("CAST({0} AS TIMESTAMP_NTZ)", "timestamp_ntz"), ("unix_micros({0})", "bigint")],
    "timestamp_ntz": [("CAST({0} AS DATE)", "date"), ("year({0})", "int"),
                      ("CAST({0} AS TIMESTAMP)", "timestamp"),
                      ("date_trunc('DAY', {0})", "timestamp")],
    "string": [("upper({0})", "string"), ("substring({0}, 1, 4)", "string"), ("length({0})", "int"),
               ("concat({0}, 'x')", "string"), ("reverse({0})", "string"), ("trim({0})", "string")],
    "binary": [("hex({0})", "string"), ("length({0})", "int")],
    "boolean": [("CAST({0} AS INT)", "int"), ("NOT {0}", "boolean")],
}  # fmt: skip


def near(data_type: str, i: int) -> Any:
    """The value at position `i` in an ascending series of closely spaced values. `i` is between 0
    and 1000."""
    if data_type == "boolean":
        return i > 500
    if data_type == "tinyint":
        return i // 8 - 60
    if data_type in INTEGERS:
        return i - 300
    if data_type in ("float", "double"):
        return (i - 300) / 8
    if data_type.startswith("decimal"):
        scale = int(data_type[8:-1].split(",")[1])
        return Decimal(i - 300).scaleb(-min(scale, 2)).quantize(Decimal(1).scaleb(-scale))
    if data_type == "date":
        return i * 5 - 2000
    if data_type in ("timestamp", "timestamp_ntz"):
        return i * 5_400_000_000 + 1_289_000_000_000_000
    if data_type == "interval second":
        return (i - 300) * 1_000_000
    if data_type == "string":
        return f"abc{i:04d}" + ("é" if i % 7 == 0 else "")
    if data_type == "binary":
        return b"\x00\xfe" + i.to_bytes(2, "big")
    return i - 300


def values(data_type: str) -> st.SearchStrategy[Any]:
    """Generates values of the type. Most values are in a narrow range, but null and arbitrary
    values can also occur."""
    return st.one_of(
        *[st.integers(0, 1000).map(lambda i: near(data_type, i))] * 6, of_type(data_type)
    )


def of_type(data_type: str) -> st.SearchStrategy[Any]:
    """Generates arbitrary values of the type, except for values that cannot be written in SQL."""
    if data_type == "interval second":
        return st.integers(-(10**15), 10**15)
    if data_type == "string":
        long = st.sampled_from(["y" * 1100, "abc0500" + "z" * 1100, "\U0010ffff" * 3, "abc", "ab "])
        return st.one_of(BY_TYPE["string"], long)
    return BY_TYPE[data_type]


def literal(value: Any, data_type: str) -> str:
    """A value as a constant SQL expression."""
    if value is None:
        return "NULL"
    if data_type == "boolean":
        return str(value).lower()
    if data_type in INTEGERS:
        suffix = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}[data_type]
        least = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}[data_type]
        text = f"{value}{suffix}"
        return f"CAST('{value}' AS {data_type})" if value == -(2 ** (least - 1)) else text
    if data_type in ("float", "double"):
        text = "NaN" if math.isnan(value) else repr(value)
        text = {"inf": "Infinity", "-inf": "-Infinity"}.get(text, text)
        return f"CAST('{text}' AS {data_type})"
    if data_type.startswith("decimal"):
        return f"CAST('{value}' AS {data_type})"
    if data_type == "date":
        return f"date_from_unix_date({value})"
    if data_type == "timestamp":
        return f"timestamp_micros({value})"
    if data_type == "timestamp_ntz":
        moment = datetime(1970, 1, 1) + timedelta(microseconds=value)
        return f"TIMESTAMP_NTZ'{moment.isoformat(sep=' ')}'"
    if data_type == "interval month":
        return f"make_ym_interval(0, {value})"
    if data_type == "interval second":
        return f"make_dt_interval(0, 0, 0, {Decimal(value).scaleb(-6):f})"
    if data_type == "binary":
        return f"X'{value.hex()}'"
    plain = value.isascii() and value.replace(" ", "").isalnum()
    return f"'{value}'" if plain else f"CAST(X'{value.encode().hex()}' AS STRING)"


@st.composite
def leaves(draw: Draw, columns: Mapping[str, str]) -> str:
    """Generates a comparison, an IN list, a LIKE pattern or a null test."""
    name = draw(st.sampled_from(sorted(columns)))
    data_type, side = columns[name], name
    kind = draw(st.sampled_from(
        ["compare"] * 6 + ["in"] * 3 + ["between"] * 2 + ["null", "around", "around", "column",
                                                           "other", "like", "like"]))  # fmt: skip
    if kind == "around" and data_type in AROUND:
        text, data_type = draw(st.sampled_from(AROUND[data_type]))
        side = text.format(name)
    if kind == "null":
        return f"{side} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if kind == "like" and data_type == "string":
        return draw(likes(side))
    if kind == "column":
        others = sorted(n for n, t in columns.items() if t == data_type)
        return f"{side} {draw(st.sampled_from(COMPARISONS))} {draw(st.sampled_from(others))}"
    if kind == "other":
        group = [g for g in (NUMBERS, ["date", "timestamp", "timestamp_ntz"]) if data_type in g]
        data_type = draw(st.sampled_from(group[0])) if group else data_type
    if kind == "in":
        list_ = draw(st.lists(values(data_type), min_size=1, max_size=14))
        nulls = ["NULL"] if draw(st.integers(0, 9)) == 0 else []
        words = ", ".join([literal(v, data_type) for v in list_] + nulls)
        return f"{side} {draw(st.sampled_from(['', '', 'NOT ']))}IN ({words})"
    if kind == "between":
        low, high = draw(values(data_type)), draw(values(data_type))
        return f"{side} BETWEEN {literal(low, data_type)} AND {literal(high, data_type)}"
    operator = draw(st.sampled_from(COMPARISONS))
    right = literal(draw(values(data_type)), data_type)
    turned = draw(st.booleans())
    return f"{right} {operator} {side}" if turned else f"{side} {operator} {right}"


@st.composite
def likes(draw: Draw, side: str) -> str:
    """Generates LIKE patterns with and without wildcards, regular expressions, and functions that
    compare parts of strings."""
    text = draw(st.integers(0, 1000).map(lambda i: near("string", i)))
    cut = text[: draw(st.integers(0, len(text)))]
    pattern = draw(st.sampled_from([f"{cut}%", cut, f"{cut}_%", f"%{cut}", f"{cut[:3]}%{cut[4:]}"]))
    form = draw(st.sampled_from(
        ["{0} LIKE '{1}'", "{0} LIKE '{1}'", "{0} NOT LIKE '{1}'", "startswith({0}, '{2}')",
         "NOT startswith({0}, '{2}')", "contains({0}, '{2}')", "{0} ILIKE '{1}'",
         "{0} RLIKE '^{2}{3}'", "NOT {0} RLIKE '^{2}{3}'"]))  # fmt: skip
    rest = draw(st.sampled_from(["", ".*", ".", "$", "?", "*", "+.", "|b", "[a-c]"]))
    return str(form.format(side, pattern, cut, rest))


@st.composite
def predicates(draw: Draw, columns: Mapping[str, str], depth: int = 3) -> str:
    """Generates a predicate with at most `depth` levels."""
    kind = draw(st.sampled_from(
        ["leaf"] * 5 + ["AND"] * 4 + ["OR"] * 3 + ["NOT", "NOT", "other"])) if depth else "leaf"  # fmt: skip
    part = predicates(columns, depth - 1)
    if kind == "leaf":
        return str(draw(leaves(columns)))
    if kind == "NOT":
        return f"NOT ({draw(part)})"
    if kind in ("AND", "OR"):
        return f"({draw(part)}) {kind} ({draw(part)})"
    forms: Sequence[str] = (
        "({0}) IS NULL", "({0}) IS NOT NULL", "({0}) <=> true", "({0}) = ({1})", "coalesce({0}, {1})",
        "CASE WHEN {0} THEN {1} END", "if({0}, {1}, {2})", "({0}) IS TRUE", "({0}) IS NOT FALSE",
        "({0}) <=> ({1})", "({0}) != ({1})",
    )  # fmt: skip
    return str(draw(st.sampled_from(forms)).format(draw(part), draw(part), draw(part)))
