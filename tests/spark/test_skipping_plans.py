"""Plans with skipping are correct when Spark merges, reuses or caches scans. Skipping is visible in
the cost model, in EXPLAIN and in metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession

from tests.support.indexes import build
from tests.support.scans import explain, opened, plain, settings


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An indexed catalog table with ten files of ten rows each. The column d contains 0 to 99, and
    the column `weight` is wide."""
    path = Path(tmp_path_factory.mktemp("plans")) / "t"
    spark.range(0, 100, 1, 10).selectExpr(
        "CAST(id AS INT) AS d", "id % 7 AS m", "repeat(uuid(), 200) AS weight"
    ).write.parquet(str(path))
    spark.sql(f"CREATE TABLE plans_t USING parquet LOCATION '{path}'")
    build(spark, path, "parquet")
    yield "plans_t"
    spark.sql("DROP TABLE plans_t")


def test_merged_scalar_subqueries_keep_their_own_files(spark: SparkSession, table: str) -> None:
    row = spark.sql(
        f"SELECT (SELECT min(d) FROM {table} WHERE d < 25), (SELECT max(d) FROM {table})"
    ).first()
    assert row == Row(0, 99)
    row = spark.sql(
        f"SELECT (SELECT max(d) FROM {table} WHERE d < 25), (SELECT min(d) FROM {table} "
        f"WHERE d > 74), (SELECT count(*) FROM {table} WHERE d = 50)"
    ).first()
    assert row == Row(24, 75, 1)


def test_a_self_join_with_different_filters(spark: SparkSession, table: str) -> None:
    query = (
        f"SELECT a.d, b.d FROM (SELECT * FROM {table} WHERE d < 25) a "
        f"JOIN (SELECT * FROM {table} WHERE d > 74) b ON a.m = b.m ORDER BY 1, 2"
    )
    with plain(spark):
        expected = spark.sql(query).collect()
    assert spark.sql(query).collect() == expected
    assert sorted(scan["skipped"] for scan in explain(spark.sql(query))) == [7, 7]


def test_a_union_of_the_same_scan(spark: SparkSession, table: str) -> None:
    one = f"SELECT sum(d) AS s FROM {table} WHERE d < 25"
    assert [r.s for r in spark.sql(f"{one} UNION ALL {one}").collect()] == [300, 300]


def test_a_cached_table_has_all_its_rows(spark: SparkSession, table: str) -> None:
    part = spark.sql(f"SELECT d FROM {table} WHERE d < 25").cache()
    try:
        assert part.count() == 25
        assert spark.sql(f"SELECT d FROM {table}").count() == 100
        assert part.where("d > 20").count() == 4
        (scan,) = explain(part.where("d = 7"))
        assert (scan["total"], scan["skipped"]) == (10, 7)
        assert "the rows come from Spark's cache" in scan["reasons"][-1]
    finally:
        part.unpersist()


def test_explain_shows_what_was_skipped(spark: SparkSession, table: str) -> None:
    plan = spark.sql(f"EXPLAIN SELECT * FROM {table} WHERE d = 42").collect()[0][0]
    shown = f"ZOrderSkipping [{table}: 1 of 10 files selected, 9 skipped, 0 unindexed"
    assert shown in plan
    formatted = spark.sql(f"EXPLAIN FORMATTED SELECT * FROM {table} WHERE d = 42").collect()[0][0]
    assert f"Files: {table}: 1 of 10 files selected" in formatted
    assert "IndexFilter: " in formatted and "d_minValue <= 42" in formatted


def test_explain_says_why_not(spark: SparkSession, table: str) -> None:
    condition = "d + 1 = 42 AND CAST(d AS STRING) RLIKE '4' AND d > 89"
    (scan,) = explain(spark.sql(f"SELECT * FROM {table} WHERE {condition}"))
    assert scan["selected"] == 1
    assert any(reason.startswith("not usable: ") for reason in scan["reasons"])
    assert any(
        reason.startswith("usable only for files with a single") for reason in scan["reasons"]
    )
    (scan,) = explain(spark.sql(f"SELECT * FROM {table} WHERE d > 89 AND rand(1) * d < 91"))
    assert scan["skipped"] == 9
    assert scan["reasons"] == [
        "not usable: ((rand(1) * CAST(d AS DOUBLE)) < 91.0D) (not deterministic)"
    ]
    (scan,) = explain(spark.sql(f"SELECT * FROM {table}"))
    assert scan["total"] == 10 and scan["skipped"] == 0


def test_batches_stay_batches(spark: SparkSession, table: str) -> None:
    plan = spark.sql(f"SELECT d FROM {table} WHERE d = 42")._jdf.queryExecution().executedPlan()
    text = plan.toString()
    assert text.index("ColumnarToRow") < text.index("ZOrderSkipping") < text.index("FileScan")


