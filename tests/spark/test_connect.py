"""Statements and ZOrderTable work with Spark Connect. Functions that need the driver's JVM fail
with an error that says so."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pyspark
import pytest

from tests.support.processes.servers import free_port, spark_server

pytest.importorskip("grpc")
JARS = Path(pyspark.__file__).parent / "jars"
if not any(JARS.glob("spark-connect_*.jar")):
    pytest.skip("this PySpark does not include a Connect server", allow_module_level=True)

CLIENT = """
import re, sys, time
import pyzorder
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
rows = spark.range(20000).selectExpr("id % 400 AS a", "id div 400 * 7 % 50 AS b", "id")
rows.repartition(16).write.saveAsTable("t")
df = spark.sql("SELECT * FROM t WHERE a = 7")
before = sorted(df.collect())
table = pyzorder.ZOrderTable.forName(spark, "t")
metrics = table.optimize().executeZOrderBy("a", "b").collect()[0]["metrics"]
assert metrics["numFilesRemoved"] == 16, metrics
df = spark.sql("SELECT * FROM t WHERE a = 7")
assert sorted(df.collect()) == before and len(before) == 50
plan = spark.sql("EXPLAIN SELECT * FROM t WHERE a = 7").collect()[0][0]
selected, total = map(int, re.search(r"(\\d+) of (\\d+) files selected", plan).groups())
assert 1 <= selected <= total // 2, plan
try:
    pyzorder.explain(df)
except pyzorder.ZOrderError as error:
    print(error)
spark.sql("ALTER TABLE t SET TBLPROPERTIES ('zorder.workload.record' = 'true')")
for i in range(12):
    assert len(spark.sql(f"SELECT * FROM t WHERE id = {1000 * i}").collect()) == 1
while sum(row["queries"] for row in spark.sql("SELECT * FROM zorder_workload('t')").collect()) < 12:
    time.sleep(0.2)
metrics = table.optimize().executeZOrderByAuto().collect()[0]["metrics"]
assert metrics["clusteringColumns"] == ["id"], metrics
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Connect server that runs with pyzorder."""
    port = free_port()
    main_class = "org.apache.spark.sql.connect.service.SparkConnectServer"
    settings = {
        "spark.connect.grpc.binding.port": str(port),
    }
    with spark_server(tmp_path_factory.mktemp("connect"), port, main_class, settings):
        yield port


def test_connect_client(server: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, f"sc://127.0.0.1:{server}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("[ZORDER_CONNECT_EXPLAIN]")
    assert "df.explain()" in done.stdout


#: Command lines, each with a pattern that its error message must match.
REFUSED = {
    ("explain", "SELECT nope FROM parquet.`{path}`"): "UNRESOLVED_COLUMN.*nope",
    ("explain", "SELECT * FROM nowhere"): "ZORDER_TABLE_NOT_FOUND.*nowhere",
    ("explain", "DROP TABLE nowhere"): "PARSE_SYNTAX_ERROR.*DROP",
    ("describe", "nowhere"): "ZORDER_TABLE_NOT_FOUND",
    ("describe", "{path}", "--conf", "spark.sql.zorder.optimize.targetFileSize=banana"): "banana",
}


def test_command_line(server: int, tmp_path: Path) -> None:
    table = pyarrow.table({"a": [i % 100 for i in range(2000)], "b": list(range(2000))})
    (tmp_path / "t").mkdir()
    for part in range(8):
        pyarrow.parquet.write_table(table.slice(part * 250, 250), tmp_path / f"t/{part}.parquet")

    def called(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pyzorder", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(Path(__file__).parents[2]),
                "SPARK_REMOTE": f"sc://127.0.0.1:{server}",
            },
            timeout=240,
        )

    def run(*arguments: str) -> Any:
        done = called(*arguments, "--json")
        assert done.returncode == 0 and ": 0 tasks" not in done.stderr, done.stderr[-3000:]
        return json.loads(done.stdout)

    path = str(tmp_path / "t")
    assert all(check["ok"] for check in run("doctor", path))
    told = called("optimize", path, "--zorder-by", "a,b", "--dry-run")
    steps = [line.split(":")[0].removesuffix(" …") for line in told.stderr.splitlines()]
    assert list(dict.fromkeys(steps))[1:] == [
        "read file footers",
        "sample the clustering columns",
        "read file statistics",
    ], told.stderr
    told = called("optimize", path, "--zorder-by", "b,a", "--where", "true")
    assert re.search(r"\nlay out the new files: 2,000 rows, \d+ files, ", told.stderr), told.stderr
    metrics = run("optimize", path, "--zorder-by", "a,b", "--where", "true")["metrics"]
    assert metrics["numFilesRemoved"] > 0
    (scan,) = run("explain", f"SELECT * FROM parquet.`{path}` WHERE a = 7")
    assert "files selected" in scan["plan"]
    for arguments, says in REFUSED.items():
        done = called(*(word.format(path=path) for word in arguments))
        assert done.returncode == 1, done.stderr
        assert "\tat " not in done.stderr and ": 0 tasks" not in done.stderr, done.stderr
        assert re.match(f"Error: .*{says}", done.stderr.splitlines()[-1]), done.stderr
    assert called("doctor", "nowhere").returncode == 1
