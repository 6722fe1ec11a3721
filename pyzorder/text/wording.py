"""Formats counts, sizes and shares the same way in everything that pyzorder prints."""

from __future__ import annotations

import math


def counted(count: int, noun: str) -> str:
    """Formats a count with its noun, for example as `1 file` or `2,000 files`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def size(count: float) -> str:
    """Formats a number of bytes, for example as `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"


def percent(share: float | None) -> str:
    """Formats a share, for example as `1.5%` or `25%`. An unknown share becomes a dash."""
    if share is None or not math.isfinite(share):
        return "–"
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{share:.1%}" if 0 < share < 0.0995 else f"{share:.0%}"


def duration(seconds: float) -> str:
    """Formats a duration, for example as `0.4 s`, `12 s`, `5 min` or `1.5 h`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
