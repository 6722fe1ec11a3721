"""Runs the maintenance of tables, within a budget and a time window."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyzorder import bridge, errors
from pyzorder.failures import CONTENDED, Interrupted, condition, sentence
from pyzorder.maintenance.budgets import bytes_of
from pyzorder.maintenance.decisions import Task, decide, usefulness, worthwhile
from pyzorder.maintenance.outcome import Outcome, Result
from pyzorder.maintenance.outlook import Outlook, examine
from pyzorder.session import check_session
from pyzorder.steps import Steps, watched
from pyzorder.table import quoted, quoted_if_needed
from pyzorder.text.durations import seconds_of
from pyzorder.text.wording import duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Conditions raised if a listed table has been deleted since, or has never had any files.
GONE = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "ZORDER_NO_FILES", "ZORDER_PATH_NOT_FOUND")

Runner = Callable[[Callable[[], Any], str, float], Any]
"""Runs a function that executes statements. Also receives a title, and the time at which to cancel
the statements, on the clock `time.monotonic`."""


def maintain(
    spark: SparkSession,
    *tables: str,
    database: str | None = None,
    path: str | None = None,
    budget: int | str | None = None,
    window: timedelta | str | None = None,
    dryRun: bool = False,
) -> list[Outcome]:
    """Decides for each table whether OPTIMIZE, REFRESH or VACUUM pays off, and runs it.

    An OPTIMIZE clusters by the columns that the table declares, or else by those of its last
    OPTIMIZE. Only the partitions in which it pays off are rewritten: those in which the lookups of
    a week save more than the rewrite replaces. If the queries on the table are recorded, these are
    the lookups of the last seven days with queries; otherwise, ten lookups are assumed. The tables
    in which lookups save the most per rewritten byte come first; with a window, tables that have
    never been optimized come last. If one table fails, the others are still maintained.

    Args:
        tables: the tables' names in SQL syntax, or the paths of their folders.
        database: maintain all tables in this database instead.
        path: maintain all tables with a `_zorder` folder in this folder, or up to three levels
            below it, instead.
        budget: how many bytes the OPTIMIZE statements may replace in total, as a number or as text
            such as `50g`. Without a budget, there is no limit.
        window: how long the maintenance may take, as a timedelta or as text such as `2h`. A
            statement that is not expected to finish in time is postponed. A statement that is still
            running at the end of the window is stopped, and its unpublished work is undone.
        dryRun: whether to decide without changing anything.

    Returns:
        What was done to each table, or why nothing was done.

    Raises:
        ZOrderError: the session does not run pyzorder, or is a Spark Connect session. Also raised
            if the tables are not specified in exactly one way, or if a limit is invalid.
        AnalysisException: the database or the path does not exist.
    """
    check_maintainable(spark)
    left = math.inf if window is None else seconds_of(window, "window")
    deadline = time.monotonic() + left
    targets = targets_of(spark, tables, database, path)
    maintenance = Maintenance(spark, bytes_of(budget), deadline, dryRun, plainly(spark))
    return [*maintenance.run(targets, named=bool(tables))]


def plainly(spark: SparkSession) -> Runner:
    """Returns a runner that shows no progress."""

    def run(work: Callable[[], Any], title: str, deadline: float) -> Any:
        def watch(steps: Steps, last: bool) -> None:
            if time.monotonic() > deadline:
                steps.cancel()

        return watched(spark, work, watch)

    return run


def check_maintainable(spark: SparkSession) -> None:
    """Raises a ZOrderError unless the session can maintain tables."""
    if bridge.is_connect(spark):
        raise errors.connect_has_no_maintenance()
    check_session(spark)


def targets_of(
    spark: SparkSession, tables: Iterable[str], database: str | None, path: str | None
) -> list[str]:
    """Returns the tables to maintain, as written in statements."""
    tables = list(tables)
    if sum((bool(tables), database is not None, path is not None)) != 1:
        raise errors.maintain_what()
    if path is not None:
        return [quoted(folder) for folder in bridge.tables_below(spark, path)]
    if database is not None:
        name = database if "`" in database else quoted_if_needed(database)
        views = {view.viewName for view in spark.sql(f"SHOW VIEWS IN {name}").collect()}
        return [
            f"{name}.{quoted_if_needed(table.tableName)}"
            for table in spark.sql(f"SHOW TABLES IN {name}").collect()
            if not table.isTemporary and table.tableName not in views
        ]
    return tables


class Maintenance:
    """One maintenance run.

    Attributes:
        budget: how many bytes the run may still replace.
        outlooks: the tables that have been examined, by their target.
    """

    def __init__(
        self, spark: SparkSession, budget: float, deadline: float, dry_run: bool, runner: Runner
    ) -> None:
        """Starts a run.

        Args:
            deadline: when the run must end, on the clock `time.monotonic`.
            runner: runs the statements.
        """
        self.budget = budget
        self.outlooks: dict[str, Outlook] = {}
        self._spark = spark
        self._deadline = deadline
        self._dry_run = dry_run
        self._runner = runner
        self._speed: float | None = None
        self._named = True

    def run(self, targets: Iterable[str], named: bool) -> Iterator[Outcome]:
        """Examines all tables, then maintains them one after the other. Yields each outcome as soon
        as it is known.

        Args:
            named: whether the user has named the tables. It is then a failure if one is missing.

        Raises:
            Interrupted: a signal has stopped the run. Before this, yields an outcome for each of
                the remaining tables.
        """
        self._named = named
        waiting = [*targets]
        try:
            for target in [*waiting]:
                found = self._examined(target)
                if isinstance(found, Outcome):
                    yield found
                elif found.target not in {one.target for one in self.outlooks.values()}:
                    self.outlooks[target] = found
                    continue
                waiting.remove(target)
            for target in sorted(self.outlooks, key=self._rank):
                yield from self._maintain(target)
                waiting.remove(target)
        except Interrupted:
            for target in waiting:
                known = self.outlooks.get(target)
                name = known.target if known else target
                yield Outcome(name, "postponed", "The maintenance was interrupted.")
            raise

    def _rank(self, target: str) -> tuple[int, float]:
        """Sorts the most useful tables first. If the time is limited, tables for which it is not
        known how long an OPTIMIZE takes come last, the smallest first. Otherwise, a table that is
        too large for the window could keep all others waiting, in every run."""
        outlook = self.outlooks[target]
        if outlook.speed is None and not math.isinf(self._deadline):
            return 1, sum(part.bytes for part in worthwhile(outlook))
        return 0, -usefulness(outlook)

    def _examined(self, target: str) -> Outlook | Outcome:
        if self._left() <= 0:
            return Outcome(target, "postponed", "The window has ended.")
        try:
            found: Outlook = self._runner(
                lambda: examine(self._spark, target), f"look at {target}", self._deadline
            )
        except Interrupted:
            raise
        except Exception as failure:
            if self._is_end(failure):
                return Outcome(target, "postponed", "The window has ended.")
            return self._failed(target, failure)
        return found

    def _maintain(self, target: str) -> Iterator[Outcome]:
        outlook = self.outlooks[target]
        if not self._dry_run and worthwhile(outlook):  # files may have been added meanwhile
            again = self._examined(target)
            if isinstance(again, Outcome):
                yield again
                return
            outlook = self.outlooks[target] = again
        decision = decide(outlook, self.budget)
        if decision.nothing:
            yield Outcome(outlook.target, "nothing", decision.nothing)
        for task in decision.tasks:
            one = self._outcome(outlook, task)
            if one.result in ("done", "planned"):
                self.budget -= one.bytes
            if one.result == "done" and one.bytes and one.seconds:
                self._speed = one.bytes / one.seconds
            yield one
            if not outlook.has_index and one.result not in ("done", "planned"):
                break  # REFRESH needs the index that OPTIMIZE would have created
        if decision.postponed:
            yield outcome_of(outlook, decision.postponed, "postponed", decision.postponed.reason)

    def _outcome(self, outlook: Outlook, task: Task) -> Outcome:
        """Runs a statement, unless this is a dry run or there is too little time."""
        left = self._left()
        expected = task.bytes / (outlook.speed or self._speed or math.inf)
        if left <= 0:
            return outcome_of(outlook, task, "postponed", "The window has ended.")
        if expected > left:
            reason = f"It would take about {duration(expected)}; {duration(left)} are left."
            return outcome_of(outlook, task, "postponed", reason)
        if self._dry_run:
            return outcome_of(outlook, task, "planned", task.reason)
        began = time.monotonic()
        title = task.statement.split(" WHERE ")[0]
        try:
            rows = self._runner(
                lambda: self._spark.sql(task.statement).collect(), title, self._deadline
            )
        except Interrupted:
            raise
        except Exception as failure:
            if self._is_end(failure):
                reason = "It was stopped at the end of the window, and its work was undone."
                return outcome_of(outlook, task, "postponed", reason)
            failed = self._failed(outlook.target, failure)
            return outcome_of(outlook, task, failed.result, failed.reason)
        replaced = rows[0].metrics.filesRemoved.totalSize if task.bytes else 0
        taken = time.monotonic() - began
        return replace(
            outcome_of(outlook, task, "done", task.reason), bytes=replaced, seconds=taken
        )

    def _failed(self, target: str, failure: Exception) -> Outcome:
        if bridge.is_jvm_gone(failure) or condition(failure) == "ZORDER_JVM_GONE":
            raise failure
        kinds: dict[str | None, Result] = dict.fromkeys(CONTENDED, "in use")
        kinds["ZORDER_UNSUPPORTED_PROVIDER"] = "nothing"
        if not self._named:
            kinds |= dict.fromkeys(GONE, "nothing")
        return Outcome(target, kinds.get(condition(failure), "failed"), sentence(failure))

    def _is_end(self, failure: Exception) -> bool:
        """Whether an error occurred because the window has ended. Spark's message then says that
        a job was cancelled, and pyzorder's message may contain Spark's."""
        is_own = (condition(failure) or "").startswith("ZORDER_")
        return self._left() <= 0 and (not is_own or "cancelled" in sentence(failure))

    def _left(self) -> float:
        """Returns how many seconds are left."""
        return self._deadline - time.monotonic()


def outcome_of(outlook: Outlook, task: Task, result: Result, reason: str) -> Outcome:
    """Returns the outcome of a task that was not run."""
    columns = outlook.columns if task.statement.startswith("OPTIMIZE") else ()
    return Outcome(
        outlook.target, result, reason, task.statement, columns, task.covered, task.bytes,
        task.saved,
    )  # fmt: skip
