"""pyzorder restore: runs RESTORE … TO BEFORE OPTIMIZE."""

from __future__ import annotations

from typing import Any

import click

from pyzorder.cli.display import Display
from pyzorder.cli.options import Settings, session_options
from pyzorder.cli.output import files, print_json
from pyzorder.cli.running import run
from pyzorder.cli.sessions import session
from pyzorder.cli.targets import Target, target_argument

STOPPED = "Interrupted: RESTORE was undone, and no rows were lost."


@click.command(
    "restore",
    epilog="""\b
Examples:
  pyzorder restore /data/sales
  pyzorder restore db.sales --hive
""",
)
@target_argument
@session_options
def command(settings: Settings, target: Target) -> None:
    """Undo a table's last OPTIMIZE. Files added since then are kept.

    The files that the OPTIMIZE replaced must still exist. The first VACUUM or OPTIMIZE after their
    retention period deletes them.
    """
    with session(settings) as spark:

        def statement() -> dict[str, Any]:
            rows = target.table(spark).restoreBeforeOptimize().collect()
            found: dict[str, Any] = rows[0].asDict()
            return found

        result = run(
            spark, statement, Display(f"RESTORE {target}", settings.quiet), "RESTORE", STOPPED
        )
    if settings.json:
        print_json(result)
        return
    restored = files(result["num_restored_files"], result["restored_files_size"])
    removed = files(result["num_removed_files"], result["removed_files_size"])
    click.echo(f"{restored} restored in place of {removed}.")
