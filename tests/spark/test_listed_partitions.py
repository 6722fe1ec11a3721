"""A query lists only the partitions that its scans select, and lists each of these partitions
once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.sampled import long
from tests.support.scans import discovered, plain, settings

#: Queries on a table with ten partitions, and the values of `p` in the partitions that each query
#: lists.
QUERIES = {
    "SELECT sum(id) FROM parts WHERE p = 3": {3},
    "SELECT sum(id) FROM parts WHERE p = 3 AND id > 5": {3},
    "SELECT sum(id) FROM parts WHERE p IN (3, 4) OR p = 7": {3, 4, 7},
    "SELECT sum(id) FROM parts WHERE p = 3 OR id = 5": set(range(10)),
    "SELECT sum(id) FROM parts": set(range(10)),
    "SELECT sum(id) FROM parts WHERE p = 77": set(),
    "SELECT count(*) FROM parts WHERE p = 3": {3},
    "SELECT id FROM parts WHERE p = 3 ORDER BY id LIMIT 2": {3},
    "SELECT sum(a.id + b.id) FROM parts a JOIN parts b ON a.id = b.id - 2 WHERE a.p = 3 AND b.p = 5": {
        3,
        5,
    },
    "SELECT sum(id) FROM (SELECT id FROM parts WHERE p = 1 UNION ALL SELECT p FROM parts WHERE p = 2)": {
        1,
        2,
    },
    "SELECT sum(id) FROM (SELECT id FROM parts WHERE p = 1 UNION ALL SELECT p FROM parts)": set(
        range(10)
    ),
    "SELECT (SELECT sum(id) FROM parts WHERE p = 1), (SELECT max(id) FROM parts WHERE p = 2)": {
        1,
        2,
    },
    "SELECT sum(id) FROM parts WHERE p = 1 AND id IN (SELECT id - 1 FROM parts WHERE p = 2)": {
        1,
        2,
    },
    "WITH c AS (SELECT * FROM parts WHERE p < 4) SELECT sum(a.id) FROM c a JOIN c b ON a.id = b.id + 1"
    " WHERE a.p = 1": {0, 1, 2, 3},
    "SELECT sum(id) FROM parts WHERE p = year(current_date()) - year(current_date()) + 4": {4},
}


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a table with ten partitions of ten rows each. Partition n has n + 1 files."""
    path = tmp_path_factory.mktemp("parts") / "t"
    spark.sql(
        f"CREATE TABLE parts (id BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{path}'"
    )
    rows = spark.range(100).selectExpr("id", "cast(id % 10 AS INT) p")
    for files in range(10):
        rows.where(f"p = {files}").repartition(files + 1, "id").sortWithinPartitions(
            "id"
        ).write.insertInto("parts")
    spark.sql("OPTIMIZE parts WHERE p = 0 ZORDER BY (id)").collect()  # creates a journal
    spark.sql("REFRESH SKIPPING INDEX ON parts")
    yield path
    spark.sql("DROP TABLE parts")


def files_in(folder: Path, partitions: set[int]) -> int:
    return sum(len(list((folder / f"p={p}").glob("part-*.parquet"))) for p in partitions)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("adaptive", long(["true", "false"], "true"))
def test_listed_partitions(spark: SparkSession, folder: Path, query: str, adaptive: str) -> None:
    with plain(spark):
        expected = spark.sql(query).collect()
    other = spark.newSession()
    with settings(other, spark__sql__adaptive__enabled=adaptive):
        before = discovered(spark)
        assert other.sql(query).collect() == expected
        assert discovered(spark) - before == files_in(folder, QUERIES[query])
