"""The SQL and Python blocks in README and docs run as written. The blocks of a page run in order.

The test supplies only the folder /data, the table `sales`, the queries in workload.sql and the
working directory.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pyzorder
from tests.support.documents import PAGES, ROOT, Block, blocks

#: Output that the blocks of a page must print, in order. The page shows the same output.
PRINTED = {
    "docs/tour.md": ["trips: opens 40 of 40 files (40 unindexed)", "the table has no index",
                     "40 files would become", " skipped by join keys of riders.rider (50 values after "],
    "docs/guides/columns.md": ["3 statements, 3 of which scan the table"],
    "docs/guides/troubleshooting.md": [": opens ", "the table has no index"],
    "docs/guides/maintenance.md": ["files became"],
    "docs/guides/without_the_jar.md": ["sales: ", "indexed files skipped"],
    "docs/reference/metrics.md": ["numFilesAdded Number of new files"],
}  # fmt: skip

#: Files that the blocks of a page write.
WRITTEN = {"docs/tour.md": {"trips.png", "trips.html"}}


def own_process(block: Block) -> bool:
    """Whether a block starts its own Spark session."""
    return block.language == "python" and "SparkSession.builder" in block.code


def examples(page: str) -> list[Block]:
    """The blocks on a page that run in the shared session."""
    return [b for b in blocks(page) if b.language in ("sql", "python") and not own_process(b)]


def statements(sql: str) -> list[str]:
    """The statements in a block, without comments. The block is split at semicolons."""
    code = "\n".join(re.split(r"(?:^|\s)--", line)[0] for line in sql.splitlines())
    return [statement.strip() for statement in code.split(";") if statement.strip()]


@pytest.fixture
def data(spark: SparkSession, database: str, tmp_path: Path) -> str:
    """Creates the table `sales` that the examples use, and a folder with the same rows. Returns the
    parent of this folder."""
    rows = spark.range(0, 1000, 1, 2).selectExpr(
        "id % 50 AS customer_id",
        "date'2024-01-01' + int(id % 365) AS sold_date",
        "id * 7 % 1000 AS amount",
        "named_struct('city', concat('city ', id % 30)) AS address",
        "id AS a",
        "id AS b",
        "named_struct('d', id) AS c",
        "if(id % 2 = 0, '2024-01-01', '2024-01-02') AS day",
    )
    rows.write.partitionBy("day").saveAsTable("sales")
    rows.write.parquet(f"{tmp_path}/data/sales")
    (tmp_path / "workload.sql").write_text("SELECT * FROM sales WHERE customer_id = 7;\n" * 3)
    return f"{tmp_path}/data"


@pytest.mark.variants
@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)])
def test_examples(
    spark: SparkSession,
    data: str,
    tmp_path: Path,
    page: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"spark": spark, "pyzorder": pyzorder}
    for block in examples(page):
        code = block.code.replace("/data", data)
        if block.language == "python":
            exec(code, names)
        else:
            for statement in statements(code):
                spark.sql(statement).collect()
    printed, at = capsys.readouterr().out, 0
    for words in PRINTED.get(page, []):
        at = printed.find(words, at)
        assert at >= 0, f"{words} is not in:\n{printed}"
    written = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert written - {"workload.sql"} == WRITTEN.get(page, set())


def test_the_first_example(tmp_path: Path) -> None:
    (example,) = (block for page in PAGES for block in blocks(page) if own_process(block))
    done = subprocess.run(
        [sys.executable, "-c", example.code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = re.findall(r"opens (\d+) of (\d+) files(.*)", done.stdout)
    before, after, with_new_rows = ((int(opened), int(all_)) for opened, all_, _ in found)
    assert before == (20, 20)
    assert [aside for _, _, aside in found] == [" (20 unindexed)", "", ""]
    for opened, total in (after, with_new_rows):
        assert 1 <= opened <= total // 2
    assert with_new_rows[1] == after[1] + 1
