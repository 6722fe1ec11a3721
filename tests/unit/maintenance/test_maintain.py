"""A maintenance run orders its tables."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pyzorder.maintenance.maintain import Maintenance
from pyzorder.maintenance.outlook import Outlook, Part

MB = 1 << 20


def table(name: str, megabytes: int, saved: int, speed: float | None) -> Outlook:
    """A table in which an OPTIMIZE pays off. Sizes are in MiB."""
    part = Part(None, 4, megabytes * MB, 2, saved * MB, 10.0 * saved * MB, True)
    return Outlook(name, ("a",), "", False, "pays", "Pays off.", parts=(part,), speed=speed)


@pytest.mark.parametrize(
    ("deadline", "order"),
    [(math.inf, "huge useful small known"), (5.0, "useful known small huge")],
)
def test_order(deadline: float, order: str) -> None:
    """The most useful tables come first. If the time is limited, those that may take any time come
    last, the smallest first."""
    spark: Any = None
    maintenance = Maintenance(spark, math.inf, deadline, False, lambda work, title, end: work())
    found = [
        table("known", 10, 1, 1e6),
        table("huge", 1000, 1000, None),
        table("useful", 10, 5, 1e6),
        table("small", 10, 2, None),
    ]
    maintenance.outlooks = {one.target: one for one in found}
    assert " ".join(sorted(maintenance.outlooks, key=maintenance._rank)) == order
