"""pyzorder's extension works together with the extensions of Delta and Iceberg (`make
test-beside`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers import PEERS, Peer
from pyzorder.bridge import EXTENSION
from tests.support.documents import ROOT

pytestmark = pytest.mark.beside

DELTA, ICEBERG = PEERS["Delta 4.4.0"], PEERS["Iceberg 1.10.0"]

#: A program that runs statements in a session with the given settings, and prints the outcomes.
PROGRAM = """
import json, sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
import pyzorder
asked = json.load(sys.stdin)
builder = SparkSession.builder.master("local[2]")
for key, value in asked["settings"].items():
    builder = builder.config(key, value)
spark = pyzorder.configure(builder).getOrCreate()
assert spark.conf.get("spark.sql.extensions") == asked["extensions"]
told = []
for statement in asked["statements"]:
    try:
        df = spark.sql(statement)
        ours = any("comment" in field.metadata for field in df.schema)
        told.append({"by": "ours" if ours else "theirs", "rows": [list(map(str, r)) for r in df.collect()]})
    except PySparkException as error:
        told.append({"by": "nobody", "rows": [], "error": str(error)})
print("TOLD" + json.dumps(told))
"""

ROWS = "SELECT /*+ REPARTITION(4) */ id % 400 AS a, id div 400 * 7 % 50 AS b, id FROM range(8000)"

PARQUET = [
    (f"CREATE TABLE plain USING parquet AS {ROWS}", "theirs"),
    (f"CREATE TABLE parts USING orc PARTITIONED BY (p) AS SELECT *, id % 2 AS p FROM ({ROWS})",
     "theirs"),
    ("OPTIMIZE plain ZORDER BY (a, b) DRY RUN", "ours"),
    ("OPTIMIZE plain ZORDER BY (a, b)", "ours"),
    ("OPTIMIZE TABLE default.plain ZORDER BY a, b", "ours"),
    ("OPTIMIZE plain", "ours"),
    ("OPTIMIZE plain FULL ZORDER BY (b)", "ours"),
    ("OPTIMIZE parts WHERE p = 1 ZORDER BY (a)", "ours"),
    ("OPTIMIZE '{warehouse}/parts' ZORDER BY (a)", "ours"),
    ("OPTIMIZE parquet.`{warehouse}/plain` ZORDER BY (b)", "ours"),
    ("DESCRIBE SKIPPING INDEX ON plain", "ours"),
    ("VACUUM plain RETAIN 200 HOURS DRY RUN", "ours"),
    ("VACUUM '{warehouse}/plain'", "ours"),
    ("RESTORE plain TO BEFORE OPTIMIZE", "ours"),
    ("OPTIMIZE plain FULL ZORDER BY (a, b)", "ours"),
    ("OPTIMIZE plain ZORDER BY (nowhere)", "ZORDER_UNKNOWN_COLUMN"),
    ("OPTIMIZE parts WHERE a = 1", "ZORDER_NOT_PARTITION_PREDICATE"),
    ("OPTIMIZE nowhere ZORDER BY (a)", "TABLE_OR_VIEW_NOT_FOUND"),
]  # fmt: skip

WITH_DELTA = [
    (f"CREATE TABLE d USING delta AS {ROWS}", "theirs"),
    ("OPTIMIZE d ZORDER BY (a, b)", "theirs"),
    ("OPTIMIZE default.d", "theirs"),
    ("OPTIMIZE delta.`{warehouse}/d` ZORDER BY (a)", "theirs"),
    ("OPTIMIZE '{warehouse}/d' ZORDER BY (b)", "theirs"),
    ("VACUUM d DRY RUN", "theirs"),
    ("VACUUM '{warehouse}/d'", "theirs"),
    ("DELETE FROM d WHERE id = 0", "theirs"),
    ("RESTORE TABLE d TO VERSION AS OF 1", "theirs"),
    ("CREATE SKIPPING INDEX ON d", "ZORDER_FOREIGN_TABLE"),
    ("OPTIMIZE d ZORDER BY (nowhere)", "DELTA_"),
    ("DESCRIBE HISTORY d", "theirs"),
]

WITH_ICEBERG = [
    (f"CREATE TABLE {{ice}}.i USING iceberg AS {ROWS}", "theirs"),
    ("ALTER TABLE {ice}.i WRITE ORDERED BY a", "theirs"),
    ("CALL {catalog}.system.rewrite_data_files(table => '{ice}.i', strategy => 'sort', "
     "sort_order => 'zorder(a,b)', options => map('rewrite-all', 'true'))", "theirs"),
    ("CREATE SKIPPING INDEX ON {ice}.i", "ZORDER_FOREIGN_TABLE"),
]  # fmt: skip

#: (name, the other extensions in order, the extensions that `pyzorder.configure` sets, statements)
SESSIONS: list[tuple[str, list[Any], list[Any], list[tuple[str, str]]]] = [
    ("Delta, Iceberg", [DELTA, ICEBERG], [EXTENSION, DELTA, ICEBERG],
     PARQUET + WITH_DELTA + WITH_ICEBERG),
    ("Delta", [DELTA], [EXTENSION, DELTA], PARQUET + WITH_DELTA),
    ("Iceberg's catalog", [ICEBERG], [EXTENSION, ICEBERG], PARQUET + WITH_ICEBERG),
]  # fmt: skip


def named(extensions: list[Any]) -> str:
    """The value of spark.sql.extensions."""
    return ",".join(
        one.settings["spark.sql.extensions"] if isinstance(one, Peer) else one for one in extensions
    )


def settings(extensions: list[Any], home: Path) -> tuple[dict[str, str], str]:
    """The session's settings, and the name of Iceberg's catalog. Iceberg's catalog is
    `spark_catalog`, unless Delta uses that name."""
    own, conf = "spark.sql.catalog.spark_catalog", {}
    peers = [one for one in extensions if isinstance(one, Peer)]
    for peer in peers:
        conf |= peer.settings
    catalog = "peer"
    if own not in conf:
        catalog = "spark_catalog"
        conf[own] = "org.apache.iceberg.spark.SparkSessionCatalog"
        conf[f"{own}.type"] = "hadoop"
        conf[f"{own}.warehouse"] = str(home / "warehouse")
    conf["spark.sql.extensions"] = named(extensions)
    jars = sorted((DELTA.environment / "peers").glob("*.jar"))
    names = [jar.split(":")[1] for peer in peers for jar in peer.jars]
    conf["spark.jars"] = ",".join(str(j) for j in jars if j.name.startswith(tuple(names)))
    return {
        **conf,
        "spark.sql.catalog.peer.warehouse": str(home / "warehouse"),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.sql.zorder.optimize.targetFileSize": "16k",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # for Delta's VACUUM
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }, catalog


def run(
    statements: list[str], conf: dict[str, str], extensions: str, home: Path
) -> list[dict[str, Any]]:
    """Runs the statements in a separate process, in a session with the given extensions. Returns
    the outcome of each statement."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=home, capture_output=True, text=True, timeout=1200,
        input=json.dumps({"settings": conf, "statements": statements, "extensions": extensions}),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[dict[str, Any]] = json.loads(done.stdout.split("TOLD")[1])
    return found


