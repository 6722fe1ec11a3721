"""Tracks a statement's progress through the status of its Spark jobs, and can cancel those jobs."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pyzorder import bridge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

SECONDS = 0.25
"""Interval between looks at a running statement."""

#: Title of jobs that do not belong to any step of a statement.
OTHER = "examine the table's files"

#: The step that writes the new files. In its last stage, each task writes one file.
LAYS_OUT = "lay out the new files"


@dataclass(frozen=True)
class Step:
    """A Spark job that a statement runs.

    Attributes:
        number: the job's number.
        title: what the job does.
        running: whether it is still running.
        share: the share of the job that is done, between 0 and 1.
        rows: the rows read in the current stage.
        tasks: the number of finished tasks and the number of all tasks.
        files: the number of written files and the number of all files, if the job writes files.
    """

    number: int
    title: str
    running: bool
    share: float
    rows: int
    tasks: tuple[int, int]
    files: tuple[int, int] | None = None


class Steps(Protocol):
    """Tracks the progress of a statement that runs in its own thread."""

    def thread(self, work: Callable[[], None]) -> threading.Thread:
        """Creates the thread for the statement."""

    def begin(self) -> None:
        """Prepares tracking. The statement's thread calls this before it runs the statement."""

    def now(self, last: bool = False) -> list[Step]:
        """Returns the steps that have begun, in order.

        Each step is returned at least once after it has ended.

        Args:
            last: whether the statement has ended.
        """

    def cancel(self) -> None:
        """Cancels the running jobs. Call this again for jobs that start later."""


class JobSteps:
    """Tracks a statement's jobs in a classic session, where they form a job group."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._group = f"pyzorder-{uuid.uuid4()}"
        self._ended: set[int] = set()

    def thread(self, work: Callable[[], None]) -> threading.Thread:
        from pyspark import InheritableThread

        return InheritableThread(target=work, daemon=True)  # has its own JVM thread

    def begin(self) -> None:
        self._spark.sparkContext.setJobGroup(self._group, "pyzorder", interruptOnCancel=True)

    def now(self, last: bool = False) -> list[Step]:
        jobs = bridge.jobs(self._spark, self._group, self._ended)
        self._ended.update(job.number for job in jobs if not job.running)
        return [step_of(job) for job in jobs]

    def cancel(self) -> None:
        self._spark.sparkContext.cancelJobGroup(self._group)


class RemoteSteps:
    """Tracks the jobs that a Spark Connect server starts for the statement, which has its own tag.

    Each update is a query. Updates become less frequent the longer the statement runs, because
    servers keep the status of only a limited number of queries.
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
    """Returns the `Steps` for a session."""
    return RemoteSteps(spark) if bridge.is_connect(spark) else JobSteps(spark)


def watched(
    spark: SparkSession, statement: Callable[[], T], watch: Callable[[Steps, bool], None]
) -> T:
    """Runs a statement in a thread, and calls `watch` about four times per second until it ends.

    Args:
        watch: receives the statement's steps and whether the statement has ended. It can cancel the
            statement. An exception that it raises does not affect the statement.

    Returns:
        The result of the statement.

    Raises:
        Exception: the statement raised it.
    """
    steps = steps_of(spark)
    results: list[T] = []
    failures: list[Exception] = []

    def work() -> None:
        try:
            steps.begin()
            results.append(statement())
        except Exception as failure:
            failures.append(failure)

    thread = steps.thread(work)
    thread.start()
    while thread.is_alive():
        thread.join(SECONDS)
        with suppress(Exception):
            watch(steps, not thread.is_alive())
    if failures:
        raise failures[0]
    return results[0]


def step_of(job: bridge.JobStatus) -> Step:
    """Converts a job to a step. Stages have equal weight, regardless of their number of tasks."""
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
