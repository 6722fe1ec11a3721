"""Reads queries from Spark's event logs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyzorder import bridge, errors
from pyzorder.advisor.plans import readings_of
from pyzorder.advisor.statements import StatementReader, is_query
from pyzorder.advisor.workload import Reading, TableNames, Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Action:
    """An SQL execution that a user started, including the executions nested in it."""

    statement: str | None = None
    readings: list[Reading] = field(default_factory=list)


def read(
    spark: SparkSession,
    path: str,
    table: TableNames,
    statements: StatementReader,
    workload: Workload,
) -> None:
    """Reads the event logs at or below a path, and adds their SQL executions to a workload.

    If spark-sql or the Thrift server ran the query, the execution's description contains the SQL
    text, and this text is analyzed. Otherwise, the physical plan is analyzed.

    Raises:
        ZOrderError: there is no log at or below the path.
    """
    actions: dict[tuple[str, int], Action] = {}
    partial = Workload()
    log = bridge.event_log(spark, path)
    for event in executions(log):
        root = event.get("rootExecutionId")
        number = event["executionId"] if root is None else root
        action = actions.setdefault((event["application"], number), Action())
        if event["executionId"] == number and is_query(event.get("description") or ""):
            action.statement = event["description"]
        elif action.statement is None:
            action.readings += readings_of(event.get("sparkPlanInfo") or {}, table, partial)
    if log.files() == 0:
        raise errors.no_event_log(path)
    texts = Counter(a.statement for a in actions.values() if a.statement is not None)
    for text, times in texts.items():
        statements.read(text, times)
    for action in actions.values():
        if action.statement is None:
            workload.add(action.readings)
    workload.merge(partial)
    for sentence in log.unread():
        workload.leave_out("event logs that could not be read to the end", sentence)


def executions(log: Any) -> Iterator[dict[str, Any]]:
    """Yields the start events of SQL executions."""
    while (line := log.next()) is not None:
        yield json.loads(line)
