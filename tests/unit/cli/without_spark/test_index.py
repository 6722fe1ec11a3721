"""`pyzorder index` works in a process that cannot import PySpark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.engine_tables import write
from tests.support.without_spark import run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    files = {f"f{k}.parquet": pa.table({"a": [k, k + 9], "x": [0.5, 1.5]}) for k in range(3)}
    write(tmp_path, files)
    return tmp_path


def test_text(table: Path) -> None:
    (table / "notes\n.txt").write_text("Hello")
    done = run("index", str(table))
    assert (done.returncode, done.stdout) == (
        0, "3 files indexed; the index covers 3 of 4 files\n"
    )  # fmt: skip
    assert done.stderr.splitlines() == [
        "not indexed: notes .txt: its footer cannot be read: it has no Parquet footer",
        "no bounds for x in 3 files",
    ]
    assert (
        run("files", str(table), "--where", "a = 11").stdout.split("\n")[0].endswith("f2.parquet")
    )


def test_a_dry_run(table: Path) -> None:
    done = run("index", str(table), "--dry-run")
    assert done.stdout == "3 files would be indexed; the index would cover 3 of 3 files\n"
    assert not (table / "_zorder").exists()


def test_json(table: Path) -> None:
    done = run("index", str(table), "--columns", "a", "--json")
    assert json.loads(done.stdout) == {
        "columns": ["a"], "total": 3, "indexed": [f"f{k}.parquet" for k in range(3)],
        "unindexed": {}, "unknown": {}, "version": 2,
    }  # fmt: skip
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["{table}/none"], 1, "[ZORDER_PATH_NOT_FOUND]"),
        (["{table}", "--columns", "b"], 1, "Use one of its columns: a, x."),
        (["{table}", "--columns", "a,`"], 2, "is not a list of names"),
        (["s3://bucket/sales"], 1, "Run REFRESH SKIPPING INDEX in a Spark session"),
        ([], 2, "Missing argument 'PATH'"),
    ],
)
def test_failures(table: Path, words: list[str], code: int, said: str) -> None:
    done = run("index", *(word.format(table=table) for word in words))
    assert (done.returncode, done.stdout) == (code, "") and said in done.stderr
    assert "Traceback" not in done.stderr
