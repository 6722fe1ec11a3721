"""pyzorder files: lists the files of a table that may contain rows matching a condition. Does not
need Spark."""

from __future__ import annotations

import sys

import click

from pyzorder.cli.output import print_json, print_text
from pyzorder.engines.api import needed_packages
from pyzorder.text.printable import on_one_line
from pyzorder.text.wording import counted


@click.command(
    "files",
    epilog="""\b
Examples:
  pyzorder files /data/sales --where "customer_id = 7"
  pyzorder files /data/sales --where "customer_id = 7" -0 | xargs -0 ls -l
  pyzorder files s3://bucket/sales --json
""",
)
@click.argument("path", metavar="PATH")
@click.option(
    "--where",
    metavar="SQL",
    help="Leave out files that cannot contain rows matching this condition.",
)
@click.option(
    "--time-zone",
    metavar="ZONE",
    help="Time zone, such as Europe/Berlin, for timestamps in --where that do not specify one.",
)
@click.option(
    "--max-staleness",
    metavar="TIME",
    help="Do not list the folder if the index is at most this old, for example 30min.",
)
@click.option(
    "--null",
    "-0",
    "null",
    is_flag=True,
    help="End each path with a NUL character. Names may contain line feeds.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")
def command(
    path: str,
    where: str | None,
    time_zone: str | None,
    max_staleness: str | None,
    null: bool,
    as_json: bool,
) -> None:
    """List the files of a table that may match a condition.

    PATH is the table's folder. Files are found through the journal, so even while OPTIMIZE replaces
    files, each matching row is in exactly one of the listed files. Needs neither Spark nor Java.

    Prints one path per line. The number of files is printed to stderr, as are the parts of the
    condition that were not used.
    """
    if null and as_json:
        raise click.UsageError("--null and --json are different output formats: choose one.")
    with needed_packages("arrow"):
        from pyzorder.engines.matching_files import matching_files
    found = matching_files(path, where, time_zone, max_staleness, None)
    if as_json:
        print_json(
            {
                "files": found.paths,
                "total": found.total,
                "unindexed": found.unindexed,
                "not_used": found.reasons,
            }
        )
        return
    for path in found.paths:
        if null:
            click.echo(f"{path}\0", nl=False)
        elif sys.stdout.isatty():
            print_text(on_one_line(path))
        else:
            click.echo(path)
    total = counted(found.total, "file")
    print_text(f"{len(found.paths)} of {total} ({found.unindexed} unindexed)", err=True)
    for reason in found.reasons:
        print_text(f"not used: {on_one_line(reason)}", err=True)
