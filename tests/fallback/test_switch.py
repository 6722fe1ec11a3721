"""OPTIMIZE either switches an external table's location to the copy or leaves the location
unchanged."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyzorder import fallback
from pyzorder.errors import ZOrderError
from tests.support.fallback_files import selection
from tests.support.tables import rows_of


def location(spark: SparkSession, table: str) -> str:
    rows = spark.sql(f"DESCRIBE EXTENDED {table}").where("col_name = 'Location'").collect()
    return str(rows[0]["data_type"].removeprefix("file:"))


def test_a_table(spark: SparkSession, database: str, tmp_path: Path) -> None:
    old, new = tmp_path / "t", tmp_path / "it's"
    spark.range(0, 40, 1, 4).write.parquet(str(old))
    spark.sql(f"CREATE TABLE x USING parquet LOCATION '{old}'")
    assert spark.table("x").count() == 40  # Spark caches the listing
    done = fallback.optimize(spark, "x", ["id"], to=str(new), switch_location=True)
    assert done.is_switched and location(spark, "x") == str(new)
    spark.sql("INSERT INTO x VALUES (99)")
    assert spark.table("x").count() == 41 and spark.read.parquet(str(old)).count() == 40


def test_partitions(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """All partitions are switched, including partitions with unusual or null values, a partition
    that is stored outside the table's folder, and a partition without rows."""
    old, new = tmp_path / "t", tmp_path / "z"
    spark.sql(
        "CREATE TABLE x (id BIGINT, p STRING, `q r` INT) USING parquet "
        f"PARTITIONED BY (p, `q r`) LOCATION '{old}'"
    )
    spark.sql(f"ALTER TABLE x ADD PARTITION (p = 'far', `q r` = 1) LOCATION '{tmp_path / 'far'}'")
    spark.sql("ALTER TABLE x ADD PARTITION (p = 'empty', `q r` = 1)")
    spark.sql("""
        INSERT INTO x SELECT id, element_at(array('a/b', 'it''s', '50%', NULL, 'far'), 1 + int(id % 5)),
          1 FROM range(50)""")
    spark.sql("INSERT INTO x SELECT id, 'a', NULL FROM range(5)")
    before = rows_of(spark.table("x"))
    done = fallback.optimize(spark, "x", ["id"], to=str(new), switch_location=True)
    assert (done.rows, done.partitions) == (55, 6)
    assert rows_of(spark.table("x")) == before
    lie_in = {row[0].removeprefix("file:") for row in
              spark.table("x").selectExpr("_metadata.file_path").distinct().collect()}  # fmt: skip
    assert all(path.startswith(f"{new}/") for path in lie_in) and len(lie_in) == 6
    spark.sql("INSERT INTO x VALUES (99, 'empty', 1), (99, 'far', 1)")
    assert spark.read.parquet(str(new)).where("id = 99").count() == 2
    assert spark.table("x").count() == 57


REFUSED = {
    "CREATE TABLE x USING parquet AS SELECT 1 AS id": "is not an external table",
    "CREATE VIEW x AS SELECT 1 AS id": "the table is a view",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_refused(spark: SparkSession, database: str, tmp_path: Path, statement: str) -> None:
    spark.sql(statement)
    with pytest.raises(ZOrderError, match=REFUSED[statement]):
        fallback.optimize(spark, "x", ["id"], to=str(tmp_path / "z"), switch_location=True)
    assert not (tmp_path / "z").exists()


def test_a_path_has_no_location(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(5).write.parquet(str(tmp_path / "t"))
    with pytest.raises(ZOrderError, match="is not an external table"):
        fallback.optimize(
            spark, str(tmp_path / "t"), ["id"], to=str(tmp_path / "z"), switch_location=True
        )


def test_others_write_meanwhile(
    spark: SparkSession, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another writer adds a row while OPTIMIZE copies the table, the copy is outdated. OPTIMIZE
    then does not change the table's location, so the table still contains the new row."""
    old, new = tmp_path / "t", tmp_path / "z"
    spark.range(0, 40, 1, 4).write.parquet(str(old))
    spark.sql(f"CREATE TABLE x USING parquet LOCATION '{old}'")
    copy = importlib.import_module("pyzorder.fallback.optimize")._Copy
    write = copy._write

    def and_another(self: Any) -> None:
        write(self)
        spark.range(99, 100).write.mode("append").parquet(str(old))

    monkeypatch.setattr(copy, "_write", and_another)
    with pytest.raises(ZOrderError, match="ZORDER_CONFLICT.*keeps its location"):
        fallback.optimize(spark, "x", ["id"], to=str(new), switch_location=True)
    assert location(spark, "x") == str(old)
    assert rows_of(spark.table("x")) == rows_of(spark.range(40).union(spark.range(99, 100)))
    assert len(selection(spark, str(new), "id = 99").skipped) == 1
