"""COUNT, MIN and MAX return the right answers on partitioned tables and on tables that have changed
since they were indexed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.indexes import build, drop
from tests.support.metadata_only import FORMATS, answered, read, same, view, write
from tests.support.scans import plain, settings


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """An indexed catalog table with two files in each partition. One partition has the value
    null."""
    path = tmp_path / "t"
    spark.sql("DROP TABLE IF EXISTS answers_parts")
    spark.range(0, 80, 1, 4).selectExpr(
        "id", "if(id % 4 = 3, NULL, CAST(id % 4 AS INT)) AS p", "id * 2 AS a"
    ).repartitionByRange(2, "id").write.partitionBy("p").parquet(str(path))
    spark.sql(f"CREATE TABLE answers_parts USING parquet LOCATION '{path}'")
    if not spark.catalog.tableExists("answers_parts"):
        raise AssertionError
    spark.sql("MSCK REPAIR TABLE answers_parts")
    spark.sql("CREATE SKIPPING INDEX ON answers_parts")
    yield "answers_parts", path
    spark.sql("DROP TABLE answers_parts")


PARTITIONED = [
    ("SELECT count(*), count(p), min(p), max(p), min(id), max(a) FROM {t}", 0),
    ("SELECT count(*), max(p) FROM {t} WHERE p = 1", 0),
    ("SELECT count(*), max(p) FROM {t} WHERE p IS NULL", 0),
    ("SELECT count(*), max(id), max(p) FROM {t} WHERE p > 0 AND id < 40", 0),
    ("SELECT count(*), max(p) FROM {t} WHERE p = 1 OR id < 10", 8),
    ("SELECT count(*) FROM {t} WHERE p = 77", 0),
    ("SELECT max(p) FROM {t} WHERE id < 40", 0),
]


def test_partitions(spark: SparkSession, table: tuple[str, Path]) -> None:
    name, path = table
    for query, most in PARTITIONED:
        assert read(same(spark, query.format(t=name))) <= most, query
    spark.read.parquet(str(path)).createOrReplaceTempView("answers_parts_files")
    for query, most in PARTITIONED:
        assert read(same(spark, query.format(t="answers_parts_files"))) <= most, query


def test_metadata_columns_are_not_in_the_index(
    spark: SparkSession, table: tuple[str, Path]
) -> None:
    name, _ = table
    for query in (
        f"SELECT count(*) FROM {name} WHERE _metadata.file_size > 0",
        f"SELECT max(_metadata.file_size), count(_metadata.file_path) FROM {name}",
        f"SELECT count(*) FROM {name} WHERE input_file_name() LIKE '%part-00000%'",
    ):
        assert answered(same(spark, query)) == 0, query


def test_appends_show_up(spark: SparkSession, table: tuple[str, Path]) -> None:
    name, path = table
    query = f"SELECT count(*), max(id), count(p) FROM {name}"
    assert answered(spark.sql(query)) == 8
    with settings(spark, spark__sql__zorder__write__index="false"):
        spark.sql(f"INSERT INTO {name} VALUES (1000, 1, 7)")  # id, a, p
    assert tuple(spark.sql(query).first() or ()) == (81, 1000, 61)
    assert read(same(spark, query)) == 1
    spark.sql(f"REFRESH SKIPPING INDEX ON {name}")
    assert read(same(spark, query)) == 0
    spark.sql(f"INSERT OVERWRITE {name} VALUES (5, 5, 5)")
    same(spark, query)
    drop(spark, path)
    same(spark, query)


@FORMATS
def test_files_changed_after_planning(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    path, other = tmp_path / "t", tmp_path / "u"
    spark.range(0, 40, 1, 4).write.format(fmt).save(str(path))
    spark.range(100, 150, 1, 1).write.format(fmt).save(str(other))
    (new,) = other.glob(f"part-*.{fmt}")
    build(spark, path, fmt)
    held = view(spark, path, fmt, "held_files")
    query = f"SELECT count(*), max(id) FROM {held}"
    assert answered(spark.sql(query)) == 4

    # A file is replaced in place after the query was planned and explained, but before it runs.
    planned = spark.sql(query)
    planned.explain()
    assert answered(planned) == 4
    victim = sorted(path.glob("part-00000-*"))[0]
    for crc in path.glob(".*.crc"):
        crc.unlink()
    shutil.copy(new, victim)
    with plain(spark):
        expected = spark.sql(query).collect()
    assert planned.collect() == expected and expected[0][1] == 149
    assert read(same(spark, query)) == 1

    # Another writer appends a file.
    shutil.copy(new, path / f"part-foreign.{fmt}")
    fresh = view(spark, path, fmt, "fresh_files")
    assert tuple(same(spark, f"SELECT count(*) FROM {fresh}").first() or ())[0] == 130

    # A file is deleted. Depending on the session's settings, the query either ignores the missing
    # file, or fails as it would without an index.
    planned = spark.sql(f"SELECT count(*) FROM {fresh}")
    planned.explain()
    sorted(path.glob("part-00001-*"))[0].unlink()
    with pytest.raises(Exception, match="(?i)not exist|FILE_NOT_EXIST|FAILED_READ"):
        planned.collect()
    with settings(spark, spark__sql__files__ignoreMissingFiles="true"):
        assert same(spark, f"SELECT count(*) FROM {fresh}").collect()[0][0] == 120
    refreshed = view(spark, path, fmt, "refreshed_files")
    assert same(spark, f"SELECT count(*) FROM {refreshed}").collect()[0][0] == 120


@FORMATS
def test_empty_tables_and_files(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    path = tmp_path / "t"
    spark.range(0).write.format(fmt).save(str(path))
    build(spark, path, fmt, spark.range(0).schema)
    spark.read.schema("id BIGINT").format(fmt).load(str(path)).createOrReplaceTempView("empty_t")
    assert tuple(same(spark, "SELECT count(*), min(id) FROM empty_t").first() or ()) == (0, None)
    write(spark, path, fmt, "SELECT 7L AS id")
    build(spark, path, fmt, spark.range(0).schema)
    spark.read.schema("id BIGINT").format(fmt).load(str(path)).createOrReplaceTempView("empty_t")
    assert tuple(same(spark, "SELECT count(*), min(id) FROM empty_t").first() or ()) == (1, 7)
    assert read(spark.sql("SELECT count(*), min(id) FROM empty_t")) == 0


def test_a_dataframe_through_an_optimize(spark: SparkSession, table: tuple[str, Path]) -> None:
    name, _ = table
    planned = spark.sql(f"SELECT count(*), max(id) FROM {name}")
    planned.explain()
    spark.sql(f"OPTIMIZE {name} ZORDER BY (id)")
    assert [tuple(r) for r in planned.collect()] == [(80, 79)]
    assert [tuple(r) for r in spark.sql(f"SELECT count(*), max(id) FROM {name}").collect()] == [
        (80, 79)
    ]
    assert read(same(spark, f"SELECT count(*), min(id), max(a) FROM {name} WHERE p > 0")) == 0
