"""Axes show values in their usual notation, and long tick labels are shortened."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from pyzorder.layout import Column
from pyzorder.pictures import scales

# (type, a value, its usual notation, session time zone)
TEXTS = [
    ("INT", 42, "42", "UTC"),
    ("DOUBLE", 0.5, "0.5", "UTC"),
    ("DOUBLE", 960.0, "960", "UTC"),
    ("DECIMAL(10,2)", Decimal("-1.50"), "-1.50", "UTC"),
    ("BOOLEAN", True, "true", "UTC"),
    ("STRING", "ORD", "ORD", "UTC"),
    ("BINARY", "00ff", "0x00ff", "UTC"),
    ("DATE", -141_427, "1582-10-15", "UTC"),
    ("DATE", 10**7, "10000000", "UTC"),
    ("TIMESTAMP", 0, "1970-01-01 00:00", "UTC"),
    ("TIMESTAMP", 0, "1969-12-31 19:00", "America/New_York"),
    ("TIMESTAMP", 1_500_000, "1970-01-01 05:30:01.500000", "+05:30"),
    ("TIMESTAMP", 0, "1969-12-31 22:00", "GMT-2"),
    ("TIMESTAMP_NTZ", 0, "1970-01-01 00:00", "America/New_York"),
    ("TIME(6)", 3_600_000_000_000, "1:00:00", "UTC"),
    ("INTERVAL YEAR TO MONTH", 14, "14", "UTC"),
]


@pytest.mark.parametrize(("type_", "value", "text", "zone"), TEXTS)
def test_values_as_text(type_: str, value: Any, text: str, zone: str) -> None:
    assert scales.text_of(value, type_, zone) == text


def test_dates_and_times_lie_on_matplotlib_s_calendar() -> None:
    from matplotlib.dates import num2date

    for type_, value in [("DATE", 19_000), ("TIMESTAMP", 19_000 * scales.DAY)]:
        side = scales.scale(Column("d", type_), [value], "UTC")
        assert f"{num2date(side.place(value)):%Y-%m-%d}" == "2022-01-08"


SHORT = "https://a.b/"

#: (tick labels, how they are shown)
TICKS = [
    ([], []),
    (["c0000", "c0996"], ["c0000", "c0996"]),
    (["x" * 30], ["x" * 18 + "…"]),
    ([SHORT + "00001/long", SHORT + "00015/long"], ["…01/long", "…15/long"]),
    (["a" * 30, "b" * 30], ["a" * 18 + "…", "b" * 18 + "…"]),
]


@pytest.mark.parametrize(("texts", "shown"), TICKS)
def test_texts_of_ticks(texts: list[str], shown: list[str]) -> None:
    assert scales.shortened(texts) == shown


def test_an_axis_of_times_says_of_which_days() -> None:
    days = [19_000 * scales.DAY, 19_003 * scales.DAY]
    for type_, values, label in [
        ("TIMESTAMP", days, "at (UTC)\n2022-01-08 to 2022-01-11"),
        ("TIMESTAMP_NTZ", days[:1], "at\n2022-01-08"),
        ("DATE", [19_000, 19_003], "at\n2022-01-08 to 2022-01-11"),
        ("DATE", [], "at"),
    ]:
        assert scales.scale(Column("at", type_), values, "UTC").label == label
