"""SQL values as Arrow data, and the conversions that Spark applies to them.

Each type has one representation. Integers, dates (in days) and timestamps (in microseconds) are
int64, floats and doubles are float64, and strings are represented by their bytes. Only conversions
whose result is the same in every session are supported.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from pyzorder.index.predicates.conditions import NotUnderstood
from pyzorder.index.predicates.monotonic_functions import FLOATS, INTEGRAL, decimal_of

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}

#: Types whose names in Spark's JSON differ from their names in SQL.
_IN_SQL = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}

#: Maximum number of digits of a decimal in Spark.
_MOST_DIGITS = 38

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})"
    r"(?:[ T](\d{2}:\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?(?: ?(Z|UTC|[+-]\d{2}:\d{2}))?)?"
)

_EPOCH = datetime(1970, 1, 1)
_MICROS_PER_DAY = 86_400_000_000


class Value(NamedTuple):
    """Values of an expression.

    Attributes:
        data: an array with one value per file, a scalar or, for an SQL array, a list of values.
        data_type: the name of the type in Spark SQL.
    """

    data: Any
    data_type: str


def sql_name(data_type: Any) -> str:
    """Returns the SQL name of a type in the index."""
    return _IN_SQL.get(str(data_type), str(data_type))


def represented(data: Any, data_type: str) -> Any:
    """Converts Arrow data of an atomic type to the type's representation.

    Raises:
        NotUnderstood: values of the type cannot be compared.
    """
    if data_type == "date":
        return data.cast(pa.int32()).cast(pa.int64())
    if data_type in INTEGRAL:
        return data.cast(pa.int64())
    if data_type in FLOATS:
        return data.cast(pa.float64())
    if data_type in ("timestamp", "timestamp_ntz"):
        return data.cast(pa.int64())
    if data_type in ("string", "binary"):
        return data.cast(pa.binary())
    if data_type == "boolean" or data_type.startswith("decimal"):
        return data
    raise NotUnderstood(f"values of type {data_type} cannot be compared")


def of_type(data_type: str) -> Value:
    """Returns an empty column of the given type."""
    return Value(pa.array([], _stored(data_type)), data_type)


def null_of(data_type: str) -> Value:
    """Returns a null of the given type."""
    return Value(pa.scalar(None, _stored(data_type)), data_type)


def _stored(data_type: str) -> pa.DataType:
    if data_type.startswith("decimal"):
        return pa.decimal128(*decimal_of(data_type))
    if data_type == "boolean":
        return pa.bool_()
    if data_type in FLOATS:
        return pa.float64()
    return pa.binary() if data_type in ("string", "binary") else pa.int64()


def is_null_constant(value: Value) -> bool:
    """Whether a value is a constant that is null."""
    return isinstance(value.data, pa.Scalar) and not value.data.is_valid


# ---- literals -----------------------------------------------------------------------------------


def number(text: str) -> Value:
    """Returns a numeric constant of the type that Spark gives the literal."""
    if re.fullmatch(r"\d+", text):
        whole = int(text)
        if whole < 2**63:
            return Value(pa.scalar(whole, pa.int64()), "int" if whole < 2**31 else "bigint")
    if re.search("[eE]", text):
        return Value(pa.scalar(float(text), pa.float64()), "double")
    return decimal(Decimal(text))


def decimal(exact: Decimal) -> Value:
    """Returns a decimal constant whose type has as many digits as the value needs."""
    _, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > _MOST_DIGITS:
        raise NotUnderstood("a decimal has more than 38 digits")
    return Value(pa.scalar(exact, pa.decimal128(precision, scale)), f"decimal({precision},{scale})")


def text(characters: str) -> Value:
    """Returns a string constant."""
    return Value(pa.scalar(characters.encode(), pa.binary()), "string")


# ---- casts --------------------------------------------------------------------------------------


def cast(value: Value, target: str, time_zone: str | None) -> Value:
    """Converts a value to another type.

    Args:
        time_zone: the session's time zone; None if it is unknown.

    Raises:
        NotUnderstood: the conversion is not supported, or depends on the session.
    """
    source = value.data_type
    if source == target:
        return value
    if source == "void":
        return null_of(target)
    if source == "string" and isinstance(value.data, pa.Scalar):
        return _parsed(value, target, time_zone)
    if source in INTEGRAL and target in INTEGRAL:
        return _narrowed(value, target)
    if target == "double" and (source in FLOATS or source in INTEGRAL or _is_decimal(source)):
        return Value(_doubles(value), target)
    if target == "float" and (source in INTEGRAL or source in FLOATS):
        return Value(value.data.cast(pa.float32(), safe=False).cast(pa.float64()), target)
    if _is_decimal(target) and (source in INTEGRAL or _is_decimal(source)):
        return _to_decimal(value, target)
    if source == "date" and target == "timestamp_ntz":
        return Value(pc.multiply_checked(value.data, _MICROS_PER_DAY), target)
    if source == "date" and target == "timestamp" and time_zone in _UTC:
        return Value(pc.multiply_checked(value.data, _MICROS_PER_DAY), target)
    if target == "date" and (
        source == "timestamp_ntz" or (source == "timestamp" and time_zone in _UTC)
    ):
        return Value(_days(value.data), target)
    raise NotUnderstood(f"the conversion from {source} to {target} is not supported")


#: Names of UTC. In UTC, days begin at multiples of 24 hours since the epoch.
_UTC = ("UTC", "GMT", "Z", "Etc/UTC")


def _is_decimal(data_type: str) -> bool:
    return data_type.startswith("decimal")


def _doubles(value: Value) -> Any:
    """Converts each number to the nearest double."""
    if not _is_decimal(value.data_type):
        return value.data.cast(pa.float64(), safe=False)
    if isinstance(value.data, pa.Scalar):
        exact = value.data.as_py()
        return pa.scalar(None if exact is None else float(exact), pa.float64())
    return pa.array(  # the last bit of Arrow's own conversion may be wrong
        [None if exact is None else float(exact) for exact in value.data.to_pylist()], pa.float64()
    )


def _narrowed(value: Value, target: str) -> Value:
    """Converts between integer types. Raises NotUnderstood if a value does not fit."""
    limit = 1 << (_BITS[target] - 1)
    if _BITS[target] < _BITS[value.data_type]:
        fits = pc.and_(pc.greater_equal(value.data, -limit), pc.less(value.data, limit))
        if (fits if isinstance(fits, pa.Scalar) else pc.all(fits)).as_py() is False:
            raise NotUnderstood(f"a number does not fit into {target}")
    return Value(value.data, target)


def _to_decimal(value: Value, target: str) -> Value:
    try:
        return Value(value.data.cast(pa.decimal128(*decimal_of(target))), target)
    except pa.ArrowInvalid:
        raise NotUnderstood(f"a number does not fit into {target}") from None


def _days(micros: Any) -> Any:
    """Returns the day of each instant. Instants may be before the epoch."""
    halves = pc.divide(micros, _MICROS_PER_DAY)  # rounds toward zero
    before = pc.less(micros, pc.multiply(halves, _MICROS_PER_DAY))
    return pc.if_else(before, pc.subtract(halves, 1), halves)


def _parsed(value: Value, target: str, time_zone: str | None) -> Value:
    """Converts a constant string."""
    if is_null_constant(value):
        return null_of(target)
    characters = value.data.as_py().decode(errors="replace")
    if target == "date" and _DATE.fullmatch(characters):
        return Value(pa.scalar(_day_number(characters), pa.int64()), target)
    if target in ("timestamp", "timestamp_ntz"):
        micros = micros_of(characters, target, time_zone)
        return Value(pa.scalar(micros, pa.int64()), target)
    if target in INTEGRAL and re.fullmatch(r"[+-]?\d{1,18}", characters):
        return _narrowed(Value(pa.scalar(int(characters), pa.int64()), "bigint"), target)
    if target == "double" and re.fullmatch(
        r"NaN|-?Infinity|[+-]?\d+(\.\d*)?(e[+-]?\d+)?", characters, re.IGNORECASE
    ):
        return Value(pa.scalar(float(characters), pa.float64()), target)
    if target == "float" and re.fullmatch(r"NaN|-?Infinity", characters):
        return Value(pa.scalar(float(characters), pa.float64()), target)
    if _is_decimal(target) and re.fullmatch(r"[+-]?\d+(\.\d+)?", characters):
        return _to_decimal(decimal(Decimal(characters)), target)
    raise NotUnderstood(f"the string is not in a supported format of type {target}")


def _day_number(characters: str) -> int:
    try:
        return (date.fromisoformat(characters) - date(1970, 1, 1)).days
    except ValueError:
        raise NotUnderstood(f"{characters} is not a date") from None


def micros_of(characters: str, target: str, time_zone: str | None) -> int:
    """Parses a timestamp, and returns its microseconds since the epoch.

    Raises:
        NotUnderstood: the text is not a timestamp, or its instant depends on an unknown time zone.
    """
    found = _TIME.fullmatch(characters)
    if found is None:
        raise NotUnderstood("the string is not in a supported timestamp format")
    day, minutes, seconds, fraction, zone = found.groups()
    clock = f"{minutes or '00:00'}:{seconds or '00'}.{(fraction or '0').ljust(6, '0')}"
    try:
        moment = datetime.fromisoformat(f"{day} {clock}")
        if target == "timestamp_ntz":
            if zone:
                raise NotUnderstood("a timestamp without a zone is compared with one with a zone")
        elif zone:
            offset = "+00:00" if zone in ("Z", "UTC") else zone
            moment = datetime.fromisoformat(f"{day} {clock}{offset}")
        elif time_zone is None:
            raise NotUnderstood(
                f"the instant {characters} depends on a time zone: write it with a zone, such as "
                "2024-01-01 00:00:00Z, or specify the time zone"
            )
        else:
            moment = moment.replace(tzinfo=ZoneInfo(time_zone))
    except (ValueError, KeyError, OSError):
        raise NotUnderstood(f"{characters} is not a timestamp in a known time zone") from None
    if moment.tzinfo is not None:
        moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
    since = moment - _EPOCH
    return since.days * _MICROS_PER_DAY + since.seconds * 1_000_000 + since.microseconds


# ---- common types -------------------------------------------------------------------------------


def aligned(a: Value, b: Value, time_zone: str | None) -> tuple[Value, Value]:
    """Converts two values to the type that Spark uses to compare them.

    Raises:
        NotUnderstood: the type depends on the session, or the conversion is not supported.
    """
    target = common_type(a, b)
    if target is None:  # decimals of any scale are compared exactly
        whole = pa.decimal256(76, max(_scale(a.data_type), _scale(b.data_type)))
        exact = f"decimal(76,{whole.scale})"
        return Value(a.data.cast(whole), exact), Value(b.data.cast(whole), exact)
    return cast(a, target, time_zone), cast(b, target, time_zone)


def common_type(a: Value, b: Value) -> str | None:
    """Returns the type that Spark uses to compare two values.

    Returns None if Spark compares the values exactly, as decimals or integers.

    Raises:
        NotUnderstood: there is no such type, or it depends on the session.
    """
    first, second = a.data_type, b.data_type
    if first == second:
        return first
    if "void" in (first, second):
        return first if second == "void" else second
    if first in INTEGRAL and second in INTEGRAL:
        return max(first, second, key=INTEGRAL.index)
    for one, other, constant in ((a, b, second), (b, a, first)):
        if one.data_type == "double" and (constant in FLOATS or _is_exact(constant)):
            return "double"
        if one.data_type == "float" and _is_decimal(constant):
            return "double"
        if one.data_type == "float" and constant in INTEGRAL and _fits_float(other):
            return "double"  # whether Spark uses FLOAT or DOUBLE makes no difference here
        days = ("date", "timestamp", "timestamp_ntz")
        if (
            constant == "string"
            and isinstance(other.data, pa.Scalar)
            and (one.data_type in days or one.data_type in INTEGRAL)
        ):
            return one.data_type
        if one.data_type == "date" and constant in ("timestamp", "timestamp_ntz"):
            return constant
    if _is_exact(first) and _is_exact(second):
        if _scaled(first, second) > _MOST_DIGITS:
            raise NotUnderstood("no decimal type can represent the values of both sides exactly")
        return None
    raise NotUnderstood(f"{first} cannot be compared with {second}")


def _is_exact(data_type: str) -> bool:
    return data_type in INTEGRAL or _is_decimal(data_type)


def _fits_float(value: Value) -> bool:
    """Whether a value is an integer constant that FLOAT represents exactly."""
    return isinstance(value.data, pa.Scalar) and abs(value.data.as_py() or 0) <= 1 << 24


def _scale(data_type: str) -> int:
    return decimal_of(data_type)[1] if _is_decimal(data_type) else 0


def _scaled(first: str, second: str) -> int:
    """Returns the number of digits that a decimal needs to represent all values of two types."""
    whole = max(
        _DIGITS[t] if t in INTEGRAL else decimal_of(t)[0] - decimal_of(t)[1]
        for t in (first, second)
    )
    return whole + max(_scale(first), _scale(second))
