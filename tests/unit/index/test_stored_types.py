"""The column types in sql/FORMAT.md are converted to Arrow types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyzorder.index.stored_types import stored_type

TYPES = [
    ("boolean", pa.bool_()),
    ("byte", pa.int8()),
    ("long", pa.int64()),
    ("decimal(38,0)", pa.decimal128(38, 0)),
    ("decimal(5,2)", pa.decimal128(5, 2)),
    ("date", pa.date32()),
    ("timestamp", pa.timestamp("us", tz="UTC")),
    ("timestamp_ntz", pa.timestamp("us")),
    ("time(6)", pa.time64("us")),
    ("interval year to month", pa.int32()),
    ("interval month", pa.int32()),
    ("interval day to second", pa.int64()),
    ("binary", pa.binary()),
    ("string", pa.string()),
    ("varchar(7)", pa.string()),
]


@pytest.mark.parametrize(("name", "arrow"), TYPES)
def test_types(name: str, arrow: pa.DataType) -> None:
    assert stored_type(name) == arrow
