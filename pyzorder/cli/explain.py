"""pyzorder explain: which files a query opens, and why."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

import pyzorder
from pyzorder import bridge
from pyzorder.cli.display import Display
from pyzorder.cli.options import Settings, session_options
from pyzorder.cli.output import print_json
from pyzorder.cli.running import run
from pyzorder.cli.sessions import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The lines of a plan that pyzorder puts there.
OURS = re.compile(r"ZOrder(?:Skipping|Answers) \[.*?\]")


@click.command(
    "explain",
    epilog="""\b
Examples:
  pyzorder explain 'SELECT * FROM parquet.`/data/sales` WHERE customer_id = 7'
  pyzorder explain --hive "SELECT count(*) FROM db.sales WHERE day > '2024-01-01'" --json
  pyzorder explain - < query.sql
""",
)
@click.argument("query")
@session_options
def command(settings: Settings, query: str) -> None:
    """Tell which files a query would open, and why; it is not run.

    QUERY is a SELECT; - reads it from stdin.
    """
    if query == "-":
        query = sys.stdin.read()
    with session(settings) as spark:
        text, found = run(
            spark,
            lambda: explained(spark, query),
            Display("EXPLAIN", settings.quiet),
            "EXPLAIN",
            "Interrupted; EXPLAIN changes nothing.",
        )
    if settings.json:
        print_json(found)
    else:
        click.echo(text)


def explained(spark: SparkSession, query: str) -> tuple[str, list[dict[str, Any]]]:
    """What is known of a query's scans, as text and for scripts."""
    return of_server(spark, query) if bridge.is_connect(spark) else of_session(spark, query)


def of_session(spark: SparkSession, query: str) -> tuple[str, list[dict[str, Any]]]:
    """pyzorder.explain, as text and as what the JVM said of each scan."""
    bridge.require_query(spark, query)
    scans = pyzorder.explain(spark.sql(query))
    return str(scans), [scan.details for scan in scans]


def of_server(spark: SparkSession, query: str) -> tuple[str, list[dict[str, Any]]]:
    """What a Connect client can see: pyzorder's lines in the plan."""
    query = query.strip().rstrip(";")
    # Fails as the query would, and where it is none; EXPLAIN would tell the failure as a plan.
    _ = spark.sql(f"WITH explained AS (\n{query}\n) SELECT * FROM explained").schema
    plan = spark.sql(f"EXPLAIN {query}").collect()[0][0]
    lines = OURS.findall(plan)
    return "\n".join(lines) or "no Parquet or ORC table is scanned", [{"plan": li} for li in lines]
