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
