"""Parses the budget of a maintenance run, such as `50g`."""

from __future__ import annotations

import math
import re

from pyzorder import errors

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_SIZE = re.compile(r"\s*(\d{1,15})\s*([kmgtp]?)(?:i?b)?\s*", re.IGNORECASE)


def bytes_of(budget: int | str | None) -> float:
    """Converts a budget to bytes; infinity for None.

    Args:
        budget: a number of bytes, or text such as `50g`. Units are powers of 1024.

    Raises:
        ZOrderError: `budget` is neither.
    """
    if budget is None:
        return math.inf
    found = _SIZE.fullmatch(str(budget))
    if found is None:
        raise errors.not_a_budget(budget)
    return int(found[1]) * _UNITS[found[2].lower()]
