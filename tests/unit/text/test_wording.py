"""Counts, sizes and shares are formatted for human readers."""

from __future__ import annotations

import math

import pytest

from pyzorder.text.wording import counted, percent, size


@pytest.mark.parametrize("count, text", [
    (0, "0 files"), (1, "1 file"), (2, "2 files"), (1234567, "1,234,567 files"),
])  # fmt: skip
def test_counted(count: int, text: str) -> None:
    assert counted(count, "file") == text


@pytest.mark.parametrize("count, text", [
    (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 19, "1.5 MiB"), (64 << 20, "64.0 MiB"),
    (256 << 20, "256 MiB"), (5 << 30, "5.0 GiB"), (3 << 50, "3072 TiB"),
])  # fmt: skip
def test_size(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize("share, text", [
    (0.0, "0%"), (0.0001, "<0.1%"), (0.001, "0.1%"), (0.0149, "1.5%"), (0.0994, "9.9%"),
    (0.0996, "10%"), (0.25, "25%"), (1.0, "100%"), (None, "–"), (math.nan, "–"), (math.inf, "–"),
])  # fmt: skip
def test_percent(share: float | None, text: str) -> None:
    assert percent(share) == text
