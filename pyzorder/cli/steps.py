"""What a running statement is at, as Spark's own books tell it, and how to stop it."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pyzorder import bridge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What a job is called that no step of a statement started.
OTHER = "look at the table's files"

#: The step whose last stage writes a file a task.
LAYS_OUT = "lay out the new files"


@dataclass(frozen=True)
class Step:
    """One Spark job of a statement; `share` is how much of it is done, `tasks` and `files` are
    (done, all)."""

    number: int
    title: str
    running: bool
    share: float
    rows: int
    tasks: tuple[int, int]
    files: tuple[int, int] | None = None


class Steps(Protocol):
    """How a kind of session tells of a statement that runs in a thread of its own."""

    def thread(self, work: Callable[[], None]) -> threading.Thread:
        """A thread for the statement."""

    def begin(self) -> None:
        """Called in that thread, before the statement."""

    def now(self, last: bool = False) -> list[Step]:
        """The steps that have begun, in their order; ended ones are told once or more.

        `last`: the statement has ended.
        """

    def cancel(self) -> None:
        """Stops what runs at this moment; what the statement begins after it is to be cancelled
        again."""


class JobSteps:
    """Of a classic session: the jobs of a group of the statement's own."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._group = f"pyzorder-{uuid.uuid4()}"
        self._ended: set[int] = set()

    def thread(self, work: Callable[[], None]) -> threading.Thread:
        from pyspark import InheritableThread

        return InheritableThread(target=work, daemon=True)  # one in the JVM, too

    def begin(self) -> None:
        self._spark.sparkContext.setJobGroup(self._group, "pyzorder", interruptOnCancel=True)

    def now(self, last: bool = False) -> list[Step]:
        jobs = bridge.jobs(self._spark, self._group, self._ended)
        self._ended.update(job.number for job in jobs if not job.running)
        return [step_of(job) for job in jobs]

    def cancel(self) -> None:
        self._spark.sparkContext.cancelJobGroup(self._group)


class RemoteSteps:
    """Of a Spark Connect client: the jobs that the server started for the statement's tag.

    Each look is a query. They become rarer as the statement goes on, because servers remember
    only so many queries.
    """

    def __init__(self, spark: SparkSession, clock: Callable[[], float] = time.monotonic) -> None:
        self._spark: Any = spark
        self._tag = f"pyzorder-{uuid.uuid4()}"
        self._clock = clock
        self._began = self._next = clock()
        self._steps: list[Step] = []

    def thread(self, work: Callable[[], None]) -> threading.Thread:
        return threading.Thread(target=work, daemon=True)

    def begin(self) -> None:
        self._spark.addTag(self._tag)

    def now(self, last: bool = False) -> list[Step]:
        now = self._clock()
        if last or now >= self._next:
            self._next = now + min(10.0, max(0.5, (now - self._began) / 20))
            self._steps = [step_of(job) for job in bridge.tagged_jobs(self._spark, self._tag)]
        return self._steps

    def cancel(self) -> None:
        self._spark.interruptTag(self._tag)


def steps_of(spark: SparkSession) -> Steps:
    """The right one for a session."""
    return RemoteSteps(spark) if bridge.is_connect(spark) else JobSteps(spark)


def step_of(job: bridge.JobStatus) -> Step:
    """A job as a step; its stages count alike, however many tasks they have."""
    shares = [stage.ended / stage.tasks for stage in job.stages if stage.tasks]
    last = job.stages[-1] if job.stages else bridge.StageStatus(0, 0, 0)
    active = next((stage for stage in job.stages if stage.ended < stage.tasks), last)
    return Step(
        number=job.number,
        title=job.step or OTHER,
        running=job.running,
        share=sum(shares) / len(shares) if shares else 0.0,
        rows=active.rows,
        tasks=(sum(s.ended for s in job.stages), sum(s.tasks for s in job.stages)),
        files=(last.ended, last.tasks) if job.step == LAYS_OUT else None,
    )
