"""pyzorder workload: shows or deletes the recorded workload of a table."""

from __future__ import annotations

from datetime import timezone
from typing import Any

import click

from pyzorder import bridge
from pyzorder.cli.display import Display
from pyzorder.cli.options import Settings, session_options
from pyzorder.cli.output import print_json, print_table
from pyzorder.cli.running import UNCHANGED, run
from pyzorder.cli.sessions import session
from pyzorder.cli.targets import Target, missing_tables_explained, target_argument
from pyzorder.history import clock

HEAD = ("queries", "filters", "join keys", "last")


@click.command(
    "workload",
    epilog="""\b
Examples:
  pyzorder workload /data/sales
  pyzorder workload db.sales --hive --json
  pyzorder workload db.sales --hive --clear
""",
)
@target_argument
@click.option("--clear", is_flag=True, help="Delete what has been recorded.")
@session_options
def command(settings: Settings, target: Target, clear: bool) -> None:
    """Show how queries have read a table.

    Sessions record this if spark.sql.zorder.workload.record or the table property
    zorder.workload.record is true. A question mark stands for a constant.
    """
    with session(settings) as spark:
        if clear and bridge.is_connect(spark):
            raise click.UsageError("--clear does not work with --remote.")
        rows: list[dict[str, Any]] = run(
            spark,
            lambda: rows_of(spark, target, clear),
            Display(f"workload of {target}", settings.quiet),
            "the workload",
            UNCHANGED,
        )
    if settings.json:
        print_json([json_of(row) for row in rows])
    elif clear:
        click.echo(f"The recorded workload of {target} has been deleted.")
    elif not rows:
        click.echo(
            "Nothing has been recorded. To record queries, set the table property "
            "'zorder.workload.record' = 'true'."
        )
    else:
        print_table(list(HEAD), [shown(row) for row in rows])


def rows_of(spark: Any, target: Target, clear: bool) -> list[dict[str, Any]]:
    """Returns the rows of `zorder_workload`. With `clear`, deletes the workload first."""
    with missing_tables_explained(spark, str(target)):
        if clear:
            bridge.clear_workload(spark, target.text())
        return [row.asDict() for row in target.table(spark).workload().collect()]


def json_of(row: dict[str, Any]) -> dict[str, Any]:
    """Returns a row with its times and days as text."""
    days = {str(day): queries for day, queries in sorted(row["days"].items())}
    return {**row, "last": row["last"].astimezone(timezone.utc).isoformat(), "days": days}


def shown(row: dict[str, Any]) -> list[object]:
    """Returns the table row for the queries of one form."""
    last = clock(row["last"].astimezone(timezone.utc))
    return [row["queries"], row["filters"], ", ".join(row["join_keys"]), last]
