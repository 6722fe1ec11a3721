"""Prints results to stdout, either as a JSON document or as a table."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from pyzorder.text.printable import DECEPTIVE, printable
from pyzorder.text.wording import counted, size


def print_json(value: Any) -> None:
    """Prints a JSON document, in which NaN and infinities are null, and dates are strings."""
    text = json.dumps(finite(value), indent=2, default=str, ensure_ascii=False)
    # json.dumps escapes only control characters below U+0020.
    click.echo(DECEPTIVE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def print_text(text: str, err: bool = False) -> None:
    """Prints a message.

    Replaces deceptive characters, which may occur in the names of a table's files and columns.
    """
    click.echo(printable(text), err=err)


def finite(value: Any) -> Any:
    """Replaces NaN and infinities in a value with None."""
    if isinstance(value, dict):
        return {key: finite(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(member) for member in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints a table. Numbers are right-aligned, and None is shown as a dash."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 160
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, header in enumerate(headers):
        numbers = all(isinstance(row[index], (int, float, type(None))) for row in rows)
        table.add_column(header, justify="right" if numbers and rows else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(cell, row))
    console.print(table, markup=False)


def cell(value: Any) -> str:
    """Formats a value for a table."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def check_writable(path: Path) -> None:
    """Checks that a result can be written to a file, before the result is computed.

    Raises:
        click.BadParameter: the file cannot be written.
    """
    try:
        if path.exists():
            path.open("ab").close()
        else:
            folder = next(parent for parent in path.absolute().parents if parent.exists())
            tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        raise click.BadParameter(
            f"{path} cannot be written: name a file in a folder that you can write to."
        ) from None


def print_written(path: Path, as_json: bool) -> None:
    """Prints the path and size of a file that was written."""
    written = path.stat().st_size
    if as_json:
        print_json({"output": str(path), "bytes": written})
    else:
        click.echo(f"{path} ({size(written)})")


def files(count: int, total: int) -> str:
    """Formats a number of files and their size, for example as `2 files (1.5 MiB)`."""
    return f"{counted(count, 'file')} ({size(total)})"
