"""pyzorder explain: shows which files a query opens, and why."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

import pyzorder
from pyzorder import bridge
from pyzorder.cli.display import Display
from pyzorder.cli.options import Settings, session_options
from pyzorder.cli.output import print_json, print_text
from pyzorder.cli.running import UNCHANGED, run
from pyzorder.cli.sessions import session
from pyzorder.cli.targets import missing_tables_explained
from pyzorder.explain import NO_SCAN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The nodes that pyzorder adds to a plan.
OURS = re.compile(r"ZOrder(?:Skipping|Answers) \[.*?\]")


@click.command(
    "explain",
    epilog="""\b
Examples:
  pyzorder explain 'SELECT * FROM parquet.`/data/sales` WHERE customer_id = 7'
  pyzorder explain --hive "SELECT count(*) FROM db.sales WHERE a = 7" --json
  pyzorder explain - < query.sql
""",
)
@click.argument("query")
@session_options
def command(settings: Settings, query: str) -> None:
    """Show which files a query would open, and why.

    QUERY is a SELECT, which is not run; - reads it from stdin.
    """
    if query == "-":
        query = sys.stdin.read()
    elif re.fullmatch(r"\S*/\S*", query):
        raise click.BadParameter(
            f"{query} is not a query. To explain a query on a folder, name the folder in FROM: "
            f"'SELECT * FROM parquet.`{query}` WHERE …'",
            param_hint="QUERY",
        )
    with session(settings) as spark:
        text, found = run(
            spark,
            lambda: explained(spark, query),
            Display("EXPLAIN", settings.quiet),
            "EXPLAIN",
            UNCHANGED,
        )
    if settings.json:
        print_json(found)
    else:
        print_text(text)


def explained(spark: SparkSession, query: str) -> tuple[str, list[dict[str, Any]]]:
    """Explains a query's scans. Returns text, and data for JSON."""
    with missing_tables_explained(spark):
        return of_server(spark, query) if bridge.is_connect(spark) else of_session(spark, query)


def of_session(spark: SparkSession, query: str) -> tuple[str, list[dict[str, Any]]]:
    """Explains a query in a classic session with pyzorder.explain."""
    bridge.require_query(spark, query)
    scans = pyzorder.explain(spark.sql(query))
    return str(scans), [scan.details for scan in scans]


def of_server(spark: SparkSession, query: str) -> tuple[str, list[dict[str, Any]]]:
    """Explains a query in a Connect session, based on the text of pyzorder's nodes in the plan."""
    query = query.strip().rstrip(";")
    # Raises if the text is not a valid query. EXPLAIN itself would return the error as a plan.
    _ = spark.sql(f"WITH explained AS (\n{query}\n) SELECT * FROM explained").schema
    plan = spark.sql(f"EXPLAIN {query}").collect()[0][0]
    lines = OURS.findall(plan)
    return "\n".join(lines) or NO_SCAN, [{"plan": li} for li in lines]
