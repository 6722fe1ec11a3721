"""Parses durations, such as `30min` or `2h`."""

from __future__ import annotations

import re
from datetime import timedelta

from pyzorder import errors

_UNITS = {
    "ms": 0.001, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600,
    "hour": 3600, "d": 86_400, "day": 86_400,
}  # fmt: skip


def seconds_of(duration: str | float | timedelta | None, what: str) -> float:
    """Converts a duration such as `30min` to seconds; 0 for None. As in Spark's settings, a number
    without a unit is in seconds.

    Args:
        what: what the duration is for, such as `window`. The error's message says this.

    Raises:
        ZOrderError: `duration` is not a duration.
    """
    if duration is None:
        return 0.0
    if isinstance(duration, timedelta):
        return max(0.0, duration.total_seconds())
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(duration).lower())
    unit = (found[2] or "s") if found else ""
    if unit not in _UNITS:
        unit = unit.removesuffix("s")
    if found is None or unit not in _UNITS:
        raise errors.not_a_duration(what, duration)
    return float(found[1]) * _UNITS[unit]
