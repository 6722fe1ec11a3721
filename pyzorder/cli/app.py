"""The commands, exit codes and error handling of the command-line tool."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import click

from pyzorder import __version__
from pyzorder.cli import (
    advise,
    describe,
    doctor,
    explain,
    history,
    maintain,
    optimize,
    plot,
    report,
    restore,
    vacuum,
    workload,
)
from pyzorder.cli.output import print_text
from pyzorder.cli.without_spark import files, index
from pyzorder.failures import Interrupted, exit_code, sentence

#: All commands. To add one, write a module with a click command `command` and list it here.
COMMANDS = (
    advise, workload, optimize, maintain, describe, explain, files, index, plot, report, history,
    vacuum, restore, doctor,
)  # fmt: skip


class App(click.Group):
    """A group whose commands report failures as one sentence on stderr and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command, and converts exceptions to a sentence and an exit code."""
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        logging.getLogger().addHandler(logging.NullHandler())  # stops py4j from logging Ctrl-C
        warnings.simplefilter("ignore")
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            failure: Exception = Interrupted("Interrupted.")
        except (Exception, click.Abort) as raised:
            failure = raised
        print_text(f"Error: {sentence(failure)}", err=True)
        raise SystemExit(exit_code(failure))


@click.group(
    cls=App,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Exit codes:
  0    success
  1    Spark or pyzorder reported an error; doctor: something needs fixing
  2    invalid command line
  3    Spark could not be started or reached; to find out why, run pyzorder doctor
  4    another writer holds the table's lock or changed the table: retry later
  130  interrupted by Ctrl-C (143: by SIGTERM); OPTIMIZE was undone or completed

\b
Examples:
  pyzorder doctor
  pyzorder advise /data/sales --queries workload.sql
  pyzorder optimize /data/sales --zorder-by customer_id,sold_date --dry-run
  pyzorder optimize db.sales --zorder-by customer_id,sold_date --hive
  pyzorder maintain --database sales --hive --budget 50g --window 2h
  pyzorder explain 'SELECT * FROM parquet.`/data/sales` WHERE customer_id = 7'
  pyzorder files /data/sales --where 'customer_id = 7'
  pyzorder index /data/sales

Results go to stdout (with --json, as one JSON document). Everything else goes to stderr.
""",
)
@click.version_option(__version__, prog_name="pyzorder")
def app() -> None:
    """Z-ordering and data skipping for plain Parquet and ORC tables.

    TARGET is a table name as in SQL (sales, db.sales, `odd name`) or a folder. A TARGET with a
    slash, such as /data/sales, ./sales or s3a://bucket/sales, is a folder. So is
    parquet.`/data/sales`.
    """


for module in COMMANDS:
    app.add_command(module.command)
