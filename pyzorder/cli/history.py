"""pyzorder history: lists the past runs of OPTIMIZE, RESTORE and VACUUM on a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from pyzorder import history
from pyzorder.cli.display import Display
from pyzorder.cli.options import Settings, session_options
from pyzorder.cli.output import print_json, print_table
from pyzorder.cli.running import UNCHANGED, run
from pyzorder.cli.sessions import session
from pyzorder.cli.targets import Target, missing_tables_explained, target_argument
from pyzorder.text.wording import size

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = ("run", "operation", "began", "seconds", "result", "size before", "after", "old files kept")


@click.command(
    "history",
    epilog="""\b
Examples:
  pyzorder history /data/sales
  pyzorder history db.sales --hive --json
""",
)
@target_argument
@session_options
def command(settings: Settings, target: Target) -> None:
    """List the runs of OPTIMIZE, RESTORE and VACUUM.

    The oldest run comes first. Replaced files are kept until VACUUM or a later OPTIMIZE deletes
    them.
    """
    with session(settings) as spark:
        runs = run(
            spark,
            lambda: history_of(spark, target),
            Display(f"history of {target}", settings.quiet),
            "the listing",
            UNCHANGED,
        )
    if settings.json:
        print_json([asdict(past) for past in runs])
    elif not runs:
        click.echo("No OPTIMIZE, RESTORE or VACUUM has run.")
    else:
        print_table(list(HEAD), [shown(past) for past in runs])


def history_of(spark: SparkSession, target: Target) -> history.History:
    """Returns the history of a table's runs."""
    with missing_tables_explained(spark, str(target)):
        return history.read(spark, target.text())


def shown(past: history.Run) -> list[object]:
    """Returns the table row for a run."""
    return [
        past.run,
        past.operation,
        history.clock(past.began),
        "" if past.took is None else f"{past.took.total_seconds():.1f}",
        past.result,
        size(past.removedBytes) if past.removed else "",
        size(past.addedBytes) if past.added else "",
        size(past.keptBytes) if past.kept else "",
    ]
