"""The fallback works without the jar, both in a Spark Connect client and in a Spark session without
pyzorder's extension."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.servers import free_port, spark_server

PROJECT = Path(__file__).parents[2]

CLIENT = """
import sys
from pyspark.sql import SparkSession

project, folder, remote = sys.argv[1:]
sys.path.append(project)  # of this process alone: Spark's workers have no pyzorder
from pyzorder import fallback

builder = SparkSession.builder
if remote:
    builder = builder.remote(remote)
else:
    builder = builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
spark = builder.getOrCreate()
table = folder + "/t"
columns = [
    "int(abs(xxhash64(id)) % 1000) AS a", "concat('s', id % 77) AS b",
    "timestamp_seconds(id * 1000) AS ts", "id % 2 AS day",
]
spark.range(0, 4000, 1, 8).selectExpr(*columns).write.partitionBy("day").parquet(table)
before = spark.read.parquet(table).selectExpr("bit_xor(xxhash64(a, b, ts, day))").first()[0]
assert fallback.create_index(spark, table) == 16
spark.conf.set("spark.sql.zorder.optimize.targetFileSize", "2k")
copy = folder + "/z"
done = fallback.optimize(spark, table, ["a", "b"], to=copy)
assert done.partitions == 2 and done.files > 4, done
table = copy
assert spark.read.parquet(table).selectExpr("bit_xor(xxhash64(a, b, ts, day))").first()[0] == before
spark.sql(f"CREATE TABLE own USING parquet LOCATION '{table}'")
query = f"SELECT x.a, y.b FROM parquet.`{table}` x JOIN own y USING (a) WHERE x.a = 7 AND y.b = 's7'"
assert fallback.sql(spark, query).collect() == spark.sql(query).collect()
x, y = fallback.explain(spark, query)
assert len(x.skipped) > x.indexed / 2, x
day = fallback.read(spark, table).select_files("ts < timestamp_seconds(100)")
assert day.skipped, day
print(x)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Connect server without pyzorder's extension."""
    port = free_port()
    main_class = "org.apache.spark.sql.connect.service.SparkConnectServer"
    settings = {"spark.connect.grpc.binding.port": str(port), "spark.sql.extensions": ""}
    with spark_server(tmp_path_factory.mktemp("connect"), port, main_class, settings):
        yield port


def run(folder: Path, remote: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(PROJECT), str(folder), remote],
        capture_output=True,
        text=True,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "indexed files skipped" in done.stdout


@pytest.mark.fallback
def test_connect_client(server: int, tmp_path: Path) -> None:
    run(tmp_path, f"sc://127.0.0.1:{server}")


@pytest.mark.fallback
def test_spark_without_pyzorder(tmp_path: Path) -> None:
    run(tmp_path, "")
