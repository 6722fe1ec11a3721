"""`pyzorder files` works in a process that cannot import PySpark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.engine_tables import index, write
from tests.support.without_spark import run


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {f"f{k}.parquet": pa.table({"a": [10 * k, 10 * k + 9], "b": [1, 2]}) for k in range(3)}
    folder = tmp_path_factory.mktemp("cli")
    write(folder, files)
    index(folder, files, ["a"])
    return folder


def test_paths(table: Path) -> None:
    done = run("files", str(table), "--where", "a = 15 AND b = 7")
    assert (done.returncode, done.stdout) == (0, f"{table}/f1.parquet\n")
    said = "1 of 3 files (0 unindexed)\nnot used: b = 7: the index has no statistics for b\n"
    assert done.stderr == said


def test_paths_that_end_with_nul(table: Path) -> None:
    done = run("files", str(table), "-0", "--where", "a < 15")
    assert done.stdout.split("\0") == [f"{table}/f0.parquet", f"{table}/f1.parquet", ""]


def test_json(table: Path) -> None:
    done = run("files", str(table), "--where", "a = 15", "--json")
    assert json.loads(done.stdout) == {
        "files": [f"{table}/f1.parquet"], "total": 3, "unindexed": 0, "not_used": [],
    }  # fmt: skip
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["{table}", "--where", "a ="], 1, "[ZORDER_NOT_A_CONDITION]"),
        (["{table}", "--where", "aa = 1"], 1, "Use one of its columns: a, "),
        (["{table}", "--where", "a = 1; DROP TABLE t"], 1, "[ZORDER_NOT_A_CONDITION]"),
        (["{table}/none"], 1, "[ZORDER_PATH_NOT_FOUND]"),
        (["{table}", "--max-staleness", "soon"], 1, "[ZORDER_NOT_A_DURATION]"),
        (["{table}", "--time-zone", "Mars"], 1, "[ZORDER_ENGINE_TABLE]"),
        (["{table}", "-0", "--json"], 2, "choose one"),
        ([], 2, "Missing argument 'PATH'"),
    ],
)
def test_failures(table: Path, words: list[str], code: int, said: str) -> None:
    done = run("files", *(word.format(table=table) for word in words))
    assert (done.returncode, done.stdout) == (code, "") and said in done.stderr
    assert "Traceback" not in done.stderr
