"""Writes and reads the tables of benchmark results in benchmarks/results."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

import pyspark

import pyzorder

RESULTS = Path(__file__).parent / "results"


def write(name: str, title: str, said: str, rows: Sequence[Sequence[str]]) -> None:
    """Writes results/`name`.md, with a line about the environment. The first row is the header."""
    versions = (
        f"pyzorder {pyzorder.__version__}, Spark {pyspark.__version__}, "
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores"
    )
    table = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    lines = [f"# {title}", "", said, "", versions, "", *(f"| {' | '.join(row)} |" for row in table)]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n")


def read(name: str) -> list[list[str]]:
    """Returns the rows of results/`name`.md without the header. Returns an empty list if the file
    does not exist."""
    path = RESULTS / f"{name}.md"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line[2:-2].split(" | ") for line in lines if line.startswith("|")][2:]
