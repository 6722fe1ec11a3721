"""Filters over the bounds of columns, one function a kind of predicate: SQL that Spark evaluates.

Over column number n of the index a filter speaks of these columns, a row a file:

    m<n>, x<n>  the bounds, of the column's own type
    b<n>        both bounds are known
    e<n>        proved: no value but null and NaN
    q<n>        a value is NaN, or may be
    u<n>, v<n>  a row may be null; may be something else (NaN counts)
    w<n>        the lower bound is no zero, of which floating-point numbers have two

Spark itself converts bounds and constants as it converts the query's, so that all that is decided
here is which conversions keep the order. Whatever it finds to be NULL keeps the file.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from pyzorder.index.predicates.monotonic_functions import FLOATS, Side, Types, comparable, is_number

#: None: every file is kept.
Filter = str | None

NEVER = "false"


def both(left: Filter, right: Filter) -> Filter:
    """`a AND b`: a side without a proof is no loss."""
    return f"({left} AND {right})" if left and right else left or right


def either(left: Filter, right: Filter) -> Filter:
    """`a OR b`: a side without a proof leaves none."""
    return f"({left} OR {right})" if left and right else None


@dataclass(frozen=True)
class Constant:
    """A value that depends on no row: its text and Spark's name of its type."""

    text: str
    data_type: str

    @property
    def is_nan(self) -> str:
        """Whether it is NaN."""
        return f"isnan(CAST({self.text} AS DOUBLE))"


def compared(kind: type, side: Side, constant: Constant, types: Types) -> Filter:
    """`kind`, a comparison of sqlglot's, of a column and a constant."""
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
        # NaN is above every value, and equals itself.
        test = bounded(low.format("<" if kind is exp.LT else "<="))
        test = f"({test} OR ({nan} AND {side.may_have_value}))"
    elif kind in (exp.GT, exp.GTE):
        test = bounded(high.format(">" if kind is exp.GT else ">="))
        test = f"({test} OR {side.may_be_nan})"
    elif kind is exp.EQ:
        test = bounded(f"({low.format('<=')} AND {high.format('>=')})")
        test = f"({test} OR ({nan} AND {side.may_be_nan}))"
    else:  # FALSE or NULL for all rows only where all that are no null are the value
        zero = f"{value} = 0" if side.data_type in FLOATS else "false"
        only = f"coalesce({side.low} = {side.high} AND {side.high} = {value}, false)"
        test = (f"({side.may_have_value} AND (NOT {side.bounded} OR {side.may_be_nan} OR "
                f"coalesce({zero}, true) OR NOT {only}))")  # fmt: skip
    return f"({value} IS NOT NULL AND {test})"


def ordered(kind: type, left: Side, right: Side) -> Filter:
    """`l < r`, `l <= r` of two columns."""
    if not comparable(left.data_type, right.data_type, constant=False):
        return None
    test = f"coalesce({left.low} {'<' if kind is exp.LT else '<='} {right.high}, true)"
    return (
        f"({left.may_have_value} AND {right.may_have_value} AND ({right.may_be_nan} OR (NOT "
        f"{left.empty} AND NOT {right.empty} AND (NOT {left.bounded} OR NOT {right.bounded} OR "
        f"{test}))))"
    )


def listed(side: Side, constants: list[Constant], negated: bool, types: Types) -> Filter:
    """IN: each value is searched, not the list's span. A NULL in it makes NOT IN never TRUE.

    All are compared as one type, the column's as well.
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
    # One by one: an array of them would first find a type of their own.
    values = f"array({', '.join(f'CAST({c.text} AS {common})' for c in constants)})"
    is_float = common in FLOATS
    nan = f"exists({values}, r -> coalesce(isnan(r), false))" if is_float else "false"
    among = f"exists({values}, r -> coalesce({low} <= r AND {high} >= r, r IS NOT NULL))"
    if not negated:
        unbounded = f"(NOT {side.empty} AND {side.may_have_value})"
        return (f"((CASE WHEN {side.bounded} THEN {among} ELSE {unbounded} END) OR "
                f"({nan} AND {side.may_be_nan}))")  # fmt: skip
    zero = "r != 0" if is_float else "true"  # -0.0 and 0.0 are equal, but not to every hash set
    only = f"exists({values}, r -> coalesce({low} = {high} AND {high} = r AND {zero}, false))"
    return (
        f"(NOT exists({values}, r -> r IS NULL) AND {side.may_have_value} AND "
        f"({side.may_be_nan} OR NOT {side.bounded} OR NOT {only}))"
    )


def starting(side: Side, prefix: Constant, negated: bool) -> Filter:
    """The beginning of a string, or NOT that."""
    p = prefix.text
    starts = [f"coalesce(startswith({b}, {p}), {{0}})" for b in (side.low, side.high)]
    if negated:  # where both bounds start with it, all between them do
        all_start = " AND ".join(s.format("false") for s in starts)
        outside = f"NOT ({side.bounded} AND {all_start})"
        return f"({p} IS NOT NULL AND {side.may_have_value} AND {outside})"
    inside = (f"(coalesce({side.high} >= {p}, true) AND (coalesce({side.low} <= {p}, true) OR "
              f"{starts[0].format('true')}))")  # fmt: skip
    unbounded = f"(NOT {side.empty} AND {side.may_have_value})"
    return f"({p} IS NOT NULL AND (CASE WHEN {side.bounded} THEN {inside} ELSE {unbounded} END))"
