"""Translates Polars filters into conditions that can be evaluated on the index.

Polars passes a filter to a source as an expression, which can be serialized as JSON. The JSON
format is not stable. Therefore, this module supports only the kinds of expressions and the types of
constants that are listed below. All other filters are ignored and do not exclude any files. In
Polars as in Spark, NaN equals itself and is greater than every other number.
"""

from __future__ import annotations

import json
import math
import struct
import warnings
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from pyzorder.index.predicates.conditions import NotUnderstood

if TYPE_CHECKING:
    import polars as pl

_OPERATORS: dict[str, type[exp.Expression]] = {
    "Eq": exp.EQ, "NotEq": exp.NEQ, "Lt": exp.LT, "LtEq": exp.LTE, "Gt": exp.GT, "GtEq": exp.GTE,
    "EqValidity": exp.NullSafeEQ, "And": exp.And, "Or": exp.Or,
}  # fmt: skip

#: For each value of `is_between`'s `closed` argument, the comparisons with the lower and the upper
#: bound.
_CLOSED = {
    "Both": (exp.GTE, exp.LTE), "Left": (exp.GTE, exp.LT), "Right": (exp.GT, exp.LTE),
    "None": (exp.GT, exp.LT),
}  # fmt: skip

#: The target types of supported casts, and the SQL names of these types.
_CASTS = {"Int64": "BIGINT", "Float64": "DOUBLE"}

_INTEGERS = {"Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"}

#: The maximum number of values in a list. Each value is compared with all bounds.
_MOST_VALUES = 1_000

_PER_MICROSECOND = {"Nanoseconds": 1000, "Microseconds": 1}

_EPOCH = datetime(1970, 1, 1)


