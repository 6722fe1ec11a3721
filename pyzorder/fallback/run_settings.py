"""What a session tells the writers it starts."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyzorder.fallback.read_settings import own_setting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Where tests may kill a writer: what spark.sql.zorder.test.killAt may name.
POINTS = (
    "after-prepare", "after-verify", "after-markers", "after-index", "after-retire", "mid-retire",
    "before-commit", "after-commit", "mid-move-in", "moved-in", "before-done", "after-done",
    "recovery-begun", "recovery-decided", "recovery-undoing", "recovery-completing",
    "recovery-moved", "vacuum-found", "mid-vacuum",
)  # fmt: skip


@dataclass(frozen=True)
class RunSettings:
    """
    take_over  the number of the run whose writer is declared dead; empty: none
    kill_at    the point that the process is killed at; empty: none
    """

    take_over: str = ""
    kill_at: str = ""

    @classmethod
    def of(cls, spark: SparkSession) -> RunSettings:
        """Those of a session."""
        return cls(own_setting(spark, "journal.takeOver"), own_setting(spark, "test.killAt"))

    def reach(self, point: str) -> None:
        """Kills the process here, as SIGKILL does, if the session asks for it."""
        assert point in POINTS, point
        if point == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def at_first(self, point: str) -> Callable[[int], None]:
        """Reaches a point when the first of something is done."""
        return lambda count: self.reach(point) if count == 1 else None
