"""Results on stdout: rows as one JSON document or as a table."""

from __future__ import annotations

import json
import math
import tempfile
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table


def print_json(value: Any) -> None:
    """One JSON document; what JSON has no form for (NaN) is null, dates are text."""
    click.echo(json.dumps(finite(value), indent=2, default=str, ensure_ascii=False))


def finite(value: Any) -> Any:
    """The value with null for each number that is none."""
    if isinstance(value, dict):
        return {key: finite(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(member) for member in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table; numbers to the right, None as a dash."""
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
    """A value in a table."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def printable(text: str) -> str:
    """A text without what a terminal takes for commands: it may come from a table's folder, where
    others write."""
    is_command = [unicodedata.category(c) == "Cc" and c != "\n" for c in text]
    return "".join("\ufffd" if bad else c for c, bad in zip(text, is_command, strict=True))


def percent(share: float | None) -> str:
    """A share of files."""
    return "–" if share is None or not math.isfinite(share) else f"{share:.1%}"


def check_writable(path: Path) -> None:
    """Before long work: whether its result can be written to that file.

    Raises:
        BadParameter: it cannot.
    """
    try:
        if path.exists():
            path.open("ab").close()
        else:
            folder = next(parent for parent in path.absolute().parents if parent.exists())
            tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        raise click.BadParameter(
            f"{path} cannot be written: name a file that you may write, in a folder that you may."
        ) from None


def print_written(path: Path, as_json: bool) -> None:
    """A file that was written."""
    size = path.stat().st_size
    if as_json:
        print_json({"output": str(path), "bytes": size})
    else:
        click.echo(f"{path} ({decimal(size)})")


def files(count: int, size: int) -> str:
    """So many files of so many bytes."""
    return f"{count:,} file{'' if count == 1 else 's'} ({decimal(size)})"
