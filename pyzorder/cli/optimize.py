"""pyzorder optimize: runs OPTIMIZE … ZORDER BY."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from pyzorder.cli.display import Display
from pyzorder.cli.options import Settings, session_options
from pyzorder.cli.output import files, print_json, print_table, print_text
from pyzorder.cli.running import run
from pyzorder.cli.sessions import session
from pyzorder.cli.targets import ColumnsType, Target, check_condition, listed, target_argument
from pyzorder.text.wording import percent

TARGET_SIZE = "spark.sql.zorder.optimize.targetFileSize"

STOPPED = "Interrupted: all unpublished work was undone, and no rows were lost."

#: A size in Spark's notation: a number of bytes, or a number with a unit.
SIZE = re.compile(r"0*[1-9][0-9]*([kmgtp]?b?)", re.IGNORECASE)


class SizeType(click.ParamType[str]):
    """A parameter type for file sizes in Spark's notation, such as 64m."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Returns the size as written. Rejects invalid sizes before Spark is started."""
        text = str(value).strip()
        if not SIZE.fullmatch(text):
            raise click.BadParameter(
                f"{value!r} is not a file size: write a number of bytes, or a number with a unit, "
                "such as 64m."
            )
        return text


@click.command(
    "optimize",
    epilog="""\b
Examples:
  pyzorder optimize /data/sales --zorder-by customer_id,sold_date
  pyzorder optimize sales --hive --where "day = '2024-01-01'" --zorder-by a,b
  pyzorder optimize ./sales --zorder-by a,b --dry-run --json
  pyzorder optimize ./sales --zorder-by a --target-size 64m
""",
)
@target_argument
@click.option(
    "--zorder-by",
    "--columns",
    type=ColumnsType(),
    multiple=True,
    metavar="A,B,…",
    help="Columns to cluster by; default: those that the table declares, or else those of the last "
    "OPTIMIZE. If there are none, small files are merged.",
)
@click.option(
    "--auto",
    is_flag=True,
    help="Choose the columns for the queries recorded for the table (zorder.workload.record).",
)
@click.option(
    "--where", metavar="SQL", help="Optimize only the partitions that match this condition."
)
@click.option(
    "--target-size",
    type=SizeType(),
    metavar="SIZE",
    help="Size of the new files, such as 64m; default: the size set for the last OPTIMIZE, or else "
    "one that depends on the size of the table.",
)
@click.option("--full", is_flag=True, help="Also rewrite files that are already clustered.")
@click.option("--force", is_flag=True, help="Proceed even if lookups get slower; implies --full.")
@click.option("--dry-run", is_flag=True, help="Change nothing; report what would happen.")
@session_options
def command(
    settings: Settings,
    target: Target,
    zorder_by: Sequence[Sequence[str]],
    auto: bool,
    where: str | None,
    target_size: str | None,
    full: bool,
    force: bool,
    dry_run: bool,
) -> None:
    """Cluster a table's files so that queries open fewer of them.

    Ctrl-C undoes all changes that have not been published. No row is lost or duplicated.
    """
    if auto and zorder_by:
        raise click.UsageError("--auto and --zorder-by exclude each other.")
    if target_size is not None:
        settings = replace(settings, conf={**settings.conf, TARGET_SIZE: target_size})
    with session(settings) as spark:
        check_condition(spark, where)

        def statement() -> dict[str, Any]:
            optimize = target.table(spark).optimize()
            if where is not None:  # the line feed ends a comment in the condition
                optimize = optimize.where(f"(\n{where}\n)")
            if full or force:
                optimize = optimize.full()
            if dry_run:
                optimize = optimize.dryRun()
            by = listed(zorder_by)
            if auto:
                rows = optimize.executeZOrderByAuto()
            else:
                rows = optimize.executeZOrderBy(by) if by else optimize.executeCompaction()
            found: dict[str, Any] = rows.collect()[0].asDict(recursive=True)
            return found

        result = run(
            spark, statement, Display(f"OPTIMIZE {target}", settings.quiet), "OPTIMIZE", STOPPED
        )
    if settings.json:
        print_json(result)
    else:
        print_metrics(result["metrics"])


def print_metrics(metrics: dict[str, Any]) -> None:
    """Prints the metrics in a few lines."""
    remark = metrics["remark"]
    if remark and metrics["dryRun"]:
        print_text(remark)
    added, removed = metrics["filesAdded"], metrics["filesRemoved"]
    by = ", ".join(metrics["clusteringColumns"] or ())
    how = f", clustered by {by}" if by else ", merged"
    if metrics["numFilesRemoved"]:
        verb = "would replace" if metrics["dryRun"] else "replaced"
        seconds = (metrics["endTimeMs"] - metrics["startTimeMs"]) / 1000
        print_text(
            f"{files(added['totalFiles'], added['totalSize'])} {verb} "
            f"{files(removed['totalFiles'], removed['totalSize'])}{how}; {seconds:.1f} s."
        )
    if metrics["openedShares"]:
        print_table(
            ["column", "files per lookup", "after", "per 1% range", "after"],
            [
                [share["column"], *(percent(share[name]) for name in SHARES)]
                for share in metrics["openedShares"]
            ],
        )
    if remark and not metrics["dryRun"]:
        print_text(remark)


SHARES = ("lookupBefore", "lookupAfter", "rangeBefore", "rangeAfter")
