"""Functions that may stand between a column and a comparison, and types that may be compared.

The functions are those of Scala's MonotonicFunctions: each gives a value for every value, or
fails, and a <= b implies f(a) <= f(b); so that bounds through f enclose the values through f. Those
that go by local days do so only where the session's time zone has one offset for ever: elsewhere a
clock that is set back over midnight repeats a day.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp

from pyzorder.index.predicates.conditions import (
    NotUnderstood,
    call_of,
    parts_of,
    type_text,
    unwrapped,
)


class Found(NamedTuple):
    """A column's number in the index, and its name in the scan, as SQL writes it."""

    number: int
    source: str


#: Finds the column of a name; raises NotUnderstood.
Find = Callable[[tuple[str, ...]], Found]

INTEGRAL = ("tinyint", "smallint", "int", "bigint")
FLOATS = frozenset({"float", "double"})

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}

_DATES = {"YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MON", "MM", "WEEK"}
_DAYS = _DATES | {"DAY", "DD"}
_FRACTIONS = {"SECOND", "MILLISECOND", "MICROSECOND"}

_FIXED_ZONE = re.compile(r"(UTC|GMT|Z|Etc/UTC|(UTC|GMT)?[+-]\d{1,2}(:\d{2}){0,2})")


class Types:
    """Asks Spark for the types of expressions over a scan."""

    def __init__(
        self, ask: Callable[[list[str]], list[str]], time_zone: str, date_is_string: bool
    ) -> None:
        """`ask` gives the types of texts or raises; `date_is_string`: Spark compares dates with
        strings as strings."""
        self._ask = ask
        self._known: dict[str, str | None] = {}
        self.has_one_offset = _FIXED_ZONE.fullmatch(time_zone) is not None
        self.date_is_string = date_is_string

    def of(self, text: str) -> str:
        """The type's name, such as decimal(3,1). Raises NotUnderstood: Spark does not know it."""
        if text not in self._known:
            try:
                self._known[text] = self._ask([text])[0]
            except Exception:  # the query will say what is wrong with it
                self._known[text] = None
        known = self._known[text]
        if known is None:
            raise NotUnderstood(f"{text} has no type")
        return known


@dataclass(frozen=True)
class Side:
    """
    A column of the index, or a function of one that keeps the order.

    number     of the column
    data_type  in which it is compared
    source     over the scan
    low, high  over the index: the bounds through the function
    """

    number: int
    data_type: str
    source: str
    low: str
    high: str

    @property
    def bounded(self) -> str:
        """Both bounds are known."""
        return f"(b{self.number} AND {self.low} IS NOT NULL AND {self.high} IS NOT NULL)"

    @property
    def empty(self) -> str:
        """Proved: no value but null and NaN."""
        return f"e{self.number}"

    @property
    def may_be_nan(self) -> str:
        """A value is NaN, or may be."""
        return f"q{self.number}"

    @property
    def may_be_null(self) -> str:
        """A row is null, or may be."""
        return f"u{self.number}"

    @property
    def may_have_value(self) -> str:
        """A row is something else than null, or may be."""
        return f"v{self.number}"


def side(node: exp.Expression, find: Find, types: Types) -> Side:
    """The column, or function of one, that an expression is. Raises NotUnderstood."""
    node = unwrapped(node)
    if isinstance(node, exp.Column):
        number, source = find(parts_of(node))
        return Side(number, types.of(source), source, f"m{number}", f"x{number}")
    inner, template = _applied(node, find, types)
    source, low, high = (template.format(text) for text in (inner.source, inner.low, inner.high))
    return Side(inner.number, types.of(source), source, low, high)


