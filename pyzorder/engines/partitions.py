"""Finds partition columns in folders named `name=value`, and infers the same types as Spark.

The rules are those of Spark's PartitioningUtils for a folder that is read by its path, with two
exceptions. Spark reads timestamps in the session's time zone. This zone is unknown here, so
timestamps have no zone. Spark reads each escaped byte as a character. This module, like other
engines, decodes the bytes as UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from pyzorder.engines import failures

#: Hive's name for the folder of rows whose partition column is null.
NULL = "__HIVE_DEFAULT_PARTITION__"

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?|[0-9]*\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_DOUBLE = re.compile(rf"\s*({_DECIMAL.pattern}[fFdD]?|[+-]?(NaN|Infinity))\s*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?")

#: Python represents bytes of a name that are not UTF-8 as surrogates.
_NOT_UTF8 = re.compile("[\ud800-\udfff]")

_MOST_DIGITS = 38

#: The precision of the decimal type for each integer type, starting with the narrowest type.
_DIGITS = {"int": 10, "bigint": 20}


@dataclass(frozen=True)
class PartitionColumn:
    """A partition column.

    Attributes:
        name: its name.
        data_type: its type in SQL.
        values: the value in each folder.
    """

    name: str
    data_type: str
    values: dict[str, Any]

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of its values in Arrow."""
        if self.data_type.startswith("decimal"):
            return pa.decimal128(int(re.findall(r"\d+", self.data_type)[0]), 0)
        return _ARROW[self.data_type]


_ARROW = {
    "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(), "date": pa.date32(),
    "timestamp": pa.timestamp("us"), "string": pa.string(),
}  # fmt: skip


def partition_columns(root: str, folders: Sequence[str]) -> list[PartitionColumn]:
    """Returns the partition columns of a table.

    Args:
        root: the table's folder, for error messages.
        folders: the folders with data files, relative to the table's folder. An empty string stands
            for the table's folder.

    Raises:
        ZOrderError: the folders do not agree on the partition columns.
    """
    found = {folder: levels for folder in folders if (levels := _levels(root, folder))}
    if not found:
        return []
    others = {folder.lower() for folder in folders if folder not in found}
    if len({base for base, _ in found.values()} | others) > 1:
        raise failures.partition_folders(root)
    names = {tuple(name.lower() for name, _ in levels) for _, levels in found.values()}
    if len(names) > 1:
        raise failures.partition_columns(root, sorted(names)[:2])
    first = next(iter(found.values()))[1]
    columns = []
    for place, (name, _) in enumerate(first):
        texts = {folder: levels[place][1] for folder, (_, levels) in found.items()}
        data_type = reduce(_wider, map(_inferred, dict.fromkeys(texts.values())))
        data_type = "string" if data_type == "void" else data_type  # void: all values are null
        values = {folder: _value(text, data_type) for folder, text in texts.items()}
        columns.append(PartitionColumn(name, data_type, values))
    return columns


def _levels(root: str, folder: str) -> tuple[str, list[tuple[str, str]]] | None:
    """Splits a path into the part above the partition folders, and the columns' names and values.

    Only the innermost consecutive folders named `name=value` count as partition folders. Like in
    Java, bytes that are not UTF-8 read as the replacement character.
    """
    text = _NOT_UTF8.sub("\ufffd", folder)
    parts = text.split("/") if text else []
    while parts and "=" not in parts[-1]:
        parts.pop()
    levels: list[tuple[str, str]] = []
    while parts and "=" in parts[-1]:
        name, _, text = parts.pop().partition("=")
        if not name or not text:
            raise failures.partition_name(root, f"{name}={text}")
        levels.insert(0, (unescaped(name), text))
    return ("/".join(parts).lower(), levels) if levels else None


def unescaped(text: str) -> str:
    """Replaces each `%xx` in a folder's name with the byte whose hexadecimal value is xx.

    Spark does not escape non-ASCII characters. Other engines escape their UTF-8 bytes.
    """
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return unquote(text, encoding="latin-1")


def _inferred(text: str) -> str:
    """Infers the type of a value from its text in a folder's name."""
    if text == NULL:
        return "void"
    if _INTEGER.fullmatch(text):
        whole = int(text)
        if -(2**31) <= whole < 2**31:
            return "int"
        if -(2**63) <= whole < 2**63:
            return "bigint"
    if _DECIMAL.fullmatch(text):
        _, digits, exponent = Decimal(text).as_tuple()
        assert isinstance(exponent, int)
        if exponent >= 0 and len(digits) + exponent <= _MOST_DIGITS:
            return f"decimal({len(digits) + exponent},0)"
    if _DOUBLE.fullmatch(text):
        return "double"
    if _timestamp(unescaped(text)) is not None:
        return "timestamp"
    return "date" if _date(text) is not None else "string"


def _wider(a: str, b: str) -> str:
    """Returns the type of a column that contains values of both types."""
    if a == b or b == "void":
        return a
    if a == "void":
        return b
    both = {a, b}
    if both == {"int", "bigint"}:
        return "bigint"
    if both == {"int", "double"}:
        return "double"
    if both == {"date", "timestamp"}:
        return "timestamp"
    digits = [_digits(data_type) for data_type in (a, b)]
    return f"decimal({max(digits)},0)" if all(digits) else "string"


def _digits(data_type: str) -> int:
    """Returns the number of digits of an integer or decimal. Returns 0 for other types."""
    if data_type.startswith("decimal"):
        return int(re.findall(r"\d+", data_type)[0])
    return _DIGITS.get(data_type, 0)


def _value(text: str, data_type: str) -> Any:
    if text == NULL:
        return None
    if data_type in _DIGITS:
        return int(text)
    if data_type == "double":
        return float(text.strip().rstrip("fFdD") if text.strip()[-1:] in "fFdD" else text)
    if data_type.startswith("decimal"):
        return Decimal(text)
    if data_type == "date":
        return _date(text)
    if data_type == "timestamp":
        return _timestamp(unescaped(text)) or _midnight(_date(text))
    return unescaped(text)


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def _timestamp(text: str) -> datetime | None:
    found = _TIMESTAMP.fullmatch(text)
    try:
        fraction = ((found[2] or ".")[1:] + "000000")[:6] if found else ""
        return datetime.fromisoformat(f"{found[1]}.{fraction}") if found else None
    except ValueError:
        return None


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else datetime(day.year, day.month, day.day)
