"""pyzorder report: writes a report on a table to one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from pyzorder.cli.display import Display
from pyzorder.cli.options import Settings, session_options
from pyzorder.cli.output import check_writable, print_written
from pyzorder.cli.running import UNCHANGED, run
from pyzorder.cli.sessions import session
from pyzorder.cli.targets import Target, check_condition, columns_argument, listed, target_argument


@click.command(
    "report",
    epilog="""\b
Examples:
  pyzorder report /data/sales --output sales.html
  pyzorder report db.sales --hive --where "customer_id = 7" -o sales.html
  pyzorder report ./sales customer_id sold_date -o sales.html
""",
)
@target_argument
@columns_argument
@click.option(
    "--where", metavar="SQL", help="Show the files that a query with this condition opens."
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="HTML file to write.",
)
@session_options
def command(
    settings: Settings,
    target: Target,
    columns: Sequence[Sequence[str]],
    where: str | None,
    output: Path,
) -> None:
    """Write a report on a table to one HTML file.

    The report contains the table's health, pictures of its files, its past runs, and
    recommendations. The pictures show COLUMNS, which default to those that the files are clustered
    by. Needs the extra 'plot'.
    """
    from pyzorder import report

    check_writable(output)
    with session(settings) as spark:
        check_condition(spark, where)
        run(
            spark,
            lambda: report.write(spark, target.text(), output, listed(columns), where),
            Display(f"report on {target}", settings.quiet),
            "the report",
            UNCHANGED,
        )
    print_written(output, settings.json)