@pytest.mark.parametrize(
    ("extensions", "configured", "cases"),
    [row[1:] for row in SESSIONS],
    ids=[row[0] for row in SESSIONS],
)
def test_whose_statement(
    tmp_path: Path, extensions: list[Any], configured: list[Any], cases: list[tuple[str, str]]
) -> None:
    conf, catalog = settings(extensions, tmp_path)
    ice = "spark_catalog.default" if catalog == "spark_catalog" else "peer.db"
    queries = ["EXPLAIN SELECT * FROM plain WHERE a = 7", "SELECT id FROM plain WHERE a = 7"]
    queries += ["SELECT id FROM d WHERE a = 7"] if DELTA in extensions else []
    queries += [f"SELECT id FROM {ice}.i WHERE a = 7"] if ICEBERG in extensions else []
    filled = [
        statement.format(warehouse=tmp_path / "warehouse", ice=ice, catalog=catalog)
        for statement, _ in cases
    ]
    told = run([*filled, *queries], conf, named(configured), tmp_path)
    for statement, (_, by), one in zip(filled, cases, told, strict=False):
        if by in ("ours", "theirs"):
            assert one["by"] == by, f"{statement}: {one}"
        else:
            assert by in one.get("error", ""), f"{statement}: {one}"
    plan, *answers = told[len(cases) :]
    assert "files selected" in plan["rows"][0][0]
    for query, answer in zip(queries[1:], answers, strict=True):
        assert sorted(int(i) for (i,) in answer["rows"]) == list(range(7, 8000, 400)), query
    if DELTA in extensions:
        operations = [row[4] for row in told[len(PARQUET) + len(WITH_DELTA) - 1]["rows"]]
        assert operations.count("OPTIMIZE") >= 2
        assert not (tmp_path / "warehouse" / "d" / "_zorder").exists()
    assert (tmp_path / "warehouse" / "plain" / "_zorder").exists()
    assert not (tmp_path / "warehouse" / "plain" / "_delta_log").exists()
