"""pyzorder advise: recommends clustering columns for a table and its queries."""

from __future__ import annotations

import sys
from typing import Any

import click

from pyzorder.advisor import Advice, advise
from pyzorder.advisor.what_if import check_parser
from pyzorder.cli.display import Display
from pyzorder.cli.options import Settings, session_options
from pyzorder.cli.output import print_json, print_text
from pyzorder.cli.running import UNCHANGED, run
from pyzorder.cli.sessions import session
from pyzorder.cli.targets import Target, target_argument

SHARE = click.FloatRange(0, 1)


@click.command(
    "advise",
    epilog="""\b
Examples:
  pyzorder advise /data/sales --queries workload.sql
  pyzorder advise db.sales --hive --event-log /var/log/spark-events --json
  pyzorder advise /data/sales --queries - --max-columns 2 < workload.sql
""",
)
@target_argument
@click.option(
    "--queries",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="File of SQL statements, separated by semicolons; - reads stdin.",
)
@click.option(
    "--event-log",
    metavar="DIR",
    help="A Spark event log or a folder of logs (spark.eventLog.dir), in any store that Spark can "
    "read.",
)
@click.option(
    "--max-columns",
    type=click.IntRange(1, 4),
    default=4,
    show_default=True,
    metavar="1-4",
    help="Maximum number of clustering columns.",
)
@click.option(
    "--margin",
    type=SHARE,
    default=0.1,
    show_default=True,
    metavar="0-1",
    help="Minimum reduction in the total size of opened files that justifies an additional column.",
)
@click.option(
    "--least-gain",
    type=SHARE,
    default=0.2,
    show_default=True,
    metavar="0-1",
    help="Minimum reduction in the total size of opened files that justifies a change.",
)
@click.option(
    "--sample-rows",
    type=click.IntRange(1, 2**31 - 1),
    default=500_000,
    show_default=True,
    metavar="N",
    help="Maximum number of rows to sample.",
)
@click.option(
    "--weigh/--no-weigh",
    default=True,
    show_default=True,
    help="Read the table once and write a few trial files, to measure file sizes.",
)
@session_options
def command(
    settings: Settings,
    target: Target,
    queries: str | None,
    event_log: str | None,
    **limits: Any,
) -> None:
    """Recommend clustering columns for a table and its queries.

    Without --queries and --event-log, the queries are those that sessions have recorded (see
    pyzorder workload). The advice may be to change nothing. Layouts are evaluated on a sample, and
    the table is not changed. The last line is the statement to run, if any.
    """
    check_parser()
    asked = [sys.stdin.read()] if queries == "-" else queries
    with session(settings) as spark:
        advice: Advice = run(
            spark,
            lambda: advise(spark, target.text(), asked, event_log, **limits),
            Display(f"advice on {target}", settings.quiet),
            "the advisor",
            UNCHANGED,
        )
    if settings.json:
        print_json(advice.to_dict())
    else:
        print_text(str(advice))
