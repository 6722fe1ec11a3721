"""Skipping is correct even if Spark reads columns by field id. Delta's extension makes Spark do
this throughout the session."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from tests.support.scans import explain, opened, settings


def with_ids(**ids: int) -> StructType:
    """A schema with the given column names and field ids."""
    return StructType(
        [StructField(name, LongType(), True, {"parquet.field.id": i}) for name, i in ids.items()]
    )


@pytest.mark.parametrize("indexed_with", ["true", "false"])
def test_a_schema_without_ids_is_found_by_name(
    spark: SparkSession, tmp_path: Path, indexed_with: str
) -> None:
    folder = str(tmp_path / "t")
    spark.range(0, 8000, 1, 4).selectExpr("id AS a", "id % 40 AS b").write.parquet(folder)
    with settings(spark, spark__sql__parquet__fieldId__read__enabled=indexed_with):
        spark.sql(f"CREATE SKIPPING INDEX ON '{folder}'")
    for reading in ("true", "false"):
        with settings(spark, spark__sql__parquet__fieldId__read__enabled=reading):
            found = spark.read.parquet(folder).where("a = 7")
            assert len(opened(found)) == 1
            assert found.collect() == [(7, 7)]
    with settings(spark, spark__sql__parquet__fieldId__read__enabled="true"):
        spark.sql(f"OPTIMIZE '{folder}' ZORDER BY (a, b)")
        scan = explain(spark.read.parquet(folder).where("a = 7"))[0]
        assert scan["unindexed"] == 0


def test_columns_that_are_found_by_id_skip_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """No file is skipped if columns are read by field id. In this test, the schema swaps the names
    of two columns, so looking up their bounds by name would skip the wrong files."""
    folder = tmp_path / "t"
    folder.mkdir()
    schema = pa.schema(
        [
            pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("b", pa.int64(), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    for number in range(4):
        values = list(range(number * 100, number * 100 + 100))
        table = pa.table({"a": values, "b": [1000 + v for v in values]}, schema)
        pq.write_table(table, folder / f"{number}.parquet")
    spark.sql(f"CREATE SKIPPING INDEX ON '{folder}'")
    with settings(
        spark,
        spark__sql__parquet__fieldId__read__enabled="true",
        spark__sql__parquet__filterPushdown="false",  # Spark pushes filters down by name
    ):
        swapped = with_ids(b=1, a=2)
        rows = spark.read.schema(swapped).parquet(str(folder))
        found = rows.where("a = 1007").select("a", "b")
        assert len(opened(found)) == 4
        assert found.collect() == [(1007, 7)]
