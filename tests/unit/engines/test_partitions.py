"""Partition columns and their types are inferred from folder names in the same way as in Spark."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from pyzorder import ZOrderError
from pyzorder.engines.partitions import NULL, partition_columns

#: (values in folder names, the inferred type, the inferred values)
TYPES: list[tuple[list[str], str, list[Any]]] = [
    (["1", "-2", "007"], "int", [1, -2, 7]),
    (["1", "3000000000"], "bigint", [1, 3_000_000_000]),
    (["1", "123456789012345678901"], "decimal(21,0)", [1, Decimal("123456789012345678901")]),
    (["1e5"], "decimal(6,0)", [Decimal(100000)]),
    (["1", "1.5"], "double", [1.0, 1.5]),
    (["3000000000", "1.5"], "string", ["3000000000", "1.5"]),
    (["1.5", "123456789012345678901"], "string", ["1.5", "123456789012345678901"]),
    (["2024-01-01", NULL], "date", [date(2024, 1, 1), None]),
    (["2024-01-01", "5"], "string", ["2024-01-01", "5"]),
    (["2024-02-30"], "string", ["2024-02-30"]),
    (["2024-1-1"], "string", ["2024-1-1"]),
    (["2024-01-01 10%3A00%3A00.5", "2024-01-02"], "timestamp",
     [datetime(2024, 1, 1, 10, 0, 0, 500_000), datetime(2024, 1, 2)]),
    (["a%2Fb", "c=d", "é"], "string", ["a/b", "c=d", "é"]),
    (["true"], "string", ["true"]),
    ([NULL], "string", [None]),
    (["1_000"], "string", ["1_000"]),
]  # fmt: skip


#: Values that engines other than Spark write. Spark reads each escaped byte as a character.
#: Python represents bytes that are not UTF-8 as surrogates.
ESCAPED: list[tuple[list[str], str, list[Any]]] = [
    (["\udcff%20", "a"], "string", ["\ufffd ", "a"]),
    (["caf%C3%A9", "caf%E9", "50%", "%zz"], "string", ["café", "café", "50%", "%zz"]),
]


@pytest.mark.parametrize(("texts", "data_type", "expected"), TYPES + ESCAPED)
def test_types(texts: list[str], data_type: str, expected: list[Any]) -> None:
    (column,) = partition_columns("/t", [f"p={text}" for text in texts])
    assert column.name == "p" and column.data_type == data_type
    assert [column.values[f"p={text}"] for text in texts] == expected


def test_levels() -> None:
    """A folder inside a partition belongs to that partition. Files outside partitions are
    ignored."""
    day, hour = partition_columns("/t", ["", "d=1/h=2", "d=1/h=3/more"])
    assert (day.name, hour.name) == ("d", "h")
    assert hour.values == {"d=1/h=2": 2, "d=1/h=3/more": 3}
    assert partition_columns("/t", ["", "x", "x/y"]) == []
    assert [c.name for c in partition_columns("/t", ["x/d=1", "x/d=2"])] == ["d"]
    assert [c.name for c in partition_columns("/t", ["Day=1", "day=2"])] == ["Day"]


@pytest.mark.parametrize(
    "folders", [["a=1", "b=1"], ["a=1", "a=1/b=2"], ["a=1", "x/a=2"], ["a=1", "x"], ["a="], ["=1"]]
)
def test_folders_that_disagree(folders: list[str]) -> None:
    with pytest.raises(ZOrderError) as raised:
        partition_columns("/t", folders)
    assert raised.value.condition == "ZORDER_PARTITION_FOLDERS"
