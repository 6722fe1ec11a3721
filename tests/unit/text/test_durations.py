"""Durations are parsed as in Spark's settings."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pyzorder import ZOrderError
from pyzorder.text.durations import seconds_of

DURATIONS = [
    (None, 0), (0, 0), (90, 90), ("0s", 0), ("90", 90), ("30s", 30), ("30 min", 1800), ("2h", 7200),
    ("7d", 604_800), ("1 day", 86_400), ("3 hours", 10_800), ("500ms", 0.5),
    (timedelta(minutes=1), 60),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), DURATIONS)
def test_durations(value: Any, expected: float) -> None:
    assert seconds_of(value, "window") == expected


@pytest.mark.parametrize("value", ["soon", "-1s", "1 fortnight", "", "s"])
def test_no_durations(value: str) -> None:
    with pytest.raises(ZOrderError) as raised:
        seconds_of(value, "window")
    assert raised.value.condition == "ZORDER_NOT_A_DURATION"
    assert f"The window {value!r} is not a duration." in str(raised.value)
