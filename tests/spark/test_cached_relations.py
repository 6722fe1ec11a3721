"""If pyzorder creates the relation of a table (skipping/plan/CacheRelations.scala), the table is read
as without pyzorder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.support.scans import settings
from tests.support.staleness import bound, fresh
from tests.support.tables import data_files

TIMES = pytest.mark.parametrize("time", ["0s", "1h"])


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "t"
    spark.sql("DROP TABLE IF EXISTS t")


def create(spark: SparkSession, columns: str, location: Path, rest: str = "") -> None:
    spark.sql(f"CREATE TABLE t ({columns}) {rest or 'USING parquet'} LOCATION '{location}'")


@TIMES
@pytest.mark.parametrize("provider", ["parquet", "orc"])
def test_names_of_folders_are_columns(
    spark: SparkSession, folder: Path, provider: str, time: str
) -> None:
    """Spark infers columns from the names of subfolders, even if no column of the table is declared
    as a partition column."""
    spark.range(2).write.format(provider).save(str(folder / "k=9"))
    create(spark, "id BIGINT, k INT", folder, f"USING {provider}")
    spark.sql("CREATE SKIPPING INDEX ON t (id)")
    reader = bound(fresh(spark), time)
    assert sorted(reader.table("t").collect()) == [(0, 9), (1, 9)]
    assert reader.sql("SELECT max(k) FROM t WHERE id = 1").collect() == [(9,)]


def test_a_folder_that_appears_later(spark: SparkSession, folder: Path) -> None:
    create(spark, "id BIGINT", folder)
    spark.sql("INSERT INTO t VALUES (1), (2)")
    spark.sql("CREATE SKIPPING INDEX ON t (id)")
    spark.range(7, 8).write.parquet(str(folder / "k=9"))
    reader = fresh(spark)
    assert reader.table("t").columns == ["id", "k"]
    assert reader.sql("SELECT id FROM t WHERE k = 9").collect() == [(7,)]


@TIMES
@pytest.mark.parametrize("name", ["h[1]", "h?", "h*", "{h1,g}"])
def test_a_location_that_is_a_pattern(
    spark: SparkSession, folder: Path, name: str, time: str
) -> None:
    """Spark reads the folders that match."""
    spark.range(2).write.parquet(str(folder / "h1"))
    create(spark, "id BIGINT", folder / name)
    assert sorted(spark.table("t").collect()) == [(0,), (1,)]
    spark.sql("CREATE SKIPPING INDEX ON t (id)")
    assert sorted(bound(fresh(spark), time).table("t").collect()) == [(0,), (1,)]


@TIMES
@pytest.mark.parametrize("partition", ["", "PARTITIONED BY (p)"])
def test_names_of_files(spark: SparkSession, folder: Path, partition: str, time: str) -> None:
    create(spark, "id BIGINT, p STRING", folder, f"USING parquet {partition}")
    spark.sql("INSERT INTO t VALUES (1, 'a b'), (2, 'b%')")
    spark.sql("CREATE SKIPPING INDEX ON t (id)")
    files = [quote(str(path), "/=") for path in data_files(folder)]
    expected = sorted(f"file://{path}" for path in files)
    reader = bound(fresh(spark), time)
    for frame in (reader.table("t"), reader.read.parquet(str(folder))):
        for rows in (frame, frame.where("id > 0")):
            names = rows.selectExpr("input_file_name() AS name").distinct().collect()
            assert sorted(row.name for row in names) == expected
            assert sorted(rows.inputFiles()) == expected


@TIMES
def test_names_that_differ_in_case(spark: SparkSession, folder: Path, time: str) -> None:
    """The error is Spark's own."""
    reader = bound(fresh(spark), time)
    with settings(spark, spark__sql__caseSensitive="true"):
        create(spark, "a BIGINT, A BIGINT", folder)
        spark.sql("INSERT INTO t VALUES (1, 2)")
        spark.sql("CREATE SKIPPING INDEX ON t (a)")
    with pytest.raises(AnalysisException, match="COLUMN_ALREADY_EXISTS"):
        reader.table("t")
