"""The Arrow types of bounds in a snapshot's file."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

_STORED: dict[str, pa.DataType] = {
    "boolean": pa.bool_(), "byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(),
    "long": pa.int64(), "float": pa.float32(), "double": pa.float64(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}  # fmt: skip


def stored_type(data_type: Any) -> pa.DataType:
    """Returns the Arrow type in which a snapshot's file stores bounds of a Spark type."""
    name = str(data_type)
    if name.startswith("decimal"):
        precision, scale = re.findall(r"\d+", name)
        return pa.decimal128(int(precision), int(scale))
    if name.startswith("interval"):
        return pa.int32() if re.match("interval (year|month)", name) else pa.int64()
    if name.startswith("time("):
        return pa.time64("us")
    return _STORED.get(name, pa.string())
