"""pyzorder vacuum: runs VACUUM."""

from __future__ import annotations

from typing import Any

import click

from pyzorder import history
from pyzorder.cli.display import Display
from pyzorder.cli.options import Settings, session_options
from pyzorder.cli.output import files, print_json, print_text
from pyzorder.cli.running import run
from pyzorder.cli.sessions import session
from pyzorder.cli.targets import Target, target_argument
from pyzorder.text.wording import size

STOPPED = (
    "Interrupted: VACUUM may have deleted some of the retired files. The next VACUUM will delete "
    "the rest. The table's own files were not touched."
)


@click.command(
    "vacuum",
    epilog="""\b
Examples:
  pyzorder vacuum /data/sales --dry-run
  pyzorder vacuum db.sales --hive --retain-hours 24
""",
)
@target_argument
@click.option(
    "--retain-hours",
    "--retain",
    type=click.IntRange(min=0),
    help="Keep files replaced less than this many hours ago; default: as configured, or else 168.",
)
@click.option("--dry-run", is_flag=True, help="Delete nothing; list what would be deleted.")
@session_options
def command(settings: Settings, target: Target, retain_hours: int | None, dry_run: bool) -> None:
    """Delete files that were replaced more than a week ago."""
    with session(settings) as spark:
        rows: list[dict[str, Any]] = run(
            spark,
            lambda: [
                row.asDict() for row in target.table(spark).vacuum(retain_hours, dry_run).collect()
            ],
            Display(f"VACUUM {target}", settings.quiet),
            "VACUUM",
            STOPPED,
        )
        runs = history.read(spark, target.text())
    if settings.json:
        print_json(rows)
        return
    if dry_run:
        for row in rows:
            print_text(row["path"])
    verb = "would be deleted" if dry_run else "deleted"
    click.echo(f"{files(len(rows), sum(row['size'] for row in rows))} {verb}.")
    if runs.kept_bytes and not rows:
        click.echo(
            f"Replaced files ({size(runs.kept_bytes)}) are kept for RESTORE until their retention "
            "period ends. --retain-hours sets another period."
        )
