"""Engines other than Spark use the sketches that Spark collects, and an index that is published
without Spark keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import pyzorder
from pyzorder import fallback
from pyzorder.engines.indexing import index_files
from tests.support import scans, sketches
from tests.support.tables import data_files

FILES = 16


@pytest.fixture(params=[100, 300], ids=["lists", "hashes"])
def table(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A table whose files all span the same range of `key`, `name`, `price` and `at`, with sketches
    of these columns. The sketches are lists of values if each file has few of them."""
    folder = tmp_path / "t"
    with scans.settings(spark, **{sketches.BUDGET.replace(".", "__"): "1"}):
        spark.range(0, FILES * request.param, 1, FILES).selectExpr(
            "id",
            "(id * 7919) % 1000003 AS key",
            "concat('n', (id * 7919) % 1000003) AS name",
            "CAST((id * 7919) % 1000003 / 100 AS DECIMAL(9,2)) AS price",
            "timestamp_seconds((id * 7919) % 1000003) AS at",
        ).write.parquet(str(folder))
        spark.sql(f"CREATE SKIPPING INDEX ON '{folder}' (key, name, price, at, id)")
        yield folder


def value(row: int) -> int:
    return row * 7919 % 1000003


#: Conditions, and the number of files that contain matching rows. `value(n)` is the key of row n.
LOOKUPS = {
    f"key = {value(77)}": 1, f"{value(77)} = key": 1, f"key <=> {value(77)}": 1, "key = 5": 0,
    f"key IN ({value(77)}, {value(1500)}, NULL)": 2, f"key = {value(77)}.00": 1,
    f"key = '{value(77)}'": 1, f"KEY = {value(77)} AND name = 'n{value(77)}'": 1,
    f"key = {value(77)} AND name = 'n{value(1500)}'": 0,
    f"key = {value(77)} OR name = 'n{value(1500)}'": 2,
    f"key = {value(77)} OR id = 700": 2, f"name = 'n{value(77)}'": 1, "name = 'none'": 0,
    f"name IN ('n{value(77)}', 'n{value(78)}')": 1, f"price = {value(77) / 100}": 1,
    f"price = {value(77) / 100}000": 1, f"price = {value(77) / 100}1": 0, "price = 1.2345678901": 0,
    f"at = TIMESTAMP'1970-01-03 00:00:00Z' OR key = {value(77)}": 1,
}  # fmt: skip


@pytest.mark.parametrize("condition", LOOKUPS)
def test_files(spark: SparkSession, table: Path, condition: str) -> None:
    found = {Path(path).name for path in pyzorder.files(table, condition)}
    spark.read.parquet(str(table)).createOrReplaceTempView("t")
    (truth,) = scans.truth(spark, "t", [condition])
    assert truth["true"] <= found
    assert len(truth["true"]) == LOOKUPS[condition] and len(found) <= LOOKUPS[condition] + 1


@pytest.mark.parametrize("condition", [f"key != {value(77)}", f"NOT key = {value(77)}", "key > 0",
                                       f"key + 1 = {value(77)}", "key <=> NULL OR key > 0",
                                       f"key = {value(77)} OR key > 0"])  # fmt: skip
def test_other_conditions(table: Path, condition: str) -> None:
    assert len(pyzorder.files(table, condition)) == FILES


def test_polars(table: Path) -> None:
    found = pyzorder.scan_polars(table).filter(pl.col("key") == value(77)).collect()
    assert found["id"].to_list() == [77]


def test_a_dataset_with_a_condition(table: Path) -> None:
    where = f"key = {value(77)}"
    found = pyzorder.dataset(table, where=where)
    assert len(found.files) == 1 and len(pyzorder.dataset(table).files) == FILES
    ids = duckdb.sql(f"SELECT id FROM found WHERE {where}").fetchall()
    assert ids == [(77,)]
    assert len(pyzorder.dataset(table, where="key + rand() = 1").files) == FILES
    with pytest.raises(pyzorder.ZOrderError, match="ZORDER_NOT_A_CONDITION"):
        pyzorder.dataset(table, where="key =")


def test_files_that_python_indexes(spark: SparkSession, table: Path) -> None:
    """When `pyzorder index` or the fallback adds a file to the index, the sketches of the other
    files are kept."""
    before = sketches.segments(table)
    pq.write_table(pa.table({"id": [5000], "key": [5000], "name": ["x"]}), table / "other.parquet")
    assert len(index_files(table).indexed) == 1
    assert sketches.segments(table) == before
    assert sketches.pointer(table)["sketched"] == ["key", "name", "price", "at", "id"]
    lookup = spark.read.parquet(str(table)).where(f"key = {value(77)}")
    assert len(scans.opened(lookup)) == 1
    assert len(pyzorder.files(table, f"key = {value(77)}")) == 1
    fallback.refresh_index(spark, str(table))
    assert len(pyzorder.files(table, f"key = {value(77)}")) == 1


def test_files_that_are_gone(table: Path) -> None:
    """When a file's entry is removed from the index, the sketches of the file are removed too."""
    before = sketches.stored(table)
    data_files(table)[0].unlink()
    index_files(table)
    assert sketches.segments(table) == [] and before
    assert len(pyzorder.files(table, f"key = {value(777)}")) > 2
    for _ in range(12):  # older snapshots are deleted together with their segments
        data_files(table)[0].touch()
        index_files(table)
    assert sketches.stored(table) == []
