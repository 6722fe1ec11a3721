"""Functions that may be applied to a column in a comparison, and types that may be compared.

The functions are those of the Scala class MonotonicFunctions. For every non-null value, such a
function f returns a non-null value or fails, and a <= b implies f(a) <= f(b). The bounds mapped
through f therefore enclose the values mapped through f. Functions that depend on the local date
qualify only if the session's time zone has a single, fixed offset. In other zones, clocks may be
set back across midnight, so that a day begins twice.
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
    """A column's position in the index, and its name in the scan, in SQL notation."""

    number: int
    source: str


#: Returns the column whose name has these parts. Raises NotUnderstood if the column cannot be used.
Find = Callable[[tuple[str, ...]], Found]

INTEGRAL = ("tinyint", "smallint", "int", "bigint")
FLOATS = frozenset({"float", "double"})

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}

_DATES = {"YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MON", "MM", "WEEK"}
_DAYS = _DATES | {"DAY", "DD"}
_FRACTIONS = {"SECOND", "MILLISECOND", "MICROSECOND"}

_FIXED_ZONE = re.compile(r"(UTC|GMT|Z|Etc/UTC|(UTC|GMT)?[+-]\d{1,2}(:\d{2}){0,2})")


class Types:
    """The types that Spark determines for expressions over a scan."""

    def __init__(
        self, ask: Callable[[list[str]], list[str]], time_zone: str, date_is_string: bool
    ) -> None:
        """Creates an empty cache of types.

        Args:
            ask: returns the types of expressions that are given as SQL, or raises.
            time_zone: the session's time zone.
            date_is_string: whether Spark compares dates with strings as strings.
        """
        self._ask = ask
        self._known: dict[str, str | None] = {}
        self.has_one_offset = _FIXED_ZONE.fullmatch(time_zone) is not None
        self.date_is_string = date_is_string

    def of(self, text: str) -> str:
        """Returns the name of an expression's type, such as decimal(3,1).

        Raises:
            NotUnderstood: Spark cannot determine the type.
        """
        if text not in self._known:
            try:
                self._known[text] = self._ask([text])[0]
            except Exception:  # the query itself will report the error
                self._known[text] = None
        known = self._known[text]
        if known is None:
            raise NotUnderstood(f"Spark cannot determine the type of {text}")
        return known


@dataclass(frozen=True)
class Side:
    """A column of the index, or a monotonic function of one.

    Attributes:
        number: the column's position in the index.
        data_type: the type of the value.
        source: SQL that computes the value from the scan's columns.
        low: SQL that computes the lower bound, mapped through the function, from the index's
            columns.
        high: the same for the upper bound.
    """

    number: int
    data_type: str
    source: str
    low: str
    high: str

    @property
    def bounded(self) -> str:
        """SQL that is true if both bounds are known."""
        return f"(b{self.number} AND {self.low} IS NOT NULL AND {self.high} IS NOT NULL)"

    @property
    def empty(self) -> str:
        """SQL that is true if all values are known to be null or NaN."""
        return f"e{self.number}"

    @property
    def may_be_nan(self) -> str:
        """SQL that is true if a value may be NaN."""
        return f"q{self.number}"

    @property
    def may_be_null(self) -> str:
        """SQL that is true if a value may be null."""
        return f"u{self.number}"

    @property
    def may_have_value(self) -> str:
        """SQL that is true if a value may be non-null."""
        return f"v{self.number}"


def side(node: exp.Expression, find: Find, types: Types) -> Side:
    """Converts an expression that is a column or a monotonic function of one.

    Raises:
        NotUnderstood: the expression is neither.
    """
    node = unwrapped(node)
    if isinstance(node, exp.Column):
        number, source = find(parts_of(node))
        return Side(number, types.of(source), source, f"m{number}", f"x{number}")
    inner, template = _applied(node, find, types)
    source, low, high = (template.format(text) for text in (inner.source, inner.low, inner.high))
    return Side(inner.number, types.of(source), source, low, high)


def _applied(node: exp.Expression, find: Find, types: Types) -> tuple[Side, str]:
    """Returns a monotonic function's argument, and the function's SQL with {0} as the argument."""
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
    raise NotUnderstood("the expression might not preserve order")


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
        return True  # rounding to nearest preserves the order
    if b.startswith("decimal") and is_number(a) and a not in FLOATS:
        return all(least <= most for least, most in zip(_digits(a), _digits(b), strict=True))
    if (a, b) == ("timestamp", "date"):
        return one_offset
    return (a, b) in {
        ("float", "double"), ("date", "timestamp"), ("date", "timestamp_ntz"),
        ("timestamp_ntz", "date"),
    }  # fmt: skip


def comparable(column: str, other: str, constant: bool = True) -> bool:
    """Whether a column's bounds can decide a comparison of the column with another value.

    This requires that Spark's conversions of columns preserve the order, and that Spark compares
    values in the order of the column's type. Numbers are converted to a wider type or to double.
    Rounding preserves the order, and values that do not fit become NULL or raise an error. A
    constant string is converted to the type of the number or date that it is compared with. A
    column of strings may be compared only with strings.

    Args:
        column: the column's type.
        other: the type of the other value.
        constant: whether the other value is a constant rather than a column.
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
    # Converting local times to instants does not preserve the order, because a local time that
    # falls into a daylight-saving gap is moved past later local times. A column of local times must
    # therefore not be converted.
    zoneless = "timestamp_ntz"
    if constant:
        return (
            column in days and other in days and not (column == zoneless and other == "timestamp")
        )
    return {column, other} in ({"date", "timestamp"}, {"date", zoneless})


def keeps_values(a: str, b: str) -> bool:
    """Whether Spark can compare values of two types without converting any of them to NULL."""
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
    """Returns the digits before and after the decimal point of an integer or decimal type."""
    if data_type in _DIGITS:
        return _DIGITS[data_type], 0
    precision, scale = decimal_of(data_type)
    return precision - scale, scale


def is_number(data_type: str) -> bool:
    """Whether a type is numeric."""
    return data_type in INTEGRAL or data_type in FLOATS or data_type.startswith("decimal")


def is_ordered(data_type: str) -> bool:
    """Whether the bounds of columns of this type follow the order of its values. Strings are
    ordered by bytes."""
    return (
        is_number(data_type)
        or data_type in {"boolean", "date", "timestamp", "timestamp_ntz", "string", "binary"}
        or data_type.startswith("interval ")
    )


def decimal_of(data_type: str) -> tuple[int, int]:
    """Returns the precision and scale of a decimal type."""
    precision, scale = re.findall(r"\d+", data_type)
    return int(precision), int(scale)