def _applied(node: exp.Expression, find: Find, types: Types) -> tuple[Side, str]:
    """What a proved function is applied to, and the function with {0} in its place."""
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        inner, target = side(node.this, find, types), type_text(node.args["to"])
        if _widens(inner.data_type, types.of(f"CAST(NULL AS {target})"), types.has_one_offset):
            return inner, f"CAST({{0}} AS {target})"
    name, arguments = call_of(node) or ("", [])
    if name in ("year", "date") and len(arguments) == 1:
        inner = side(arguments[0], find, types)
        if _has_days(inner.data_type, types):
            return inner, f"{name}({{0}})"
    if name == "trunc" and len(arguments) == 2 and _unit(arguments[1]) in _DATES:
        inner = side(arguments[0], find, types)
        if _has_days(inner.data_type, types):
            return inner, f"trunc({{0}}, '{_unit(arguments[1])}')"
    if name == "date_trunc" and len(arguments) == 2:
        unit, inner = _unit(arguments[0]), side(arguments[1], find, types)
        days = unit in _DAYS and types.has_one_offset
        if inner.data_type == "timestamp" and (days or unit in _FRACTIONS):
            return inner, f"date_trunc('{unit}', {{0}})"
    raise NotUnderstood("a function that may not keep the order")


def _has_days(data_type: str, types: Types) -> bool:
    return data_type in ("date", "timestamp_ntz") or (
        data_type == "timestamp" and types.has_one_offset
    )


def _unit(node: exp.Expression) -> str:
    node = unwrapped(node)
    is_text = isinstance(node, exp.Literal) and node.is_string
    return str(node.this).upper() if is_text else ""


def _widens(a: str, b: str, one_offset: bool) -> bool:
    if a == b:
        return True
    if a in INTEGRAL and b in INTEGRAL:
        return INTEGRAL.index(a) <= INTEGRAL.index(b)
    if a in INTEGRAL and b in FLOATS:
        return True  # rounding to nearest never swaps two numbers
    if b.startswith("decimal") and is_number(a) and a not in FLOATS:
        return all(least <= most for least, most in zip(_digits(a), _digits(b), strict=True))
    if (a, b) == ("timestamp", "date"):
        return one_offset
    return (a, b) in {
        ("float", "double"), ("date", "timestamp"), ("date", "timestamp_ntz"),
        ("timestamp_ntz", "date"),
    }  # fmt: skip


def comparable(column: str, other: str, constant: bool = True) -> bool:
    """Whether Spark compares a column with another value, or (`constant` False) column, so that the
    columns' own conversions keep the order and no other order than theirs is asked.

    Numbers become wider numbers, or both become doubles: rounding keeps the order, and what does
    not fit is NULL or an error. A constant string becomes the number or date that a column is
    compared with; a column of strings does not stand for anything else.
    """
    if column == other:
        return is_ordered(column)
    if other == "void":
        return constant and is_ordered(column)
    if is_number(column) and (is_number(other) or (constant and other == "string")):
        return True
    days = ("date", "timestamp", "timestamp_ntz")
    if column in days and other == "string":
        return constant
    # A local time becomes an instant, which a gap moves past later ones: not of a column.
    zoneless = "timestamp_ntz"
    if constant:
        return (
            column in days and other in days and not (column == zoneless and other == "timestamp")
        )
    return {column, other} in ({"date", "timestamp"}, {"date", zoneless})


def keeps_values(a: str, b: str) -> bool:
    """Whether Spark compares values of two types, constants or not, with none of them made NULL."""
    if a == b or "void" in (a, b):
        return True
    if is_number(a) and is_number(b):
        if FLOATS & {a, b}:
            return True
        whole, fraction = zip(_digits(a), _digits(b), strict=True)
        return max(whole) + max(fraction) <= 38
    days = ("date", "timestamp", "timestamp_ntz")
    return a in days and b in days


def _digits(data_type: str) -> tuple[int, int]:
    """Of an integer or decimal: before the point, and behind it."""
    if data_type in _DIGITS:
        return _DIGITS[data_type], 0
    precision, scale = decimal_of(data_type)
    return precision - scale, scale


def is_number(data_type: str) -> bool:
    """Whether it is a type of numbers."""
    return data_type in INTEGRAL or data_type in FLOATS or data_type.startswith("decimal")


def is_ordered(data_type: str) -> bool:
    """Whether bounds are in the order of its values; strings only in the order of their bytes."""
    return (
        is_number(data_type)
        or data_type in {"boolean", "date", "timestamp", "timestamp_ntz", "string", "binary"}
        or data_type.startswith("interval ")
    )


def decimal_of(data_type: str) -> tuple[int, int]:
    """Precision and scale."""
    precision, scale = re.findall(r"\d+", data_type)
    return int(precision), int(scale)
