"""Budgets are amounts of data in bytes, with units that are powers of 1024."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pyzorder import ZOrderError
from pyzorder.maintenance.budgets import bytes_of

BUDGETS = [
    (None, math.inf), (0, 0), (1000, 1000), ("1000", 1000), ("50g", 50 * 2**30), ("50 GB", 50 * 2**30),
    ("2TiB", 2**41), ("7b", 7), ("3K", 3072),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), BUDGETS)
def test_budgets(value: Any, expected: float) -> None:
    assert bytes_of(value) == expected


@pytest.mark.parametrize("value", ["", "much", "-1", "1.5g", "50 apples", True, -3, "9" * 5000])
def test_no_budgets(value: Any) -> None:
    with pytest.raises(ZOrderError) as raised:
        bytes_of(value)
    assert raised.value.condition == "ZORDER_NOT_A_BUDGET"
