"""pyzorder index: indexes new files of a table from their footers, without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pyzorder.cli.output import print_json, print_text
from pyzorder.cli.targets import names
from pyzorder.engines.api import needed_packages
from pyzorder.text.printable import on_one_line
from pyzorder.text.wording import counted


class NamesType(click.ParamType[list[tuple[str, ...]]]):
    """A parameter type for comma-separated names of columns."""

    name = "columns"

    def convert(self, value: object, param: object, ctx: object) -> list[tuple[str, ...]]:
        """Returns the parts of each name."""
        return value if isinstance(value, list) else names(str(value))


@click.command(
    "index",
    epilog="""\b
Examples:
  pyzorder index /data/sales
  pyzorder index /data/sales --dry-run
  pyzorder index /data/sales --columns customer_id,sold_date
""",
)
@click.argument("path", metavar="PATH")
@click.option(
    "--columns",
    type=NamesType(),
    default=[],
    metavar="A,B",
    help="Columns of a new index; default: the first 32.",
)
@click.option("--dry-run", is_flag=True, help="Read the footers, but do not write an index.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")
def command(path: str, columns: Sequence[tuple[str, ...]], dry_run: bool, as_json: bool) -> None:
    """Index the new Parquet files of a table, without Spark.

    Indexes the files that other programs, such as DuckDB, have added to the folder PATH. Uses
    statistics in the files' footers if they are provably correct. Needs neither Spark nor Java.
    Files that cannot be indexed are listed with the reason, and queries will open them. Other
    writers may run at the same time. If the table is not on a local disk, or if you need minima and
    maxima of FLOAT or DOUBLE columns, run REFRESH SKIPPING INDEX in Spark instead.
    """
    with needed_packages("arrow"):
        from pyzorder.engines.indexing import index_files
    done = index_files(path, columns, dry_run)
    if as_json:
        print_json(
            {
                "columns": [column.name for column in done.columns],
                "total": done.total,
                "indexed": done.indexed,
                "unindexed": done.unindexed,
                "unknown": done.unknown,
                "version": done.version,
            }
        )
        return
    known, total = done.total - len(done.unindexed), counted(done.total, "file")
    added = counted(len(done.indexed), "file")
    if dry_run:
        print_text(f"{added} would be indexed; the index would cover {known} of {total}")
    else:
        print_text(f"{added} indexed; the index covers {known} of {total}")
    for name, reason in done.unindexed.items():
        print_text(f"not indexed: {on_one_line(name)}: {on_one_line(reason)}", err=True)
    for column, count in done.unknown.items():
        print_text(f"no bounds for {on_one_line(column)} in {counted(count, 'file')}", err=True)