def test_the_scans_metrics(spark: SparkSession, table: str) -> None:
    df = spark.sql(f"SELECT d FROM {table} WHERE d = 42")
    assert df.collect() == [Row(d=42)]
    node = df._jdf.queryExecution().executedPlan()
    while node.nodeName() != "ZOrderSkipping":
        node = (
            node.executedPlan()
            if node.nodeName() == "AdaptiveSparkPlan"
            else node.children().apply(0)
        )
    values = {
        name: node.metrics().apply(name).value()
        for name in ("filesTotal", "filesSelected", "filesSkipped", "filesUnindexed")
    }
    assert values == {
        "filesTotal": 10,
        "filesSelected": 1,
        "filesSkipped": 9,
        "filesUnindexed": 0,
    }


@pytest.mark.parametrize("analyzed", [False, True])
def test_the_pruned_size_reaches_the_cost_model(
    spark: SparkSession, table: str, analyzed: bool
) -> None:
    if analyzed:
        spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS")
    query = f"SELECT * FROM {table} WHERE d = 42"

    def size() -> int:
        plan = spark.sql(query)._jdf.queryExecution().optimizedPlan()
        return int(str(plan.stats().sizeInBytes()))

    with plain(spark):
        whole = size()
    assert size() < whole / 4


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("analyzed", [False, True])
def test_the_size_of_the_selected_partitions_reaches_the_cost_model(
    spark: SparkSession, database: str, analyzed: bool, indexed: bool
) -> None:
    """The cost model uses the size of the selected partitions. If it used the size of the whole
    table, Spark would shuffle a partition that it could broadcast."""
    spark.sql("CREATE TABLE parts (id BIGINT, p INT) USING parquet PARTITIONED BY (p)")
    spark.sql("INSERT INTO parts SELECT id, id % 8 FROM range(800)")
    if indexed:
        spark.sql("OPTIMIZE parts ZORDER BY (id)")
    if analyzed:
        spark.sql("ANALYZE TABLE parts COMPUTE STATISTICS")

    def size(query: str) -> int:
        plan = spark.sql(query)._jdf.queryExecution().optimizedPlan()
        return int(str(plan.stats().sizeInBytes()))

    whole = size("SELECT * FROM parts")
    assert size("SELECT * FROM parts WHERE p = 3") < whole / 4
    assert size("SELECT * FROM parts WHERE p IN (3, 4) AND id >= 0") < whole / 2


def test_a_predicate_with_a_subquery_beside_one_without(spark: SparkSession, table: str) -> None:
    query = f"SELECT d FROM {table} WHERE d > (SELECT 5 + avg(1)) AND d < 20"
    assert spark.sql(query).count() == 13
    assert len(opened(spark.sql(query))) == 2


def test_explain_of_what_is_not_served(
    spark: SparkSession, table: str, tmp_path: Path, database: str
) -> None:
    unserved = f"SELECT * FROM default.{table} WHERE d = (SELECT max(id) FROM range(9))"
    (scan,) = explain(spark.sql(unserved))
    assert any("subquery" in reason for reason in scan["reasons"])
    spark.sql("CREATE TABLE b (k INT, v INT) USING parquet CLUSTERED BY (k) INTO 2 BUCKETS")
    spark.sql("INSERT INTO b SELECT id, id FROM range(20)")
    spark.sql("CREATE SKIPPING INDEX ON b")
    (scan,) = explain(spark.sql("SELECT * FROM b WHERE v = 19"))
    assert scan["skipped"] == scan["total"] - 1 > 0
    spark.sql("SELECT double('NaN') AS x").write.parquet(f"{tmp_path}/t")
    spark.sql(f"CREATE SKIPPING INDEX ON '{tmp_path}/t'")
    (scan,) = explain(spark.sql(f"SELECT max(x) FROM parquet.`{tmp_path}/t`"))
    assert scan["reasons"] == ["not exact in the index: max(x)"]
    with settings(spark, spark__sql__sources__useV1SourceList=""):
        (scan,) = explain(spark.read.parquet(f"{tmp_path}/t").where("x = 7"))
    assert (scan["table"], scan["unindexed"]) == ("t", 1)
    assert "useV1SourceList" in scan["reasons"][0]


def test_a_folder_named_like_a_pattern(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "br[a]c{k}*"
    spark.range(20).write.parquet(f"{tmp_path}/plain")
    (tmp_path / "plain").rename(path)
    (row,) = spark.sql(f"OPTIMIZE '{path}' ZORDER BY (id)").collect()
    assert row["metrics"]["numFilesRemoved"] > 0
    files = list(path.glob("*.parquet"))
    assert sorted(v for f in files for v in pq.read_table(f)["id"].to_pylist()) == [*range(20)]
