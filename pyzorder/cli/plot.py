"""pyzorder plot: draws a table's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyzorder import errors
from pyzorder.cli.display import Display
from pyzorder.cli.options import Settings, session_options
from pyzorder.cli.output import check_writable, print_written
from pyzorder.cli.running import UNCHANGED, run
from pyzorder.cli.sessions import session
from pyzorder.cli.targets import Target, TargetType, check_condition, columns_argument, listed

if TYPE_CHECKING:
    from pyzorder.plot import Picture


@click.command(
    "plot",
    epilog="""\b
Examples:
  pyzorder plot /data/sales customer_id sold_date --output sales.png
  pyzorder plot db.sales --hive --where "customer_id = 7" --output sales.svg
  pyzorder plot /data/sales customer_id --depth --output depth.png
  pyzorder plot --curve zorder --curve hilbert --output curves.svg
""",
)
@click.argument("target", type=TargetType(), required=False)
@columns_argument
@click.option(
    "--where", metavar="SQL", help="Highlight the files that a query with this condition opens."
)
@click.option("--ranks", is_flag=True, help="Space the files' bounds evenly along the axes.")
@click.option(
    "--depth", is_flag=True, help="Instead of ranges, draw how many files cover each value."
)
@click.option(
    "--curve",
    "curves",
    type=click.Choice(["zorder", "hilbert", "linear"]),
    multiple=True,
    help="Instead of a table, draw the path of this curve through a grid; repeatable.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="PNG or SVG file to write.",
)
@session_options
def command(
    settings: Settings,
    target: Target | None,
    columns: Sequence[Sequence[str]],
    where: str | None,
    ranks: bool,
    depth: bool,
    curves: Sequence[str],
    output: Path,
) -> None:
    """Draw the ranges of values that a table's files cover.

    Each file is a rectangle over two COLUMNS, or a bar over one. COLUMNS default to those that the
    files are clustered by.
    """
    from pyzorder import plot

    try:
        plot.suffix_of(output)
    except errors.ZOrderError as failure:
        raise click.BadParameter(str(failure)) from None
    check_writable(output)
    if (target is None) == (not curves):
        raise click.UsageError("Pass either a TARGET, to draw its files, or --curve.")
    if depth and where is not None:
        raise click.UsageError("--where highlights individual files, which --depth does not draw.")
    sides = listed(columns) or []
    if len(sides) > 2 and not depth:
        raise click.UsageError(str(errors.too_many_sides(sides)))
    if target is None:
        plot.save(plot.curve(curves), output)
    else:
        with session(settings) as spark:
            check_condition(spark, where)

            def drawn() -> Picture:
                if depth:
                    return plot.depth(spark, target.text(), listed(columns), ranks=ranks)
                return plot.rectangles(spark, target.text(), listed(columns), where, ranks=ranks)

            picture = run(
                spark,
                drawn,
                Display(f"the files of {target}", settings.quiet),
                "the picture",
                UNCHANGED,
            )
        plot.save(picture, output)
    print_written(output, settings.json)
