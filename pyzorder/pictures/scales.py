"""Scales map the values of a column to positions on an axis, and set the axis's ticks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyzorder.layout import Column, Value

MINUTE = 60 * 10**6
"""A minute in microseconds."""

DAY = 1440 * MINUTE
"""A day in microseconds."""

TICKS = 7
"""Maximum number of ticks."""

TICK_LENGTH = 19
"""Maximum length of a tick label."""

TICK_LETTERS = 48
"""Maximum total length of an axis's tick labels."""


@dataclass(frozen=True)
class Scale:
    """A scale for an axis.

    Attributes:
        label: the label of the axis.
        place: maps a value to its position.
        dress: sets the ticks of a matplotlib Axis.
    """

    label: str
    place: Callable[[Any], float]
    dress: Callable[[Any], None]
    step: float = 0.0
    """Distance between the positions of neighboring values; 0 for continuous values."""


def scale(
    column: Column,
    bounds: Collection[Value],
    zone: str,
    ranks: bool = False,
    limits: Collection[Value] = (),
) -> Scale:
    """Returns a scale for the values of a column.

    Args:
        bounds: the bounds to place.
        zone: the time zone for labels.
        ranks: whether to place values by their rank among `bounds` and `limits`. Strings and
            binary values are always placed this way.
        limits: more values to place. They do not get ticks if values are placed by rank.
    """
    if ranks or is_text(column):
        return ranked(column, bounds, zone, limits)
    values = [*bounds, *limits]
    kind = kind_of(column)
    if kind in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        return calendar(column, values, zone)
    if kind == "BOOLEAN":
        return Scale(plain(column.name), float, binary, step=1.0)
    if kind == "TIME":
        return Scale(f"{plain(column.name)} (hours)", lambda v: v / 3.6e12, numbers)
    if kind == "INTERVAL":
        return interval(column)
    step = 1.0 if kind in ("TINYINT", "SMALLINT", "INT", "BIGINT") else 0.0
    return Scale(plain(column.name), float, numbers, step)


def kind_of(column: Column) -> str:
    """Returns a column's type without parameters."""
    return column.type.split("(")[0].split(" ")[0]


def is_text(column: Column) -> bool:
    """Whether values of a column can only be placed by rank."""
    return kind_of(column) in ("STRING", "CHAR", "VARCHAR", "BINARY")


def ranked(
    column: Column, bounds: Collection[Value], zone: str, limits: Collection[Value]
) -> Scale:
    """Returns a scale that spaces all values evenly."""
    ordered = sorted({*bounds, *limits})
    places = {value: float(rank) for rank, value in enumerate(ordered)}
    named = sorted(set(bounds))
    texts = [text_of(value, column.type, zone) for value in named]
    label = f"{plain(column.name)} (by rank)"
    if column.type.startswith("TIMESTAMP"):
        days = sorted({text[:10] for text in texts})
        if len(days) >= TICKS:
            texts = [text[:10] for text in texts]
        elif len(days) == 1:
            label = f"{label}\n{days[0]}"
            texts = [text[11:] for text in texts]
    else:
        texts = shortened(texts)
    longest = max(map(len, texts), default=1)
    ticks = max(2, min(TICKS, TICK_LETTERS // (longest + 2)))
    chosen = sorted({round(i * (len(named) - 1) / (ticks - 1)) for i in range(ticks) if named})
    at, said = [places[named[i]] for i in chosen], [plain(texts[i]) for i in chosen]
    return Scale(
        label,
        places.__getitem__,
        lambda axis: fixed(axis, at, said),
        step=1.0,
    )


def calendar(column: Column, values: Collection[Any], zone: str) -> Scale:
    """Returns a scale of dates and times.

    If Python's dates cannot represent the values, returns a scale of days since 1970.
    """
    unit = 1 if column.type == "DATE" else DAY
    clock = zone_of(column.type, zone)
    days = [value / unit for value in values]
    if any(not in_calendar(day) for day in days):
        return Scale(f"{plain(column.name)} (days since 1970)", lambda v: v / unit, numbers)

    def dress(axis: Any) -> None:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(tz=clock, maxticks=TICKS)
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator, tz=clock, show_offset=False))

    step = 1.0 if column.type == "DATE" else 0.0
    label = f"{column.name} ({clock})" if column.type == "TIMESTAMP" else column.name
    # Tick labels may lack the year or the day, so the axis label shows the full dates at both ends.
    if values:
        ends = (text_of(end, column.type, zone)[:10] for end in (min(values), max(values)))
        label += "\n" + " to ".join(dict.fromkeys(ends))
    return Scale(plain(label), lambda v: v / unit, dress, step)


