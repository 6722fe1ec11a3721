"""Rewritten files have the columns, types and codec of the old files, and small row groups."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.support import scans
from tests.support.tables import data_files, rows_of, sales, target_size


def test_columns_the_table_does_not_declare(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE t (a INT) USING parquet LOCATION '{tmp_path}/t'")
    spark.range(5).selectExpr("cast(id as int) a", "id extra").write.parquet(
        f"{tmp_path}/t", mode="append"
    )
    with pytest.raises(Exception, match="extra"):
        spark.sql("OPTIMIZE t ZORDER BY (a)").collect()
    assert rows_of(spark.read.parquet(f"{tmp_path}/t").select("extra")) == rows_of(
        spark.range(5).selectExpr("id extra")
    )


def test_added_columns_keep_their_default(spark: SparkSession, database: str) -> None:
    spark.sql("CREATE TABLE t (a INT) USING parquet")
    spark.sql("INSERT INTO t VALUES (1), (2)")
    spark.sql("ALTER TABLE t ADD COLUMNS (b INT DEFAULT 5, c STRING)")
    spark.sql("INSERT INTO t VALUES (3, 7, 'x')")
    before = rows_of(spark.table("t"))
    spark.sql("OPTIMIZE t ZORDER BY (b)")
    assert rows_of(spark.table("t")) == before


@pytest.mark.parametrize(("provider", "codec"), [("parquet", "gzip"), ("orc", "zstd")])
def test_the_codec_stays(
    spark: SparkSession, database: str, tmp_path: Path, provider: str, codec: str
) -> None:
    sales(spark).write.format(provider).option("compression", codec).save(str(tmp_path / "x"))
    spark.sql(f"CREATE TABLE t USING {provider} LOCATION '{tmp_path}/x'")
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    assert all(codec[:2] in f.name.rsplit("-", 1)[1] for f in data_files(tmp_path / "x"))


def test_row_groups_are_small(spark: SparkSession, tmp_path: Path) -> None:
    """OPTIMIZE writes small row groups. They have narrow ranges, because the rows are ordered. If a
    row group size is set for the table, OPTIMIZE uses that size."""
    folder = tmp_path / "t"
    spark.range(0, 60_000, 1, 2).selectExpr(
        "xxhash64(id) AS a",
        "xxhash64(a) AS b",
        "array_join(transform(sequence(1, 16), i -> sha2(CAST(id * i AS STRING), 256)), '') AS c",
    ).write.parquet(str(folder))
    target_size(spark, 256 << 20)
    spark.sql(f"OPTIMIZE '{folder}' ZORDER BY (a, b)")
    (file,) = data_files(folder)
    groups = pq.ParquetFile(file).metadata
    assert groups.num_row_groups >= 2
    widths = [groups.row_group(i).column(0).statistics for i in range(groups.num_row_groups)]
    assert any(s.max - s.min < 0.6 * 2**64 for s in widths)
    spark.sql(f"CREATE TABLE t_groups USING parquet OPTIONS ('parquet.block.size' 4000000) "
              f"LOCATION '{folder}'")  # fmt: skip
    try:
        spark.sql("OPTIMIZE t_groups FULL ZORDER BY (a, b)")
        assert pq.ParquetFile(data_files(folder)[0]).metadata.num_row_groups >= 8
    finally:
        spark.sql("DROP TABLE t_groups")


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_the_timestamp_type_stays(
    spark: SparkSession, database: str, tmp_path: Path, kind: str
) -> None:
    with scans.settings(spark, spark__sql__parquet__outputTimestampType=kind):
        spark.sql("SELECT timestamp_seconds(id) ts FROM range(50)").write.parquet(f"{tmp_path}/x")
    spark.sql(f"CREATE TABLE t USING parquet LOCATION '{tmp_path}/x'")
    spark.sql("OPTIMIZE t ZORDER BY (ts)")
    (file,) = data_files(tmp_path / "x")
    column = pq.ParquetFile(file).schema.column(0)
    expected = {"INT96": "INT96", "TIMESTAMP_MICROS": "microseconds",
                "TIMESTAMP_MILLIS": "milliseconds"}[kind]  # fmt: skip
    assert expected in str(column)


@pytest.mark.parametrize(
    ("setting", "value", "column"),
    [
        ("spark.sql.parquet.binaryAsString", "true", pa.array([b"a", b"b"])),
        ("spark.sql.legacy.parquet.nanosAsLong", "true", pa.array([1, 2], pa.timestamp("ns"))),
        ("spark.sql.parquet.inferTimestampNTZ.enabled", "false",
         pa.array([1, 2], pa.timestamp("us"))),
    ],
)  # fmt: skip
def test_a_setting_that_would_change_the_files_types(
    spark: SparkSession, tmp_path: Path, setting: str, value: str, column: pa.Array
) -> None:
    for name in "ab":
        pq.write_table(pa.table({"k": [1, 2], "c": column}), tmp_path / f"{name}.parquet")
    before = data_files(tmp_path)
    with (
        scans.settings(spark, **{setting: value}),
        pytest.raises(AnalysisException, match=f"ZORDER_SETTING_CHANGES_TYPES.*{setting}.* c "),
    ):
        spark.sql(f"OPTIMIZE '{tmp_path}' ZORDER BY (k)")
    assert data_files(tmp_path) == before
