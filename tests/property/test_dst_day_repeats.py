"""Local days that occur twice in a time zone are detected. The tests determine these days from the
UTC offsets before and after each transition."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1)


class Transition(NamedTuple):
    """An instant in microseconds, and the UTC offsets before and after it, in seconds."""

    at: int
    before: int
    after: int

    @property
    def repeats_a_day(self) -> bool:
        """Whether the microsecond before the transition is on a later local day than the
        transition."""
        return self.day(self.at - 1, self.before) > self.day(self.at, self.after)

    @staticmethod
    def day(micros: int, offset: int) -> int:
        return (micros + offset * SECOND) // (86400 * SECOND)


def seconds(offset: str) -> int:
    """Converts an offset such as `-03:30`, `+00:01:15` or `Z` to seconds."""
    sign = -1 if offset[0] == "-" else 1
    parts = [int(part) for part in offset[1:].split(":") if part]
    return sign * sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))


def transitions(text: str) -> Iterator[Transition]:
    """Parses Java's output, such as `Transition[Overlap at 2010-11-07T00:01-02:30 to -03:30]`."""
    found = re.findall(r" at (-?[\d-]+T[\d:]+?)(Z|[+-][\d:]+) to (Z|[+-][\d:]+)\]", text)
    assert len(found) == text.count("Transition[")
    for local, before, after in found:
        at = datetime.fromisoformat(local) - timedelta(seconds=seconds(before))
        yield Transition((at - EPOCH) // timedelta(microseconds=1), seconds(before), seconds(after))


class Days:
    """The class under test, and the Java classes that define artificial zones."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self.time = jvm.java.time
        days = getattr(jvm.io.pyzorder.skipping.predicate, "DstDayRepeats$")
        self.of = getattr(days, "MODULE$").of
        self.list = jvm.java.util.ArrayList

    def transition(self, local: str, before: int, after: int) -> Any:
        """A Java transition. `local` is its local time at the offset `before`. Offsets are in
        hours."""
        offset = self.time.ZoneOffset.ofHours
        at = self.time.LocalDateTime.parse(local)
        return self.time.zone.ZoneOffsetTransition.of(at, offset(before), offset(after))

    def yearly(self, hour: int, before: int, after: int) -> Any:
        """A Java rule for a transition on November 1 of each year, half an hour after `hour` in
        local time. Offsets are in hours."""
        zone, offset = self.time.zone, self.time.ZoneOffset.ofHours
        return zone.ZoneOffsetTransitionRule.of(
            self.time.Month.NOVEMBER, 1, None, self.time.LocalTime.of(hour, 30), False,
            getattr(zone, "ZoneOffsetTransitionRule$TimeDefinition").WALL,
            offset(0), offset(before), offset(after),
        )  # fmt: skip

    def rules(self, past: list[Any], yearly: list[Any]) -> Any:
        """Applies the class under test to an artificial zone with the given transitions. The zone's
        first offset is 0."""
        zero = self.time.ZoneOffset.UTC
        return self.of(
            self.time.zone.ZoneRules.of(
                zero, zero, self.list(), self.listed(past), self.listed(yearly)
            )
        )

    def listed(self, items: list[Any]) -> Any:
        made = self.list()
        for item in items:
            made.add(item)
        return made


@pytest.fixture
def days(spark: SparkSession) -> Days:
    return Days(spark)


def micros(text: str) -> int:
    """A UTC time in microseconds since the epoch."""
    at = datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
    return int(at.timestamp()) * SECOND


def check(days: Any, repeated: list[int], others: list[int]) -> None:
    """Checks intervals whose ends are at most one microsecond before or after the given instants.
    `repeated` contains the instants of the transitions that repeat a local day."""
    asked = sorted({at + step for at in repeated + others for step in (-1, 0, 1)})
    for i, first in enumerate(asked):
        for last in (first, *asked[i + 1 : i + 6], asked[-1]):
            expected = not any(first < at <= last for at in repeated)
            assert days.inOrder(first, last) == expected, (first, last)


NOON = "2000-01-01T12:00:00"


@pytest.mark.parametrize("zone", ["America/St_Johns", "America/Juneau", "Asia/Kolkata", "UTC"])
def test_a_zone(days: Days, zone: str) -> None:
    rules = days.time.ZoneId.of(zone).getRules()
    listed = list(transitions(rules.getTransitions().toString()))
    repeated = [t.at for t in listed if t.repeats_a_day]
    assert bool(repeated) == zone.startswith("America")
    check(days.of(rules), repeated, [t.at for t in listed] + [micros(NOON)])


def test_every_zone(days: Days) -> None:
    """Repeated days are detected in every zone, both at the transitions that Java lists and at the
    next transitions according to the zone's rules."""
    with_repeats = 0
    for zone in days.time.ZoneId.getAvailableZoneIds():
        rules = days.time.ZoneId.of(zone).getRules()
        listed = list(transitions(rules.getTransitions().toString()))
        coming: list[Transition] = []
        last = listed[-1].at if listed else 0
        for _ in range(rules.getTransitionRules().size()):
            instant = days.time.Instant.ofEpochSecond(last // SECOND)
            coming += transitions(str(rules.nextTransition(instant)))
            last = coming[-1].at
        found = days.of(rules)
        repeated = [t.at for t in listed + coming if t.repeats_a_day]
        exact = not any(t.repeats_a_day for t in coming)
        ends = [micros("1800-01-01"), *repeated, last + SECOND]
        for before, after in zip(ends, ends[1:], strict=False):
            if exact:  # otherwise, days in future years may be treated as repeated
                assert found.inOrder(before, after - 1), zone
                assert found.inOrder(before, after) == (after not in repeated), zone
            assert after not in repeated or not found.inOrder(before, after), zone
        with_repeats += bool(repeated)
    assert with_repeats > 10


def test_made_up_transitions(days: Days) -> None:
    """Clocks that go back across midnight repeat a day. Clocks that go back to midnight, go back
    within a day, or go forward do not repeat a day."""
    past = [
        days.transition("2001-05-01T23:30:00", 0, 1),
        days.transition("2001-11-01T00:30:00", 1, 0),
        days.transition("2002-05-01T12:00:00", 0, 1),
        days.transition("2002-11-01T01:00:00", 1, 0),
        days.transition("2003-05-01T12:00:00", 0, 1),
        days.transition("2003-11-01T00:59:59", 1, 0),
        days.transition("2004-05-01T12:00:00", 0, 1),
        days.transition("2004-11-01T00:00:00", 1, 0),
    ]
    instants = [t.toEpochSecond() * SECOND for t in past]
    check(days.rules(past, []), [instants[1], instants[5]], instants)


def test_rules_for_the_years_to_come(days: Days) -> None:
    """If a yearly rule repeats days, every interval after the last listed transition is treated as
    if it repeated a day."""
    past = [
        days.transition("2001-05-01T12:00:00", 0, 1),
        days.transition("2001-11-01T12:00:00", 1, 0),
        days.transition("2002-05-01T12:00:00", 0, 1),
    ]
    forward, within, over = days.yearly(12, 0, 1), days.yearly(12, 1, 0), days.yearly(0, 1, 0)
    known = [t.toEpochSecond() * SECOND for t in past]
    last = known[-1]
    check(days.rules(past, [forward, within]), [], [*known, micros("2500-01-01")])
    for yearly in ([over, forward], [forward, over]):
        found = days.rules(past, yearly)
        check(found, [], [*known[:-1], last - 2])
        for after in (last, last + 1, micros("2500-01-01")):
            assert not found.inOrder(last - 1, after)
            assert not found.inOrder(known[0], after)
            assert found.inOrder(after, after)
            assert not found.inOrder(after, after + 1)
    unknown = days.rules([], [forward, over])
    assert not unknown.inOrder(0, 1) and not unknown.inOrder(micros("1500-01-01"), 0)
    assert unknown.inOrder(0, 0)