def interval(column: Column) -> Scale:
    """Returns a scale of months or days."""
    if "YEAR" in column.type or "MONTH" in column.type:
        return Scale(f"{plain(column.name)} (months)", float, numbers)
    return Scale(f"{plain(column.name)} (days)", lambda v: v / DAY, numbers)


def numbers(axis: Any) -> None:
    """Sets ticks for numbers. The axis does not show an offset."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    formatter = ScalarFormatter(useOffset=False)
    formatter.set_powerlimits((-5, 10))
    axis.set_major_formatter(formatter)
    axis.set_major_locator(MaxNLocator(nbins=TICKS - 1))


def binary(axis: Any) -> None:
    """Sets ticks for false and true."""
    fixed(axis, [0, 1], ["false", "true"])


def fixed(axis: Any, places: Sequence[float], texts: list[str]) -> None:
    """Makes the axis show only these ticks."""
    from matplotlib.ticker import FixedFormatter, FixedLocator

    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter(FixedFormatter(texts))


def text_of(value: Any, type_: str, zone: str) -> str:
    """Formats a value for display."""
    if type_ == "BOOLEAN":
        return str(value).lower()
    if type_ == "BINARY":
        return f"0x{value}"
    if type_ == "DATE" and in_calendar(value):
        return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
    if type_.startswith("TIMESTAMP") and in_calendar(value / DAY):
        start = datetime(1970, 1, 1, tzinfo=timezone.utc)
        told = (start + timedelta(microseconds=value)).astimezone(zone_of(type_, zone))
        whole = told.replace(tzinfo=None)
        return whole.isoformat(sep=" ", timespec="auto" if value % MINUTE else "minutes")
    if type_.startswith("TIME("):
        return str(timedelta(microseconds=value // 1000))
    return f"{value:g}" if isinstance(value, float) else str(value)


def in_calendar(day: float) -> bool:
    """Whether Python's dates can represent a day and the 400 days before and after it. The day is
    given as days since 1970."""
    return date.min.toordinal() + 400 < day + 719_163 < date.max.toordinal() - 400


def zone_of(type_: str, zone: str) -> tzinfo:
    """Returns the time zone for values of this type, or UTC if Python does not support Spark's
    zone."""
    offset = re.fullmatch(r"(?:GMT|UTC|UT)?([+-])(\d{1,2}):?(\d\d)?(?::(\d\d))?", zone)
    if type_ != "TIMESTAMP":
        return timezone.utc
    if offset is not None:
        sign, hours, minutes, seconds = offset.groups(default="0")
        away = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        return timezone(-away if sign == "-" else away)
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        return timezone.utc


def shortened(texts: Sequence[str]) -> list[str]:
    """Shortens labels to `TICK_LENGTH`: drops a long common prefix, and truncates the rest."""
    if max(map(len, texts), default=0) > TICK_LENGTH:
        common = len(os.path.commonprefix(list(texts)))
        if len(texts) > 1 and common > TICK_LENGTH // 2:
            texts = ["…" + text[common:] for text in texts]
    return [text if len(text) <= TICK_LENGTH else text[: TICK_LENGTH - 1] + "…" for text in texts]


def plain(text: str) -> str:
    """Escapes text so that all characters are visible and matplotlib does not parse formulas in
    it."""
    visible = (c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
    return "".join(visible).replace("$", r"\$")
