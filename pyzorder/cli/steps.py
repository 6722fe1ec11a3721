"""What a running statement is at, as Spark's own books tell it, and how to stop it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from pyzorder import bridge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What the jobs of pyzorder's statements do, by the Scala file that starts them.
TITLES = {
    "AskedFilters": "look up the keys of joins",
    "Collector": "read the files' statistics",
    "FileFacts": "read the files' footers",
    "IndexQuery": "ask the index",
    "RestoreCommand": "copy the replaced files back",
    "Rewrite": "lay out the new files",
    "RowCounts": "count the rows of old and new files",
    "Sample": "sample the clustering columns",
    "ScannedStatistics": "collect statistics from the rows",
    "WeighedFiles": "write a few files for trial",
}


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

    def now(self) -> list[Step]:
        """The steps that have begun, in their order; ended ones are told once or more."""

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

    def now(self) -> list[Step]:
        jobs = bridge.jobs(self._spark, self._group, self._ended)
        self._ended.update(job.number for job in jobs if not job.running)
        return [step_of(job) for job in jobs]

    def cancel(self) -> None:
        self._spark.sparkContext.cancelJobGroup(self._group)


class RemoteSteps:
    """Of a Spark Connect client: what the server tells while it runs, from Spark 4.0 on."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self._tag = f"pyzorder-{uuid.uuid4()}"
        self._steps: dict[str | None, Step] = {}
        """By the server's name of the query; of those that have tasks."""

    def thread(self, work: Callable[[], None]) -> threading.Thread:
        return threading.Thread(target=work, daemon=True)

    def begin(self) -> None:
        self._spark.addTag(self._tag)
        if hasattr(self._spark, "registerProgressHandler"):
            self._spark.registerProgressHandler(self._heard)

    def now(self) -> list[Step]:
        return list(self._steps.values())

    def cancel(self) -> None:
        self._spark.interruptTag(self._tag)

    def _heard(
        self, stages: Iterable[Any] | None, done: bool, operation_id: str | None, **_: Any
    ) -> None:
        counts = [(stage.num_completed_tasks, stage.num_tasks) for stage in stages or ()]
        tasks = sum(ended for ended, _ in counts), sum(every for _, every in counts)
        known = self._steps.get(operation_id)
        if tasks[1]:
            number = known.number if known else len(self._steps)
            share = tasks[0] / tasks[1]
            step = Step(number, "run on the server", not done, share, 0, tasks)
            self._steps[operation_id] = step
        elif known and done:  # the last word need not repeat what was said
            self._steps[operation_id] = replace(known, running=False)


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
        title=TITLES.get(job.source, "look at the table's files"),
        running=job.running,
        share=sum(shares) / len(shares) if shares else 0.0,
        rows=active.rows,
        tasks=(sum(s.ended for s in job.stages), sum(s.tasks for s in job.stages)),
        files=(last.ended, last.tasks) if job.source == "Rewrite" else None,
    )