def conditions_of(predicate: pl.Expr) -> list[exp.Expression]:
    """Returns conditions that are TRUE for all rows that a filter keeps."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = json.loads(predicate.meta.serialize(format="json"))
    except Exception:  # any version of Polars may change the format
        return []
    found = []
    for side in _conjuncts(tree):
        try:
            found.append(_condition(side))
        except Exception:  # the format may have changed, or a value is out of range
            continue
    return found


def _conjuncts(tree: Any) -> list[Any]:
    left, found = [tree], []
    while left:
        node = left.pop()
        match node:
            case {"BinaryExpr": {"op": "And", "left": a, "right": b}}:
                left += (b, a)
            case _:
                found.append(node)
    return found


def _condition(node: Any) -> exp.Expression:
    """Translates an expression.

    Raises:
        NotUnderstood: the expression is not supported.
    """
    match node:
        case {"Column": str(name)}:
            return _column([name])
        case {"Literal": {"Scalar": {**scalar}}} if len(scalar) == 1:
            ((kind, value),) = scalar.items()
            return _constant(str(kind), value)
        case {"BinaryExpr": {"left": a, "op": str(operator), "right": b}} if operator in _OPERATORS:
            return _binary(_OPERATORS[operator], _condition(a), _condition(b))
        case {"BinaryExpr": {"left": a, "op": "NotEqValidity", "right": b}}:
            return _negated(_binary(exp.NullSafeEQ, _condition(a), _condition(b)))
        case {"Cast": {"expr": inner, "dtype": {"Literal": str(target)}}} if target in _CASTS:
            return exp.cast(_wrapped(_condition(inner)), _CASTS[target])
        case {"Function": {"input": [*arguments], "function": function}}:
            return _function(function, arguments)
    raise NotUnderstood("this Polars filter is not supported")


def _function(function: Any, arguments: Sequence[Any]) -> exp.Expression:
    match function, arguments:
        case {"Boolean": "IsNull"}, [value]:
            return _is_null(value)
        case {"Boolean": "IsNotNull"}, [value]:
            return _negated(_is_null(value))
        case {"Boolean": "IsNan"}, [value]:
            return _call("isnan", _condition(value))
        case {"Boolean": "Not"}, [value]:
            return _negated(_condition(value))
        case {"Boolean": "AllHorizontal"}, [*values] if values:
            return reduce(_both, map(_condition, values))
        case {"Boolean": {"IsBetween": {"closed": str(closed)}}}, [value, low, high] if (
            closed in _CLOSED
        ):
            above, below = _CLOSED[closed]
            return _both(
                _binary(above, _condition(value), _condition(low)),
                _binary(below, _condition(value), _condition(high)),
            )
        case {"Boolean": {"IsIn": {"nulls_equal": False}}}, [
            value,
            {"Literal": {"Scalar": {"List": [*octets]}}},
        ]:
            return exp.In(this=_wrapped(_condition(value)), expressions=_listed(octets))
        case {"StringExpr": "StartsWith"}, [value, prefix]:
            return _call("startswith", _condition(value), _condition(prefix))
        case {"StructExpr": {"FieldByName": str(name)}}, [value]:
            return _column([*_names(value), name])
    raise NotUnderstood("this Polars function is not supported")


def _names(node: Any) -> list[str]:
    match node:
        case {"Column": str(name)}:
            return [name]
        case {
            "Function": {"input": [inner], "function": {"StructExpr": {"FieldByName": str(name)}}}
        }:
            return [*_names(inner), name]
    raise NotUnderstood("a field does not belong to a column")


def _column(names: Sequence[str]) -> exp.Expression:
    if len(names) > 4:  # sqlglot does not support more parts
        raise NotUnderstood("a field is nested too deeply")
    parts = [exp.to_identifier(name, quoted=True) for name in names]
    keys = ("this", "table", "db", "catalog")
    return exp.Column(**dict(zip(keys, reversed(parts), strict=False)))


def _wrapped(node: exp.Expression) -> exp.Expression:
    return node if isinstance(node, (exp.Column, exp.Literal)) else exp.Paren(this=node)


def _binary(kind: type[exp.Expression], a: exp.Expression, b: exp.Expression) -> exp.Expression:
    return kind(this=_wrapped(a), expression=_wrapped(b))


def _both(a: exp.Expression, b: exp.Expression) -> exp.Expression:
    return _binary(exp.And, a, b)


def _negated(node: exp.Expression) -> exp.Expression:
    return exp.Not(this=_wrapped(node))


def _is_null(value: Any) -> exp.Expression:
    return exp.Is(this=_wrapped(_condition(value)), expression=exp.Null())


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


# ---- constants ----------------------------------------------------------------------------------


def _constant(kind: str, value: Any) -> exp.Expression:
    """Translates a constant of a Polars type."""
    match kind, value:
        case "Null", _:
            return exp.Null()
        case "Boolean", bool():
            return exp.Boolean(this=value)
        case _, int() if kind in _INTEGERS:
            return _integer(value)
        case "Float64", float() | int():
            return _double(float(value))
        case "Float32", float() | int():
            return _double(struct.unpack("f", struct.pack("f", value))[0])
        case "String", str():
            return exp.Literal.string(value)
        case "Binary", [*octets]:
            return exp.HexString(this=bytes(octets).hex())
        case "Decimal", [int(unscaled), int(), int(scale)]:
            return _decimal(Decimal(unscaled).scaleb(-scale))
        case "Date", int():
            return _date(_EPOCH + timedelta(days=value))
        case "Datetime", [int(count), str(unit), zone] if unit in _PER_MICROSECOND:
            micros, rest = divmod(count, _PER_MICROSECOND[unit])
            if rest == 0:
                return _moment(_EPOCH + timedelta(microseconds=micros), zone is not None)
    raise NotUnderstood(f"a constant of the Polars type {kind} is not supported")


def _integer(value: int) -> exp.Expression:
    number = exp.Literal.number(abs(value))
    return exp.Neg(this=number) if value < 0 else number


def _double(value: float) -> exp.Expression:
    text = "NaN" if math.isnan(value) else repr(value).replace("inf", "Infinity")
    return exp.cast(exp.Literal.string(text), "DOUBLE")


def _decimal(value: Decimal) -> exp.Expression:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits), scale, 1)
    return exp.cast(exp.Literal.string(f"{value:f}"), f"DECIMAL({precision}, {scale})")


def _date(moment: datetime) -> exp.Expression:
    return exp.cast(exp.Literal.string(moment.date().isoformat()), "DATE")


def _moment(moment: datetime, is_instant: bool) -> exp.Expression:
    text = moment.isoformat(sep=" ", timespec="microseconds")
    if is_instant:
        return exp.cast(exp.Literal.string(f"{text}Z"), "TIMESTAMPTZ")
    return exp.cast(exp.Literal.string(text), "TIMESTAMPNTZ")


#: For each Python class, the function that translates its values into SQL.
_OF_PYTHON: dict[type, Callable[[Any], exp.Expression]] = {
    type(None): lambda _: exp.Null(), bool: lambda value: exp.Boolean(this=value),
    int: _integer, float: _double, str: exp.Literal.string, Decimal: _decimal,
    bytes: lambda value: exp.HexString(this=value.hex()),
    date: lambda value: _date(datetime(value.year, value.month, value.day)),
}  # fmt: skip


def _listed(octets: Sequence[Any]) -> list[exp.Expression]:
    """Translates the values of a list, which Polars serializes as an Arrow stream."""
    try:
        with pa.ipc.open_stream(bytes(octets)) as stream:
            values = stream.read_all().column(0).to_pylist()
    except (pa.ArrowException, ValueError, IndexError):
        raise NotUnderstood("a list is not serialized as Arrow") from None
    if not 0 < len(values) <= _MOST_VALUES:
        raise NotUnderstood("a list has too many values")
    if not all(type(value) in _OF_PYTHON for value in values):
        raise NotUnderstood("a list has values that are not supported")
    return [_OF_PYTHON[type(value)](value) for value in values]
