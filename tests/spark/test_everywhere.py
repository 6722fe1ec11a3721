"""Skipping works wherever a table occurs in a query. The query returns the same rows and opens
fewer files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.indexes import build
from tests.support.scans import explain, plain, settings

# (query, how many files its scans may open in total). The table {t} has ten files of ten rows each,
# with d from 0 to 99. The view {v} contains the rows of {t} in which d is below 50.
QUERIES = [
    ("SELECT * FROM {t} WHERE d = 42", 1),
    ("SELECT d FROM {v} WHERE d > 45", 1),
    ("SELECT x FROM (SELECT d + 0 AS y, d AS x FROM {v}) WHERE x = 7", 1),
    ("WITH c AS (SELECT * FROM {t} WHERE d < 25) SELECT count(*), max(m) FROM c", 3),
    ("WITH c AS (SELECT * FROM {t}) SELECT * FROM c WHERE d = 1 UNION ALL "
     "SELECT * FROM c WHERE d = 99", 2),
    ("SELECT d FROM {t} WHERE d < 5 UNION SELECT d FROM {t} WHERE d > 95", 2),
    ("SELECT d FROM {t} WHERE d < 15 INTERSECT SELECT d FROM {t} WHERE d > 12", 11),
    ("SELECT d FROM {t} WHERE d < 15 EXCEPT SELECT d FROM {t} WHERE d BETWEEN 5 AND 8", 3),
    ("SELECT a.d, b.m FROM {t} a JOIN {t} b ON a.d = b.d WHERE a.d = 42", 2),
    ("SELECT a.d, b.d FROM {t} a LEFT JOIN {t} b ON a.d = b.d + 50 WHERE a.d = 42", 11),
    ("SELECT d FROM {t} a WHERE d < 15 AND EXISTS (SELECT 1 FROM {t} b WHERE b.d = a.d + 1 AND "
     "b.d < 5)", 3),
    ("SELECT d FROM {t} WHERE d < 15 AND m IN (SELECT m FROM {t} WHERE d = 3)", 3),
    ("SELECT d, (SELECT max(m) FROM {t} WHERE d > 95) AS x FROM {t} WHERE d = 5", 2),
    ("SELECT m, count(*), max(d) FROM {t} WHERE d BETWEEN 20 AND 39 GROUP BY m HAVING max(d) > 30",
     2),
    ("SELECT d, sum(m) OVER (ORDER BY d) FROM {t} WHERE d >= 90", 1),
    ("SELECT d, rank() OVER (ORDER BY m, d) AS r FROM (SELECT * FROM {t} WHERE d < 10)", 1),
    ("SELECT DISTINCT m FROM {t} WHERE d = 42 OR d = 43", 1),
    ("SELECT * FROM (SELECT d, m FROM {t} WHERE d < 10) PIVOT (max(d) FOR m IN (0, 1, 2))", 1),
    ("SELECT d, x FROM {t} LATERAL VIEW explode(array(1, 2)) e AS x WHERE d = 42", 1),
    ("SELECT d FROM {t} WHERE d = 42 SORT BY m", 1),
    ("SELECT a.d FROM {t} a CROSS JOIN (SELECT d FROM {t} WHERE d = 3) b WHERE a.d = 42", 2),
    ("SELECT /*+ BROADCAST(b) */ count(*) FROM {t} a JOIN {t} b USING (m) "
     "WHERE a.d < 10 AND b.d > 89", 2),
    ("SELECT d FROM {t} WHERE CASE WHEN m = 0 THEN d < 1000 ELSE true END AND d = 42", 1),
]  # fmt: skip

# Similar queries that use the DataFrame API.
FRAMES: list[tuple[Callable[[DataFrame], DataFrame], int]] = [
    (lambda t: t.where("d = 42"), 1),
    (lambda t: t.filter(F.col("d").isin(1, 99)), 2),
    (lambda t: t.select(F.col("d").alias("e"), "m").where(F.col("e") >= 95), 1),
    (lambda t: t.where("d < 10").groupBy("m").agg(F.max("d")), 1),
    (lambda t: t.withColumn("e", F.col("d") * 2).where("d = 5").drop("m"), 1),
    (lambda t: t.where("d < 5").unionByName(t.where("d > 95")), 2),
    (lambda t: t.alias("a").join(t.alias("b"), "m").where("a.d < 10 AND b.d < 10"), 2),
    (lambda t: t.where("d < 10").repartition(3, "m").sortWithinPartitions("d"), 1),
    (lambda t: t.where("d BETWEEN 10 AND 19").dropDuplicates(["m"]).select(F.count("*")), 1),
]


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = Path(tmp_path_factory.mktemp("everywhere")) / "t"
    rows = spark.range(0, 100, 1, 10).selectExpr("CAST(id AS INT) AS d", "id % 7 AS m")
    rows.write.parquet(str(path))
    spark.sql(f"CREATE TABLE everywhere USING parquet LOCATION '{path}'")
    spark.sql("CREATE VIEW everywhere_v AS SELECT * FROM everywhere WHERE d < 50")
    build(spark, path, "parquet")
    yield path
    spark.sql("DROP VIEW everywhere_v")
    spark.sql("DROP TABLE everywhere")


def same(spark: SparkSession, frame: Callable[[], DataFrame], most: int) -> None:
    """Asserts that the rows are the same as without skipping, and that at most `most` files are
    opened."""
    with plain(spark):
        expected = sorted(map(repr, frame().collect()))
    assert sorted(map(repr, frame().collect())) == expected
    assert sum(scan["selected"] + scan["unindexed"] for scan in explain(frame())) <= most


@pytest.mark.variants
@pytest.mark.parametrize(("query", "most"), QUERIES)
def test_sql(spark: SparkSession, table: Path, query: str, most: int) -> None:
    text = query.format(t="everywhere", v="everywhere_v")
    same(spark, lambda: spark.sql(text), most)


@pytest.mark.parametrize(("frame", "most"), FRAMES)
def test_frames(
    spark: SparkSession, table: Path, frame: Callable[[DataFrame], DataFrame], most: int
) -> None:
    same(spark, lambda: frame(spark.table("everywhere")), most)
    same(spark, lambda: frame(spark.read.parquet(str(table))), most)


def test_what_a_query_writes(spark: SparkSession, table: Path) -> None:
    spark.sql("CREATE TABLE written USING orc AS SELECT d FROM everywhere WHERE d < 15")
    try:
        spark.sql("INSERT INTO written SELECT d FROM everywhere WHERE d = 42")
        assert sorted(r.d for r in spark.table("written").collect()) == [*range(15), 42]
        spark.sql("INSERT OVERWRITE written SELECT d FROM everywhere WHERE d > 97")
        assert sorted(r.d for r in spark.table("written").collect()) == [98, 99]
    finally:
        spark.sql("DROP TABLE written")


def test_sessions_have_settings_of_their_own(spark: SparkSession, table: Path) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.zorder.skipping.enabled", "false")
    query = "SELECT d FROM everywhere WHERE d = 42"
    for session, opened in ((spark, 1), (other, 10), (spark, 1)):
        (scan,) = explain(session.sql(query))
        assert scan["selected"] + scan["unindexed"] == opened
        assert [r.d for r in session.sql(query).collect()] == [42]


@pytest.mark.parametrize("storage", ["parquet", "orc", "parquet PARTITIONED BY (p)"])
def test_inserts_of_another_session_are_seen(spark: SparkSession, storage: str) -> None:
    """A query sees rows that another session inserted. Spark itself refreshes its listing of a
    table only in the session that wrote to the table."""
    other = spark.newSession()
    spark.sql(
        f"CREATE TABLE shared_t USING {storage} AS SELECT id AS d, id % 2 AS p FROM range(10)"
    )
    try:
        spark.sql("OPTIMIZE shared_t ZORDER BY (d)")
        for n in range(10, 13):
            for query, expected in (
                ("SELECT count(*), max(d) FROM shared_t", [(n, n - 1)]),
                ("SELECT sum(p) FROM shared_t WHERE d >= 5", [(sum(i % 2 for i in range(5, n)),)]),
                ("SELECT d FROM shared_t ORDER BY d DESC LIMIT 1", [(n - 1,)]),
            ):
                assert [tuple(row) for row in other.sql(query).collect()] == expected, query
            spark.sql(f"INSERT INTO shared_t VALUES ({n}, {n % 2})")
    finally:
        spark.sql("DROP TABLE shared_t")


def test_streaming_reads_are_left_alone(spark: SparkSession, table: Path, tmp_path: Path) -> None:
    stream = spark.readStream.schema("d INT, m BIGINT").parquet(str(table)).where("d > 95")
    query = (
        stream.writeStream.format("memory").queryName("streamed").outputMode("append")
        .option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    assert sorted(r.d for r in spark.table("streamed").collect()) == [96, 97, 98, 99]
    spark.catalog.dropTempView("streamed")


def test_version_2_sources_read_everything(spark: SparkSession, table: Path) -> None:
    with settings(spark, spark__sql__sources__useV1SourceList=""):
        frame = spark.read.parquet(str(table)).where("d = 42")
        assert [r.d for r in frame.collect()] == [42]
        (scan,) = explain(frame)
        assert "useV1SourceList" in scan["reasons"][0]


OPTIMIZE = """
import sys
from pyspark.sql import SparkSession
import pyzorder

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = pyzorder.configure(builder).getOrCreate()
spark.conf.set("spark.sql.zorder.optimize.targetFileSize", "2k")
pyzorder.ZOrderTable.forPath(spark, sys.argv[1]).optimize().executeZOrderBy("m")
"""


def test_an_optimize_of_another_application_is_seen(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.range(0, 4000, 1, 4).selectExpr("id % 7 AS m", "id").write.parquet(str(path))
    spark.sql(f"CREATE TABLE elsewhere USING parquet LOCATION '{path}'")
    try:
        made_before = spark.table("elsewhere").where("m = 3")
        of_path = spark.read.parquet(str(path))
        expected = sorted(made_before.collect())
        subprocess.run(
            [sys.executable, "-c", OPTIMIZE, str(path)],
            check=True, capture_output=True, cwd=tmp_path, timeout=240,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )  # fmt: skip
        for frame in (spark.table("elsewhere"), of_path, spark.read.parquet(str(path))):
            (scan,) = explain(frame.where("m = 3"))
            assert scan["skipped"] > 0 and scan["unindexed"] == 0
            assert sorted(frame.where("m = 3").collect()) == expected
        assert sorted(made_before.collect()) == expected
    finally:
        spark.sql("DROP TABLE elsewhere")
