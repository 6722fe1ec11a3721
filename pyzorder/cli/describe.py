"""pyzorder describe: DESCRIBE SKIPPING INDEX."""

from __future__ import annotations

from typing import Any

import click

from pyzorder.cli.display import Display
from pyzorder.cli.options import Settings, session_options
from pyzorder.cli.output import percent, print_json, print_table
from pyzorder.cli.running import run
from pyzorder.cli.sessions import session
from pyzorder.cli.targets import Target, target_argument

#: Headers, and which column of the statement's answer stands below each.
COLUMNS = {
    "column": "column",
    "type": "type",
    "files": "files",
    "unindexed": "unindexed",
    "unknown": "unknown",
    "average overlap": "average_overlap",
    "max depth": "max_depth",
    "one value opens": "lookup_share",
    "1 % of rows opens": "range_share",
    "clustered": "clustered",
}


@click.command(
    "describe",
    epilog="""\b
Examples:
  pyzorder describe /data/sales
  pyzorder describe db.sales --hive --json
""",
)
@target_argument
@session_options
def command(settings: Settings, target: Target) -> None:
    """Tell how well a table's files are told apart, column by column."""
    with session(settings) as spark:
        rows: list[dict[str, Any]] = run(
            spark,
            lambda: [r.asDict() for r in target.table(spark).describeSkippingIndex().collect()],
            Display(f"DESCRIBE {target}", settings.quiet),
            "DESCRIBE",
            "Interrupted; DESCRIBE changes nothing.",
        )
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
    for advice in dict.fromkeys(row["advice"] for row in rows if row["advice"]):
        click.echo(advice)
