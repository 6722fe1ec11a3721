"""Evaluates filters over the index's bounds on Arrow arrays. Does not need Spark.

The filters are the SQL filters that `index.predicates` builds. The evaluator supports only the
operators and functions that occur in them, and only values whose comparison does not depend on the
session. For everything else, it raises NotUnderstood. The operand of AND or OR that contains the
unsupported part then keeps every file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from pyzorder.engines import values
from pyzorder.engines.values import Value, aligned
from pyzorder.index.predicates.conditions import (
    NotUnderstood,
    Verbatim,
    operands,
    parts_of,
    type_text,
    unwrapped,
)
from pyzorder.index.predicates.monotonic_functions import FLOATS, INTEGRAL

_COMPARED: dict[type[exp.Expression], Callable[[Any, Any], Any]] = {
    exp.EQ: pc.equal, exp.NEQ: pc.not_equal, exp.LT: pc.less, exp.LTE: pc.less_equal,
    exp.GT: pc.greater, exp.GTE: pc.greater_equal,
}  # fmt: skip

#: The results of comparisons whose right side is NaN and whose left side is any other value. NaN is
#: greater than every other value.
_WITH_NAN = {exp.EQ: False, exp.NEQ: True, exp.LT: True, exp.LTE: True, exp.GT: False,
             exp.GTE: False}  # fmt: skip

#: Functions that convert their argument to the type with the same name.
_CASTS = {*INTEGRAL, *FLOATS, "date", "timestamp"}

#: Returns the values of the column whose name has these parts. Raises NotUnderstood if the column
#: cannot be used.
Columns = Callable[[tuple[str, ...]], Value]


class Evaluator:
    """Evaluates SQL over columns."""

    def __init__(self, columns: Columns, time_zone: str | None) -> None:
        """`time_zone` is the query's time zone; None if it is unknown."""
        self._columns = columns
        self.time_zone = time_zone
        self._variables: dict[str, Value] = {}
        #: The reasons why operands of filters have been replaced since the list was last cleared.
        self.problems: list[str] = []

    def type_of(self, text: str) -> str:
        """Returns the type of an expression. Raises the same errors as `value_of`."""
        return self.value_of(text).data_type

    def value_of(self, text: str) -> Value:
        """Returns the value of an expression.

        Raises:
            NotUnderstood: the expression is not supported.
        """
        return self._value(_parsed(text))

    def keeps(self, text: str) -> Any:
        """Evaluates a filter. Returns a boolean array or scalar, with null where the filter is
        undecided.

        Raises:
            NotUnderstood: the filter as a whole is not supported.
        """
        return self._kept(_parsed(text), positive=True)

    def _kept(self, node: exp.Expression, positive: bool) -> Any:
        """Evaluates a filter, replacing its unsupported operands with `positive`.

        An operand of AND or OR can be replaced with TRUE without turning the filter from true to
        false. Below a NOT, it can be replaced with FALSE.
        """
        node = unwrapped(node)
        if isinstance(node, exp.Not):
            return pc.invert(self._kept(node.this, not positive))
        if not isinstance(node, (exp.And, exp.Or)):
            return self._boolean(node)
        combine = pc.and_kleene if isinstance(node, exp.And) else pc.or_kleene
        sides = []
        for side in (node.this, node.expression):
            try:
                sides.append(self._kept(side, positive))
            except NotUnderstood as reason:
                self.problems.append(str(reason))
                sides.append(pa.scalar(positive))
        return combine(*sides)

    def _boolean(self, node: exp.Expression) -> Any:
        found = self._value(node)
        if found.data_type not in ("boolean", "void"):
            raise NotUnderstood(f"{found.data_type} is not a condition")
        return found.data if found.data_type == "boolean" else pa.scalar(None, pa.bool_())

    def _value(self, node: exp.Expression) -> Value:
        node = unwrapped(node)
        if isinstance(node, exp.Column):
            return self._columns(parts_of(node))
        if isinstance(node, exp.Identifier):
            return self._variables[node.name]
        if isinstance(node, exp.Literal):
            literal = str(node.this)
            return values.text(literal) if node.is_string else values.number(literal)
        if isinstance(node, exp.HexString):
            return Value(pa.scalar(_octets(str(node.this)), pa.binary()), "binary")
        if isinstance(node, exp.Boolean):
            return Value(pa.scalar(bool(node.this)), "boolean")
        if isinstance(node, exp.Null):
            return Value(pa.scalar(None), "void")
        if type(node) is exp.Cast:
            target = type_text(node.args["to"]).lower().replace(", ", ",").replace("_ltz", "")
            return values.cast(self._value(node.this), _full(target), self.time_zone)
        if isinstance(node, exp.Neg):
            inner = self._value(node.this)
            return Value(pc.negate_checked(inner.data), inner.data_type)
        if isinstance(node, exp.Case) and node.this is None:
            return Value(self._case(node), "boolean")
        if type(node) in _COMPARED:
            return Value(self._compared(type(node), *operands(node)), "boolean")
        if isinstance(node, exp.Is):
            return Value(self._is(node), "boolean")
        if isinstance(node, exp.Not):
            return Value(pc.invert(self._boolean(node.this)), "boolean")
        if isinstance(node, (exp.And, exp.Or)):
            combine = pc.and_kleene if isinstance(node, exp.And) else pc.or_kleene
            sides = self._boolean(node.this), self._boolean(node.expression)
            return Value(combine(*sides), "boolean")
        if isinstance(node, exp.Anonymous):
            return self._called(str(node.this).lower(), node.expressions)
        raise NotUnderstood(f"the operator {node.key} is not supported")

    def _case(self, node: exp.Case) -> Any:
        default = node.args.get("default")
        result = self._boolean(default) if default is not None else pa.scalar(None, pa.bool_())
        for branch in reversed(node.args["ifs"]):
            condition = pc.fill_null(self._boolean(branch.this), False)
            result = pc.if_else(condition, self._boolean(branch.args["true"]), result)
        return result

    def _compared(self, kind: type, left: exp.Expression, right: exp.Expression) -> Any:
        a, b = aligned(self._value(left), self._value(right), self.time_zone)
        if a.data_type in FLOATS and _is_nan(b.data):
            return pc.if_else(pc.is_valid(a.data), _WITH_NAN[kind], pa.scalar(None, pa.bool_()))
        if a.data_type in FLOATS and _is_nan(a.data):
            raise NotUnderstood("NaN is on the left side of a comparison")
        return _COMPARED[kind](a.data, b.data)

    def _is(self, node: exp.Is) -> Any:
        if not isinstance(node.expression, exp.Null):
            raise NotUnderstood("only IS NULL is supported")
        return pc.is_null(self._value(node.this).data)

    def _called(self, name: str, arguments: list[exp.Expression]) -> Value:
        if name == "coalesce":
            return Value(pc.coalesce(*map(self._boolean, arguments)), "boolean")
        if name == "exists":
            return Value(self._exists(*arguments), "boolean")
        given = [self._value(argument) for argument in arguments]
        if name == "array":
            return Value(given, f"array<{self._common(given)}>")
        types = [value.data_type for value in given]
        if name == "isnan" and types[0] in FLOATS:
            return Value(pc.fill_null(pc.is_nan(given[0].data), False), "boolean")
        if name == "startswith" and types == ["string", "string"]:
            return Value(_starts_with(given[0].data, given[1].data), "boolean")
        if name in _CASTS and len(given) == 1:
            return values.cast(given[0], name, self.time_zone)
        if name == "year" and len(given) == 1:
            days = values.cast(given[0], "date", self.time_zone).data
            years = pc.year(days.cast(pa.int32()).cast(pa.date32()))
            return Value(years.cast(pa.int64()), "int")
        if name in ("timestamp_micros", "date_from_unix_date") and types[0] in ("int", "bigint"):
            return Value(given[0].data, "timestamp" if "micros" in name else "date")
        raise NotUnderstood(f"the function {name} is not supported")

    def _common(self, given: list[Value]) -> str:
        """Returns the common type of an array's elements."""

        def wider(a: Value, b: Value) -> Value:
            found = values.common_type(a, b)
            if found is None or {"string"} & {a.data_type, b.data_type} - {found}:
                raise NotUnderstood("an array's elements have several types")
            return Value(a.data if found == a.data_type else b.data, found)

        return reduce(wider, given).data_type

    def _exists(self, array: exp.Expression, condition: exp.Expression) -> Any:
        """Evaluates `exists(array, variable -> condition)`."""
        if not isinstance(condition, exp.Lambda) or len(condition.expressions) != 1:
            raise NotUnderstood("the second argument of exists is not a function")
        name = condition.expressions[0].name
        found = pa.scalar(False)
        for element in self._value(array).data:
            self._variables[name] = element
            found = pc.or_kleene(found, self._boolean(condition.this))
        return found


def evaluator_of(columns: Mapping[tuple[str, ...], Value], time_zone: str | None) -> Evaluator:
    """Returns an evaluator over columns with known values."""

    def find(parts: tuple[str, ...]) -> Value:
        if parts not in columns:
            raise NotUnderstood(f"{'.'.join(parts)} is unknown")
        return columns[parts]

    return Evaluator(find, time_zone)


def _parsed(text: str) -> exp.Expression:
    try:
        return parse_one(text, dialect=Verbatim)
    except (SqlglotError, RecursionError):
        raise NotUnderstood("sqlglot cannot parse the filter") from None


def _full(data_type: str) -> str:
    return "decimal(10,0)" if data_type == "decimal" else data_type


def _octets(digits: str) -> bytes:
    return bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))


def _is_nan(data: Any) -> bool:
    return isinstance(data, pa.Scalar) and data.is_valid and data.as_py() != data.as_py()


def _starts_with(data: Any, prefix: Any) -> Any:
    if not isinstance(prefix, pa.Scalar):
        raise NotUnderstood("the prefix is not a constant")
    if not prefix.is_valid:
        return pa.scalar(None, pa.bool_())
    return pc.starts_with(data, pattern=prefix.as_py())
