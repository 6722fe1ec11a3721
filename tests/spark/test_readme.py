"""README's examples run as they stand there; only the folder /data is the test's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pyzorder

ROOT = Path(__file__).parents[2]


def blocks(language: str) -> list[str]:
    """The code blocks of a language, in README's order."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def statements() -> list[str]:
    """README's SQL without comments: one statement a line, or with a semicolon after each."""
    found = []
    for block in blocks("sql"):
        code = "\n".join(line.split(" --")[0].strip() for line in block.splitlines())
        found += code.split(";" if ";" in code else "\n")
    return [statement.strip() for statement in found if statement.strip()]


@pytest.fixture
def data(spark: SparkSession, tmp_path: Path) -> str:
    """The table `sales` as the examples assume it, and the same rows in a folder: its path."""
    rows = spark.range(0, 1000, 1, 4).selectExpr(
        "id % 50 AS customer_id",
        "date'2024-01-01' + int(id % 365) AS sold_date",
        "id AS a",
        "id AS b",
        "named_struct('d', id) AS c",
        "if(id % 2 = 0, '2024-01-01', '2024-01-02') AS day",
    )
    rows.write.partitionBy("day").saveAsTable("sales")
    rows.write.parquet(f"{tmp_path}/data/sales")
    return f"{tmp_path}/data"


def test_statements(spark: SparkSession, data: str) -> None:
    assert len(statements()) >= 10
    try:
        for statement in statements():
            spark.sql(statement.replace("/data", data)).collect()
    finally:
        spark.sql("DROP TABLE sales")
        spark.sql("DROP TABLE IF EXISTS orders")


def test_python_of_tables(spark: SparkSession, data: str) -> None:
    (example,) = (block for block in blocks("python") if "ZOrderTable" in block)
    names = {"spark": spark, "pyzorder": pyzorder}
    try:
        exec(example.replace("/data", data), names)
        assert names["metrics"].collect()[0]["path"].endswith("sales")  # type: ignore[attr-defined]
    finally:
        spark.sql("DROP TABLE sales")


def test_python_of_pictures(
    spark: SparkSession, data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = (block for block in blocks("python") if "report.write" in block)
    monkeypatch.chdir(tmp_path)
    try:
        exec(example, {"spark": spark})
        written = {path.suffix for path in tmp_path.glob("sales.*")}
        assert written == {".png", ".html"}
    finally:
        spark.sql("DROP TABLE sales")


def test_the_first_example(tmp_path: Path) -> None:
    example = blocks("python")[0]
    done = subprocess.run(
        [sys.executable, "-c", example],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    selected, total = map(int, re.search(r"(\d+) of (\d+)", done.stdout).groups())  # type: ignore[union-attr]
    assert 1 <= selected <= total // 2
