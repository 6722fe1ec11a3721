"""Join keys skip files in the kinds of tables that test_join_pruning.py does not cover, such as
partitioned tables and tables that are not fully indexed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.indexes import build
from tests.support.joins import checked, counts, rows, scans_of
from tests.support.scans import settings


def test_files_that_the_index_does_not_know_are_read(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 100, 1, 10).write.parquet(str(tmp_path / "t"))
    build(spark, tmp_path / "t", "parquet")
    with settings(spark, spark__sql__zorder__write__index="false"):
        spark.range(100, 200, 1, 5).write.mode("append").parquet(str(tmp_path / "t"))
    query = f"SELECT t.id FROM parquet.`{tmp_path}/t` t JOIN (VALUES (5), (150)) AS q (k) ON id = k"
    df = checked(spark, query)
    (scan,) = scans_of(df, "t")
    assert (scan["selected"], scan["skipped"], scan["unindexed"]) == (1, 9, 5)
    assert len(rows(df)) == 2


def test_a_table_without_an_index(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 100, 1, 10).write.parquet(str(tmp_path / "t"))
    query = f"SELECT t.id FROM parquet.`{tmp_path}/t` t JOIN (VALUES (5), (50)) AS q (k) ON id = k"
    (scan,) = scans_of(checked(spark, query), "t")
    assert (scan["unindexed"], scan["joinKeys"]) == (10, [])


@pytest.mark.parametrize("fmt", ["parquet", "orc"])
def test_a_partitioned_fact(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    frame = spark.range(0, 100, 1, 10).selectExpr("id", "CAST(id DIV 10 % 2 AS INT) AS p")
    frame.write.partitionBy("p").format(fmt).save(str(tmp_path / "t"))
    build(spark, tmp_path / "t", fmt)
    table = f"{fmt}.`{tmp_path}/t`"
    keys = "(VALUES (5, 0), (15, 1)) AS q (k, kp)"
    for condition, opened in [
        ("id = k", (2,)),
        ("id = k AND p = kp", (2,)),
        ("id = k AND p + 1 = kp", (2,)),
        ("id = k AND p = 0", (1,)),
        ("p = kp", (10,)),
    ]:
        df = checked(spark, f"SELECT t.id, p FROM {table} t JOIN {keys} ON {condition}")
        assert counts(df, "t") == opened, condition


def test_char_keys_are_padded_and_not_used(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE chars (c CHAR(4), i INT) USING parquet LOCATION '{tmp_path}/c'")
    try:
        for i, c in enumerate(["a", "b", "c"]):
            spark.sql(f"INSERT INTO chars VALUES ('{c}', {i})")
        build(spark, tmp_path / "c", "parquet")
        df = checked(spark, "SELECT i FROM chars JOIN (VALUES ('b   ')) AS q (k) ON c = k")
        assert len(rows(df)) == 1
        assert counts(df, "chars") == (3,)
    finally:
        spark.sql("DROP TABLE chars")


def test_collated_keys_are_not_used(spark: SparkSession, tmp_path: Path) -> None:
    if spark.version.startswith("3."):
        pytest.skip("collations need Spark 4")
    spark.sql(
        f"CREATE TABLE words (w STRING COLLATE UTF8_LCASE, i INT) USING parquet "
        f"LOCATION '{tmp_path}/w'"
    )
    try:
        for i, w in enumerate(["A", "b", "C"]):
            spark.sql(f"INSERT INTO words VALUES ('{w}', {i})")
        build(spark, tmp_path / "w", "parquet")
        df = checked(
            spark,
            "SELECT i FROM words JOIN (SELECT k COLLATE UTF8_LCASE AS k FROM VALUES ('a'), ('B') "
            "AS q (k)) ON w = k",
        )
        assert len(rows(df)) == 2
        assert counts(df, "words") == (3,)
    finally:
        spark.sql("DROP TABLE words")


def test_optimize_between_planning_and_running(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 5000, 1, 10).selectExpr("id", "id DIV 100 AS m").write.parquet(
        str(tmp_path / "t")
    )
    spark.sql(f"CREATE TABLE moved USING parquet LOCATION '{tmp_path}/t'")
    try:
        build(spark, tmp_path / "t", "parquet")
        query = "SELECT moved.id FROM moved JOIN (VALUES (5), (7)) AS q (k) ON m = k"
        df = spark.sql(query)
        df._jdf.queryExecution().executedPlan()
        with settings(spark, spark__sql__zorder__optimize__targetFileSize="4k"):
            spark.sql("OPTIMIZE moved ZORDER BY (id)")
        assert len(df.collect()) == 200
        again = checked(spark, query)
        (scan,) = scans_of(again, "moved")
        assert scan["skippedByJoins"] > 0
        with settings(spark, spark__sql__zorder__optimize__targetFileSize="8k"):
            spark.sql("OPTIMIZE moved FULL ZORDER BY (m)")
        assert len(again.collect()) == 200, "the plan's stages already exist"
    finally:
        spark.sql("DROP TABLE moved")
