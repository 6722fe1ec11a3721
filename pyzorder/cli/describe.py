"""pyzorder describe: runs DESCRIBE SKIPPING INDEX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from pyzorder import bridge, errors, explain, history, openmetrics
from pyzorder.cli.display import Display
from pyzorder.cli.options import Settings, session_options
from pyzorder.cli.output import print_json, print_table, print_text
from pyzorder.cli.running import UNCHANGED, run
from pyzorder.cli.sessions import session
from pyzorder.cli.targets import Target, check_condition, target_argument
from pyzorder.text.wording import percent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Headers of the printed table, and the result columns that are shown under them.
COLUMNS = {
    "column": "column",
    "type": "type",
    "files": "files",
    "unindexed": "unindexed",
    "unknown": "unknown",
    "average overlap": "average_overlap",
    "max depth": "max_depth",
    "lookup opens": "lookup_share",
    "1% range opens": "range_share",
    "clustered": "clustered",
}


@click.command(
    "describe",
    epilog="""\b
Examples:
  pyzorder describe /data/sales
  pyzorder describe db.sales --hive --json
  pyzorder describe sales --hive --openmetrics --where "a = 7" > sales.prom
""",
)
@target_argument
@click.option(
    "--openmetrics",
    "metrics",
    is_flag=True,
    help="Print gauges for Prometheus in the OpenMetrics text format.",
)
@click.option(
    "--where",
    metavar="SQL",
    multiple=True,
    help="Add a gauge for the share of files that a query with this condition skips; repeatable.",
)
@session_options
def command(settings: Settings, target: Target, metrics: bool, where: Sequence[str]) -> None:
    """Show the health of a table's skipping index, column by column.

    'unknown' is the number of indexed files without bounds for the column. 'average overlap' says
    how many other files a file's range overlaps, and 'max depth' how many files, at most, have
    ranges that contain the same value.
    """
    if metrics and settings.json:
        raise click.UsageError("--json and --openmetrics are different output formats: choose one.")
    if where and not metrics:
        raise click.UsageError("--where adds a gauge to the metrics, so it requires --openmetrics.")
    with session(settings) as spark:
        for condition in where:
            check_condition(spark, condition)

        def read() -> tuple[list[dict[str, Any]], str]:
            found = target.table(spark).describeSkippingIndex().collect()
            rows = [row.asDict() for row in found]
            return rows, gauges(spark, target, rows, where) if metrics else ""

        rows, text = run(
            spark,
            read,
            Display(f"DESCRIBE {target}", settings.quiet),
            "DESCRIBE",
            UNCHANGED,
        )
    if metrics:
        click.echo(text, nl=False)
        return
    if settings.json:
        print_json(rows)
        return
    shares = {"lookup_share", "range_share"}
    print_table(
        list(COLUMNS),
        [
            [percent(row[name]) if name in shares else row[name] for name in COLUMNS.values()]
            for row in rows
        ],
    )
    if rows:
        print_text(rows[0]["verdict"])
        if rows[0]["advice"]:
            print_text(f"Run: {rows[0]['advice']}")


def gauges(
    spark: SparkSession, target: Target, rows: list[dict[str, Any]], where: Sequence[str]
) -> str:
    """Returns the table's metrics as text for Prometheus."""
    runs = history.read(spark, target.text())
    skipped = {condition: skipped_share(spark, target, condition) for condition in where}
    return openmetrics.text(openmetrics.health(str(target), rows, runs, skipped))


def skipped_share(spark: SparkSession, target: Target, condition: str) -> float:
    """Returns the share of the table's files that a query with this condition does not open."""
    if bridge.is_connect(spark):
        raise errors.connect_has_no_plan()
    scans = explain(bridge.rows(spark, target.text()).where(condition))
    files = sum(scan.total for scan in scans)
    return 1 - sum(scan.opened for scan in scans) / files if files else 0.0
