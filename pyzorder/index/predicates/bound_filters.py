"""Builds Spark SQL filters over the bounds of columns, with one function per kind of predicate.

Filters refer to these columns of a table with one row per file, where n is a column's position in
the index:

    m<n>, x<n>  the lower and the upper bound, in the column's type
    b<n>        both bounds are known
    e<n>        all values are known to be null or NaN
    q<n>        a value may be NaN
    u<n>        a value may be null
    v<n>        a value may be non-null (NaN counts as non-null)
    w<n>        the lower bound is not zero (neither 0.0 nor -0.0)

Spark converts bounds and constants as it does in the query, so the functions only have to decide
which conversions preserve the order. A test that evaluates to NULL keeps the file.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from pyzorder.index.predicates.monotonic_functions import FLOATS, Side, Types, comparable, is_number

#: A filter in SQL, or None if it keeps every file.
Filter = str | None

NEVER = "false"


def both(left: Filter, right: Filter) -> Filter:
    """Combines filters for `a AND b`. If one of them is None, returns the other."""
    return f"({left} AND {right})" if left and right else left or right


def either(left: Filter, right: Filter) -> Filter:
    """Combines filters for `a OR b`. If one of them is None, returns None."""
    return f"({left} OR {right})" if left and right else None


@dataclass(frozen=True)
class Constant:
    """A constant expression. `data_type` is Spark's name for its type."""

    text: str
    data_type: str

    @property
    def is_nan(self) -> str:
        """SQL that is true if the constant is NaN."""
        return f"isnan(CAST({self.text} AS DOUBLE))"


def compared(kind: type, side: Side, constant: Constant, types: Types) -> Filter:
    """Returns the filter for a comparison of a column with a constant.

    Args:
        kind: sqlglot's class for the comparison.
    """
    if not comparable(side.data_type, constant.data_type):
        return None
    if types.date_is_string and constant.data_type == "string" != side.data_type:
        return None
    value = constant.text
    may_be_nan = is_number(side.data_type) and constant.data_type in {*FLOATS, "string"}
    nan = constant.is_nan if may_be_nan else "false"
    unbounded = f"(NOT {side.empty} AND {side.may_have_value})"

    def bounded(test: str) -> str:
        return f"(CASE WHEN {side.bounded} THEN {test} ELSE {unbounded} END)"

    low, high = (f"coalesce({b} {{0}} {value}, true)" for b in (side.low, side.high))
    if kind in (exp.LT, exp.LTE):
        # NaN is greater than every other value, and equal to itself.
        test = bounded(low.format("<" if kind is exp.LT else "<="))
        test = f"({test} OR ({nan} AND {side.may_have_value}))"
    elif kind in (exp.GT, exp.GTE):
        test = bounded(high.format(">" if kind is exp.GT else ">="))
        test = f"({test} OR {side.may_be_nan})"
    elif kind is exp.EQ:
        test = bounded(f"({low.format('<=')} AND {high.format('>=')})")
        test = f"({test} OR ({nan} AND {side.may_be_nan}))"
    else:  # a != constant: only a file whose non-null values all equal the constant is skipped
        zero = f"{value} = 0" if side.data_type in FLOATS else "false"
        only = f"coalesce({side.low} = {side.high} AND {side.high} = {value}, false)"
        test = (f"({side.may_have_value} AND (NOT {side.bounded} OR {side.may_be_nan} OR "
                f"coalesce({zero}, true) OR NOT {only}))")  # fmt: skip
    return f"({value} IS NOT NULL AND {test})"


def ordered(kind: type, left: Side, right: Side) -> Filter:
    """Returns the filter for `left < right` or `left <= right`, where both are columns."""
    if not comparable(left.data_type, right.data_type, constant=False):
        return None
    test = f"coalesce({left.low} {'<' if kind is exp.LT else '<='} {right.high}, true)"
    return (
        f"({left.may_have_value} AND {right.may_have_value} AND ({right.may_be_nan} OR (NOT "
        f"{left.empty} AND NOT {right.empty} AND (NOT {left.bounded} OR NOT {right.bounded} OR "
        f"{test}))))"
    )


def listed(side: Side, constants: list[Constant], negated: bool, types: Types) -> Filter:
    """Returns the filter for IN or NOT IN.

    The filter compares the bounds with each value, not with the range of all values. NOT IN is
    never TRUE if the list contains NULL. Spark compares the column and all values in one common
    type.
    """
    if not all(
        comparable(side.data_type, c.data_type)
        and (c.data_type == "string") == (side.data_type == "string")
        or c.data_type == "void"
        for c in constants
    ):
        return None
    texts = ", ".join(c.text for c in constants)
    common = types.of(f"array({side.source}, {texts})")
    common = common[len("array<") : -1]
    if not (common == side.data_type or comparable(side.data_type, common)):
        return None
    low, high = (f"CAST({bound} AS {common})" for bound in (side.low, side.high))
    # Cast each value separately, because Spark would first convert the elements of an array without
    # casts to a common type of their own.
    values = f"array({', '.join(f'CAST({c.text} AS {common})' for c in constants)})"
    is_float = common in FLOATS
    nan = f"exists({values}, r -> coalesce(isnan(r), false))" if is_float else "false"
    among = f"exists({values}, r -> coalesce({low} <= r AND {high} >= r, r IS NOT NULL))"
    if not negated:
        unbounded = f"(NOT {side.empty} AND {side.may_have_value})"
        return (f"((CASE WHEN {side.bounded} THEN {among} ELSE {unbounded} END) OR "
                f"({nan} AND {side.may_be_nan}))")  # fmt: skip
    zero = "r != 0" if is_float else "true"  # 0.0 = -0.0, but some hash sets distinguish them
    only = f"exists({values}, r -> coalesce({low} = {high} AND {high} = r AND {zero}, false))"
    return (
        f"(NOT exists({values}, r -> r IS NULL) AND {side.may_have_value} AND "
        f"({side.may_be_nan} OR NOT {side.bounded} OR NOT {only}))"
    )


def starting(side: Side, prefix: Constant, negated: bool) -> Filter:
    """Returns the filter for strings that start, or do not start, with a prefix."""
    p = prefix.text
    starts = [f"coalesce(startswith({b}, {p}), {{0}})" for b in (side.low, side.high)]
    if negated:  # if both bounds start with the prefix, so do all values between them
        all_start = " AND ".join(s.format("false") for s in starts)
        outside = f"NOT ({side.bounded} AND {all_start})"
        return f"({p} IS NOT NULL AND {side.may_have_value} AND {outside})"
    inside = (f"(coalesce({side.high} >= {p}, true) AND (coalesce({side.low} <= {p}, true) OR "
              f"{starts[0].format('true')}))")  # fmt: skip
    unbounded = f"(NOT {side.empty} AND {side.may_have_value})"
    return f"({p} IS NOT NULL AND (CASE WHEN {side.bounded} THEN {inside} ELSE {unbounded} END))"
