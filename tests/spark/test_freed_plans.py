"""The JVM frees the plan of a query that nobody refers to any more. In a session that runs for days,
such as that of a Thrift server, the memory would otherwise fill up with plans."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.joins import fact_tables
from tests.support.scans import settings


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Iterator[None]:
    with fact_tables(spark, tmp_path, ["d AS label"]):
        yield


QUERIES = {
    "filter": "SELECT sum(ticket) FROM sales WHERE day < 3",
    "scalar subquery": "SELECT sum(ticket) FROM sales WHERE day < (SELECT max(d) - 9 FROM days)",
    "subquery of an indexed table": (
        "SELECT sum(ticket) FROM sales WHERE ticket > (SELECT avg(ticket) FROM web WHERE day = 7)"
    ),
    "join": "SELECT sum(q) FROM sales JOIN days ON day = d WHERE month = 1",
    "join with a subquery": (
        "SELECT sum(s.q) FROM sales s JOIN days ON s.day = d JOIN web w ON s.ticket = w.ticket "
        "WHERE month = 1 AND w.q > (SELECT avg(q) FROM web JOIN days ON day = d WHERE month = 2)"
    ),
    "keys for which a scan waits": (
        "SELECT /*+ MERGE(r) */ sum(r.q) FROM sales s JOIN returns r ON s.ticket = r.ticket "
        "JOIN days ON s.day = d WHERE month = 1"
    ),
    "IN": "SELECT sum(q) FROM sales WHERE day IN (SELECT d FROM days WHERE month = 1)",
}


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("query", QUERIES)
def test_plans_are_freed(spark: SparkSession, tables: None, query: str, adaptive: str) -> None:
    with settings(spark, spark__sql__adaptive__enabled=adaptive):
        df = spark.sql(QUERIES[query])
        df.collect()
        jvm = spark._jvm
        plan = jvm.java.lang.ref.WeakReference(df._jdf.queryExecution())
        del df
        spark.sql("SELECT 1").collect()  # some threads refer to the plan of their last query
        for _ in range(50):
            gc.collect()
            jvm.java.lang.System.gc()
            if plan.get() is None:
                return
            time.sleep(0.2)
        pytest.fail("the plan is still in memory")
