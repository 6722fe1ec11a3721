"""The remaining time of a statement is shown as soon as it can be estimated."""

from __future__ import annotations

import pytest

from pyzorder.cli.display import time_left

# (share done, seconds elapsed, what is shown)
TIMES = [
    (0.0, 9.0, []),
    (1.0, 9.0, []),
    (0.5, 0.5, []),
    (0.5, 10.0, ["0:00:10 left"]),
    (0.01, 60.0, ["1:39:00 left"]),
]


@pytest.mark.parametrize(("share", "elapsed", "said"), TIMES)
def test_time_left(share: float, elapsed: float, said: list[str]) -> None:
    assert time_left(share, elapsed) == said
