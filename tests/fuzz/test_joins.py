"""Random queries with joins return the same rows with and without skipping.

A query that takes longer than JOIN_SECONDS is reported with the stacks of the threads that run
pyzorder code. `JOIN_QUERIES=20000 JOIN_SEED=0 JOIN_SESSIONS=3` starts a long run, in which three
queries run at a time. A difference is reported with its seed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.fuzz.joins import DIMENSIONS, FACTS, Queries, create_views, settings_of, write
from tests.support.joins import rows
from tests.support.scans import FAILURES, explain, plain, settings

COUNT = int(os.environ.get("JOIN_QUERIES", "10"))
SEED = int(os.environ.get("JOIN_SEED", "100"))
SESSIONS = int(os.environ.get("JOIN_SESSIONS", "1"))
#: The maximum duration of a query. It is far below the 300 seconds for which Spark waits for a
#: broadcast, so the test also fails if a broadcast times out because of a deadlock.
SECONDS = int(os.environ.get("JOIN_SECONDS", "120"))


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    write(spark, tmp_path)
    create_views(spark, tmp_path)
    yield tmp_path
    for name in (*FACTS, *DIMENSIONS):
        spark.catalog.dropTempView(name)


def test_join_keys_change_no_answer(spark: SparkSession, tables: Path) -> None:
    # Each session keeps its thread. For every thread that calls the JVM, the JVM starts a thread,
    # which keeps its last query in memory.
    idle: SimpleQueue[tuple[SparkSession, ThreadPoolExecutor]] = SimpleQueue()
    idle.put((spark, ThreadPoolExecutor(1)))
    for _ in range(SESSIONS - 1):
        session = spark.newSession()
        create_views(session, tables)
        idle.put((session, ThreadPoolExecutor(1)))

    def compared_when_idle(seed: int) -> tuple[bool, bool] | None:
        session, thread = idle.get()
        try:
            return compared(session, thread, seed)
        finally:
            idle.put((session, thread))

    skipped = by_ranges = done = 0
    pool = ThreadPoolExecutor(SESSIONS)
    try:
        for found in pool.map(compared_when_idle, range(SEED, SEED + COUNT)):
            if found is not None:
                done += 1
                skipped += found[0]
                by_ranges += found[1]
                if done % 50 == 0:
                    print(f"{done} queries: join keys skip files in {skipped}, of which ranges in"
                          f" {by_ranges}", flush=True)  # fmt: skip
    finally:
        pool.shutdown(cancel_futures=True)
    print(f"{done} of {COUNT} queries: join keys skip files in {skipped}, ranges in {by_ranges}")
    assert done >= 0.9 * COUNT
    assert skipped
    if COUNT >= 1000:  # with fewer queries, the shares vary too much
        assert skipped >= 0.4 * done
        assert by_ranges >= 0.1 * done


def test_an_equal_stage_is_reused_without_keys(spark: SparkSession, tables: Path) -> None:
    """A query that once failed. Adaptive execution plans a broadcast that has already been executed
    for another join."""
    sql = """
        SELECT count(*), max(k), min(s) FROM (
            SELECT first.* FROM (
                SELECT coalesce(code.k, 30) AS k, code.tag + 1 AS tag, late.s FROM late
                LEFT JOIN (SELECT * FROM code WHERE n IS NULL OR tag = 5) code ON late.k = code.k
            ) first LEFT SEMI JOIN (
                SELECT b.k, b.tag FROM visits a JOIN late b ON a.d = b.d
                WHERE a.d IN (SELECT d FROM late)
            ) second ON CAST(first.k AS BIGINT) = CAST(second.tag AS BIGINT) + 0
                AND first.k = second.k
        ) both LEFT SEMI JOIN (SELECT * FROM code WHERE n IS NULL OR tag = 2) x ON both.tag = x.tag
        JOIN (SELECT k AS other FROM code WHERE d < date'2024-01-30') y ON both.k = y.other
    """
    with settings(
        spark,
        spark__sql__adaptive__enabled="true",
        spark__sql__autoBroadcastJoinThreshold="20k",
        spark__sql__shuffle__partitions="2",
        spark__sql__files__openCostInBytes="0",
    ):
        with plain(spark):
            expected = rows(spark.sql(sql))
        assert rows(spark.sql(sql)) == expected


def compared(
    spark: SparkSession, thread: ThreadPoolExecutor, seed: int
) -> tuple[bool, bool] | None:
    """Asserts that a query returns the same rows with and without skipping. Returns whether join
    keys skip files, and whether ranges of join keys do. None if Spark cannot answer the query."""
    queries = Queries(seed)
    sql = queries.query()
    with settings(spark, **settings_of(queries.random)):
        try:
            with plain(spark):
                expected = rows(spark.sql(sql))
        except FAILURES:
            return None
        df = spark.sql(sql)
        try:
            found = in_time(df, thread, f"seed {seed}: {sql}")
        except FAILURES as error:
            raise AssertionError(f"seed {seed}: {sql}\n{error}") from None
        assert found == expected, f"seed {seed}: {sql}"
        scans = [scan for scan in explain(df) if scan["skippedByJoins"]]
        return bool(scans), any("file" in keys for scan in scans for keys in scan["joinKeys"])


def in_time(df: DataFrame, thread: ThreadPoolExecutor, what: str) -> list[str]:
    """Returns the rows of a query, which runs in `thread`, and fails if the query takes longer than
    SECONDS."""
    try:
        return thread.submit(rows, df).result(SECONDS)
    except TimeoutError:
        jvm: Any = df.sparkSession._jvm
        traces = jvm.java.lang.Thread.getAllStackTraces().entrySet().toArray()
        stacks = [f"{t.getKey()}: {list(t.getValue())[:25]}" for t in traces]
        text = "\n".join(stack for stack in stacks if "pyzorder" in stack)
        df.sparkSession.sparkContext.cancelAllJobs()
        raise AssertionError(f"{what} takes longer than {SECONDS} seconds\n{text}") from None
