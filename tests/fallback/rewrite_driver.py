"""Drives the fallback's Writer without Spark, as a program: each folder's Parquet files become one.
`python rewrite_driver.py /path/of/table [point to be killed at]`; `rewritten` runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pyzorder.fallback.index_store import FileEntry
from pyzorder.fallback.run_records import FileRef
from pyzorder.fallback.run_settings import RunSettings
from pyzorder.fallback.stores import LocalStore, TableFolder
from pyzorder.fallback.writer import Writer
from tests.spark.tables import data_files


def rewritten(table: Path, point: str = "") -> subprocess.CompletedProcess[str]:
    """The driver's process, which has ended: killed, if there is a point."""
    root = Path(__file__).parents[2]
    child = subprocess.run(
        [sys.executable, __file__, str(table), point],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert child.returncode == (-9 if point else 0), f"{point}: {child.stderr[-3000:]}"
    return child


def _staged(writer: Writer, parent: str, files: list[Path]) -> FileEntry:
    """One new file of the rows of some, and what the index is to say of it."""
    rows = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
    name = f"{parent}/new-{uuid.uuid4()}.parquet".lstrip("/").removeprefix("./")
    place = Path(writer.staged(name))
    place.parent.mkdir(parents=True)
    pq.write_table(rows, place)
    stat = LocalStore().stats([str(place)])[str(place)]
    return FileEntry(name, *stat, rows.num_rows, ("id",), "")


def main(table: Path, point: str = "") -> None:
    rewrite(table, RunSettings(kill_at=point))


def rewrite(table: Path, settings: RunSettings) -> None:
    writer = Writer.begin(TableFolder(str(table)), "TEST", settings)
    files = data_files(table)
    names = [str(file.relative_to(table)) for file in files]
    stats = LocalStore().stats([str(file) for file in files])
    refs = [FileRef(n, *stats[str(file)]) for n, file in zip(names, files, strict=True)]
    parents = sorted({file.parent for file in files})
    entries = [
        _staged(writer, str(p.relative_to(table)), [f for f in files if f.parent == p])
        for p in parents
    ]
    writer.publish(refs, entries, lambda old: old, lambda column: False, lambda: None)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
