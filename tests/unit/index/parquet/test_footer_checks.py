"""A damaged footer does not end the process."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyzorder.engines.indexing import index_files
from pyzorder.index.parquet import footer_checks

ROOT = Path(__file__).parents[4]

ROWS = pa.table(
    {
        "id": [1, 2, None],
        "s": ["a", "b", "c"],
        "x": [1.5, None, 2.5],
        "d": pa.array([Decimal(1), Decimal(2), None], pa.decimal128(30, 2)),
        "b": [True, False, None],
        "list": [[1, 2], [], None],
        "struct": [{"a": 1, "b": [{"c": "x"}]}, None, {"a": None, "b": None}],
    }
)


def parquet(rows: pa.Table, **options: bool) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    return sink.getvalue()


@pytest.mark.parametrize("rows", [ROWS, ROWS.slice(0, 0), pa.table({})], ids=["3", "none", "empty"])
@pytest.mark.parametrize("statistics", [False, True])
def test_sound_footers(rows: pa.Table, statistics: bool) -> None:
    data = parquet(rows, write_statistics=statistics)
    footer = pq.read_metadata(pa.BufferReader(footer_checks.readable(data)))
    assert footer.equals(pq.read_metadata(io.BytesIO(data)))


@pytest.mark.parametrize("data", [b"", b"PAR1", b"text and more text", b"PAR1\xff\xff\0\0PAR1"])
def test_no_footer(data: bytes) -> None:
    with pytest.raises(pa.ArrowInvalid, match="it has no Parquet footer"):
        footer_checks.readable(data)


@pytest.mark.parametrize(("depth", "is_sound"), [(400, True), (600, False)])
def test_nested_groups(tmp_path: Path, depth: int, is_sound: bool) -> None:
    kind = pa.int64()
    for _ in range(depth):
        kind = pa.struct([("a", kind)])
    file = tmp_path / "a.parquet"
    file.write_bytes(parquet(pa.table({"x": pa.nulls(0, kind)})))
    with nullcontext() if is_sound else pytest.raises(pa.ArrowInvalid, match="is damaged"):
        footer_checks.check_schema(str(file))


def test_long_footers(tmp_path: Path) -> None:
    """A sparse file can have a footer of gigabytes."""
    file = tmp_path / "a.parquet"
    with file.open("wb") as opened:
        opened.seek(1 << 30)
        opened.write((1 << 29).to_bytes(4, "little") + b"PAR1")
    for check in (footer_checks.read, footer_checks.check_schema):
        with pytest.raises(pa.ArrowInvalid, match="footer is longer than"):
            check(str(file))


def test_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.parquet")
    with pytest.raises(OSError, match="seek"):
        footer_checks.read(str(tmp_path / "a.parquet"))


@pytest.mark.parametrize("seed", range(4))
def test_damaged_footers(tmp_path: Path, seed: int) -> None:
    """Reads a data file and an index with damaged footers in another process."""
    (tmp_path / "a.parquet").write_bytes(parquet(ROWS))
    index_files(str(tmp_path))
    program = [sys.executable, "-m", "tests.support.programs.damaged_footers"]
    done = subprocess.run(
        [*program, str(tmp_path), str(seed), "300"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-1000:]
    read = json.loads(done.stdout)
    assert 0 < read["data file"] < 300 and 0 < read["index"] < 300, read
