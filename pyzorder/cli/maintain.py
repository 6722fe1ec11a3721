"""pyzorder maintain: optimizes, indexes and vacuums tables where this pays off."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyzorder.cli.display import Display
from pyzorder.cli.options import Settings, session_options
from pyzorder.cli.output import check_writable, print_json, print_table, print_text
from pyzorder.cli.running import run
from pyzorder.cli.sessions import session
from pyzorder.cli.targets import Target, TargetType, missing_tables_explained
from pyzorder.errors import ZOrderError
from pyzorder.failures import sentence
from pyzorder.maintenance import Outcome
from pyzorder.maintenance.budgets import bytes_of
from pyzorder.maintenance.maintain import Maintenance, check_maintainable, targets_of
from pyzorder.text.durations import seconds_of
from pyzorder.text.wording import duration, size

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOPPED = "Interrupted: the statement's unpublished work was undone, and no rows were lost."


class LimitType(click.ParamType[float]):
    """A parameter type for the budget and the window."""

    def __init__(self, name: str, parse: Callable[[str], float]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Returns the number of bytes or seconds."""
        try:
            return value if isinstance(value, float) else float(self._parse(value))
        except ZOrderError as failure:
            raise click.BadParameter(sentence(failure)) from None


@click.command(
    "maintain",
    epilog="""\b
Examples:
  pyzorder maintain --database sales --hive --budget 50g --window 2h
  pyzorder maintain db.orders db.returns --hive --dry-run
  pyzorder maintain --path /data --report health.html
""",
)
@click.argument("targets", nargs=-1, type=TargetType())
@click.option("--database", metavar="NAME", help="Maintain all tables in this database.")
@click.option(
    "--path",
    metavar="DIR",
    help="Maintain all tables with a _zorder folder in this folder, up to three levels deep.",
)
@click.option(
    "--budget",
    type=LimitType("size", bytes_of),
    default=math.inf,
    metavar="SIZE",
    help="Maximum total size of the files that are rewritten, such as 50g; default: no limit.",
)
@click.option(
    "--window",
    type=LimitType("duration", lambda text: seconds_of(text, "window")),
    default=math.inf,
    metavar="TIME",
    help="Maximum duration, such as 90min or 2h; a number alone is in seconds; default: no limit.",
)
@click.option("--dry-run", is_flag=True, help="Change nothing; report what would happen.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write an HTML page about all tables to this file. Needs the extra 'plot'.",
)
@session_options
def command(
    settings: Settings,
    targets: Sequence[Target],
    database: str | None,
    path: str | None,
    budget: float,
    window: float,
    dry_run: bool,
    report: Path | None,
) -> None:
    """Optimize, index and vacuum tables where this pays off.

    Decides for each TARGET, or for each table in a database or folder, whether OPTIMIZE (of the
    whole table or of some partitions), REFRESH SKIPPING INDEX or VACUUM pays off, and runs it. If
    one table fails, the others are still maintained. A table that another writer is using is left
    for the next run.
    """
    deadline = time.monotonic() + window
    if sum((bool(targets), database is not None, path is not None)) != 1:
        raise click.UsageError("Pass either TARGETs, or --database, or --path.")
    if report is not None:
        from pyzorder.maintenance import overview

        check_writable(report)
    found: list[Outcome] = []
    with session(settings) as spark:
        check_maintainable(spark)
        version = spark.version
        runner = shown(spark, settings.quiet)
        maintenance = Maintenance(spark, budget, deadline, dry_run, runner)
        try:
            texts = [target.text() for target in targets]
            for outcome in maintenance.run(
                targets_of(spark, texts, database, path), named=bool(targets)
            ):
                found.append(outcome)
        finally:
            show(found, settings.json, dry_run)
            if report is not None:
                tables = [*maintenance.outlooks.values()]
                overview.write(report, tables, found, budget, dry_run, version)
    raise click.exceptions.Exit(exit_code(found))


def shown(spark: SparkSession, quiet: bool) -> Callable[[Callable[[], Any], str, float], Any]:
    """Returns a runner that shows the progress of each statement."""

    def runner(work: Callable[[], Any], title: str, deadline: float) -> Any:
        with missing_tables_explained(spark):
            return run(spark, work, Display(title, quiet), title, STOPPED, deadline)

    return runner


def show(outcomes: Sequence[Outcome], as_json: bool, dry_run: bool) -> None:
    """Prints the outcomes."""
    replaced = sum(one.bytes for one in outcomes if one.result in ("done", "planned"))
    if as_json:
        tables = [asdict(one) for one in outcomes]
        print_json({"dryRun": dry_run, "replacedBytes": replaced, "outcomes": tables})
        return
    if not outcomes:
        click.echo("There are no tables.")
        return
    print_table(
        ["table", "result", "statement", "size", "time", "reason"],
        [
            [
                one.table,
                one.result,
                one.summary(),
                size(one.bytes) if one.bytes else "",
                "" if one.seconds is None else duration(one.seconds),
                one.reason,
            ]
            for one in outcomes
        ],
    )
    if replaced:
        print_text(f"{size(replaced)} {'would be' if dry_run else 'was'} replaced.")


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """Returns 1 if a table failed, or else 4 if a table was in use, or else 0."""
    results = {one.result for one in outcomes}
    return 1 if "failed" in results else 4 if "in use" in results else 0
