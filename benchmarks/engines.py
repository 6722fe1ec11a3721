"""Measures how long engines other than Spark take to open tables with many files.

    python benchmarks/engines.py [--files 10000,100000] [--times 5]

The files of a table are hard links to one small Parquet file. Each link has its own entry in an
index on three columns. Each of several processes without Java opens the table once, and the figures
are medians over these processes. The folder and the index are in the operating system's cache.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import report

from pyzorder.index.coverage import Coverage
from pyzorder.index.entries import ColumnStatistics, FileEntry
from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.snapshot_writer import publish
from pyzorder.index.stores import LocalStore
from pyzorder.index.table_folder import TableFolder

#: The code that is measured, keyed by the name of the measurement. `t` is the path of the table.
MEASURED = {
    "`pyzorder.dataset(t)`": "found = pyzorder.dataset(t)",
    "`pyzorder.files(t, where=\"a = 7 AND d > '2024-06-01'\")`": (
        "found = pyzorder.files(t, \"a = 7 AND d > '2024-06-01'\")"
    ),
    "`pyzorder.files(t)`": "found = pyzorder.files(t)",
    "`pyzorder.scan_polars(t)`": "found = pyzorder.scan_polars(t)",
    '`pyzorder.files(t, where="a = 7", max_staleness="1h")`': (
        'found = pyzorder.files(t, "a = 7", max_staleness="1h")'
    ),
}

#: Imports are not measured, because a process needs them only once.
PROGRAM = """
import sys, time
import duckdb, polars, pyarrow.dataset, sqlglot
import pyzorder
import pyzorder.engines.arrow_dataset, pyzorder.engines.matching_files
import pyzorder.engines.polars_source
t = sys.argv[1]
started = time.perf_counter()
{code}
print(time.perf_counter() - started)
"""

COLUMNS = [
    IndexedColumn((name,), data_type)
    for name, data_type in (("a", "long"), ("d", "date"), ("s", "string"))
]

_LINKS = 60_000  # ext4 allows 65,000 links to one file


def make(folder: Path, count: int) -> None:
    """Writes a table of `count` files, and its index."""
    folder.mkdir(parents=True)
    rows = pa.table(
        {"a": [1, 2], "d": pa.array([0, 1], pa.int32()).cast(pa.date32()), "s": ["x", "y"]}
    )
    for first in range(0, count, _LINKS):
        source = folder / f"_source-{first}"
        pq.write_table(rows, source)
        for number in range(first, min(count, first + _LINKS)):
            os.link(source, folder / f"part-{number:06}.parquet")
    entries = [entry(folder, f"part-{number:06}.parquet", number) for number in range(count)]
    covered = Coverage(int(time.time() * 1000), is_whole=True)
    publish(
        LocalStore(),
        TableFolder(str(folder)),
        lambda _: COLUMNS,
        entries=entries,
        coverage=lambda old, rows: covered,
    )


def entry(folder: Path, name: str, number: int) -> FileEntry:
    """Returns an entry whose bounds differ from file to file."""
    seen = (folder / name).stat()
    low, day = number * 7919 % 1_000_000, 19_700 + number % 365

    def of(least: object, greatest: object) -> ColumnStatistics:
        return ColumnStatistics((least, greatest), True, 0, False, False, False)

    bounds = [of(low, low + 20_000), of(day, day + 30), of(f"k{number:06}", f"k{number + 50:06}")]
    settings = "caseSensitive=false;fieldIds=false | timeZone=UTC"
    modified = seen.st_mtime_ns // 1_000_000
    known = dict(zip(COLUMNS, bounds, strict=True))
    return FileEntry(name, seen.st_size, modified, 2, ("a", "d"), settings, known)


def measure(table: Path, code: str, times: int) -> float:
    """Returns the median time, in seconds, that the code takes in several fresh processes."""
    command = [sys.executable, "-c", PROGRAM.format(code=code), str(table)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    found = [
        float(
            subprocess.run(
                command, capture_output=True, text=True, check=True, env=environment
            ).stdout
        )
        for _ in range(times + 1)
    ]
    return statistics.median(found[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", default="10000,100000")
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    counts = [int(count) for count in given.files.split(",")]
    rows = [["", *(f"{count:,} files, ms" for count in counts)]]
    with tempfile.TemporaryDirectory() as home:
        for count in counts:
            make(Path(home) / str(count), count)
        for name, code in MEASURED.items():
            seconds = [measure(Path(home) / str(c), code, given.times) for c in counts]
            rows.append([name, *(f"{1000 * s:.0f}" for s in seconds)])
            print(" | ".join(rows[-1]), flush=True)
    said = (__doc__ or "").partition("\n\n")[2].partition("\n\n")[2].replace("\n", " ").strip()
    report.write("engines", "Opening tables for other engines", said, rows)


if __name__ == "__main__":
    main()
