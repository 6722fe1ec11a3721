"""pyzorder works in a Spark Connect client from the package pyspark-client, without a JVM or jars
(`make test-connect`)."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyzorder
from pyzorder import ZOrderError, ZOrderTable, layout
from tests.spark.test_examples import statements
from tests.support.documents import ROOT

pytestmark = pytest.mark.connect

#: (name, a method of ZOrderTable, some of its result columns), in an order in which the methods can
#: be called.
METHODS: list[tuple[str, Callable[[ZOrderTable], DataFrame], list[str]]] = [
    ("create", lambda t: t.createSkippingIndex("a"), []),
    ("describe", lambda t: t.describeSkippingIndex(), ["column", "files", "lookup_share"]),
    ("refresh", lambda t: t.refreshSkippingIndex(), []),
    ("dry run", lambda t: t.optimize().dryRun().executeZOrderBy("a", "b"), ["path", "metrics"]),
    ("z-order", lambda t: t.optimize().where("true").executeZOrderBy("a", "b"), ["metrics"]),
    ("again, full", lambda t: t.optimize().full().executeZOrderBy(["b", "a"]), ["metrics"]),
    ("restore", lambda t: t.restoreBeforeOptimize(), []),
    ("compaction", lambda t: t.optimize().executeCompaction(), ["path", "metrics"]),
    ("history", lambda t: t.history(), ["run", "operation", "began", "kept_bytes"]),
    ("vacuum", lambda t: t.vacuum(200, dryRun=True), ["path"]),
    ("drop", lambda t: t.dropSkippingIndex(), []),
]

#: (name, a function that needs the driver's JVM, the condition of the error that it raises)
REFUSED: list[tuple[str, Callable[[SparkSession], object], str]] = [
    ("configure", lambda spark: pyzorder.configure(SparkSession.builder), "ZORDER_CONNECT_CLIENT"),
    ("explain", lambda spark: pyzorder.explain(spark.range(3)), "ZORDER_CONNECT_EXPLAIN"),
    ("layout", lambda spark: layout.read(spark, "t", ["a"]), "ZORDER_CONNECT_LAYOUT"),
]


def rows(spark: SparkSession) -> DataFrame:
    """Rows that are distributed evenly over 16 files."""
    made = spark.range(20_000).selectExpr("id % 400 AS a", "id div 400 * 7 % 50 AS b", "id")
    return made.repartition(16)


def files_selected(spark: SparkSession, query: str) -> tuple[int, int]:
    """The number of selected files and the number of all files, as EXPLAIN shows them."""
    plan = spark.sql(f"EXPLAIN {query}").collect()[0][0]
    found = re.search(r"(\d+) of (\d+) files selected", plan)
    assert found is not None, plan
    return int(found[1]), int(found[2])


def test_there_is_no_jvm_here() -> None:
    assert importlib.util.find_spec("py4j") is None
    import pyspark

    assert not (Path(pyspark.__file__).parent / "jars").exists()


@pytest.mark.parametrize(
    "name", [module.name for module in pkgutil.walk_packages(pyzorder.__path__, "pyzorder.")]
)
def test_every_module_can_be_imported(name: str) -> None:
    if not name.endswith("__main__"):
        importlib.import_module(name)


def test_every_method(spark: SparkSession, tmp_path: Path) -> None:
    rows(spark).write.mode("overwrite").saveAsTable("every_method")
    rows(spark).write.parquet(str(tmp_path / "t"))
    try:
        by_name = ZOrderTable.forName(spark, "every_method")
        for table in (by_name, ZOrderTable.forPath(spark, str(tmp_path / "t"))):
            for what, call, columns in METHODS:
                returned = call(table)
                assert set(columns) <= set(returned.columns), what
                assert len(returned.toPandas()) == len(returned.collect()), what
    finally:
        spark.sql("DROP TABLE every_method")


def test_queries_open_fewer_files(spark: SparkSession) -> None:
    query = "SELECT id, a, b FROM pruned WHERE a = 7 AND b < 40"
    rows(spark).write.mode("overwrite").saveAsTable("pruned")
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", "4k")
    try:
        before = sorted(spark.sql(query).collect())
        (done,) = (
            ZOrderTable.forName(spark, "pruned").optimize().executeZOrderBy("a", "b").collect()
        )
        assert done["metrics"]["numFilesRemoved"] == 16
        assert sorted(spark.sql(query).collect()) == before and before
        assert sorted(map(tuple, spark.sql(query).toPandas().values.tolist())) == sorted(
            map(tuple, before)
        )
        selected, total = files_selected(spark, query)
        assert 1 <= selected <= total // 2
        bound = spark.sql("SELECT id FROM pruned WHERE a = :a AND b < :b", {"a": 7, "b": 40})
        assert sorted(row.id for row in bound.collect()) == [row.id for row in before]
    finally:
        spark.sql("DROP TABLE pruned")


def test_walkthrough(spark: SparkSession) -> None:
    text = (ROOT / "sql" / "walkthrough.sql").read_text(encoding="utf-8")
    for statement in statements(text):
        spark.sql(statement).collect()


@pytest.mark.parametrize(("what", "call", "condition"), REFUSED)
def test_what_needs_the_jvm_says_so(
    spark: SparkSession, what: str, call: Callable[[SparkSession], object], condition: str
) -> None:
    with pytest.raises(ZOrderError) as raised:
        call(spark)
    assert raised.value.condition == condition


def test_command_line(spark: SparkSession, tmp_path: Path) -> None:
    rows(spark).write.parquet(str(tmp_path / "t"))

    def run(*arguments: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "pyzorder", *arguments, "--json"],
            capture_output=True, text=True, cwd=tmp_path, timeout=240,
            env={**os.environ, "PYTHONPATH": str(ROOT),
                 "SPARK_REMOTE": os.environ["PYZORDER_TEST_REMOTE"]},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    path = str(tmp_path / "t")
    assert run("optimize", path, "--zorder-by", "a,b")["metrics"]["numFilesRemoved"] == 16
    assert {found["column"] for found in run("describe", path)} >= {"a", "b"}
    assert [past["removed"] for past in run("history", path)] == [16]
    assert all(check["ok"] for check in run("doctor"))
