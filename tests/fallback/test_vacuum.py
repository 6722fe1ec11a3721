"""The fallback's VACUUM: it deletes what runs replaced, once nothing can need it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyzorder import fallback
from pyzorder.errors import ZOrderError
from tests.spark import scans
from tests.spark.disks import small_disk
from tests.spark.tables import data_files


def optimized(spark: SparkSession, table: Path) -> list[Path]:
    """A table of 40 rows after one OPTIMIZE; the files that it replaced, where they are kept."""
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "id % 2 AS day")
    rows.write.partitionBy("day").parquet(str(table))
    fallback.optimize(spark, str(table), ["id"])
    return sorted((table / "_zorder" / "_retired").rglob("*.retired"))


def test_what_is_deleted_and_when(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    retired, name = optimized(spark, table), str(table)
    staged = table / "_zorder" / "_staging" / "_1" / "_day=1" / "_part-0.parquet.staged"
    staged.parent.mkdir(parents=True)
    staged.touch()
    assert len(retired) == 8
    assert fallback.vacuum(spark, name, dry_run=True) == [str(staged)]
    assert fallback.vacuum(spark, name) == [str(staged)]
    with pytest.raises(ZOrderError, match="ZORDER_RETENTION_TOO_SHORT"):
        fallback.vacuum(spark, name, retain_hours=0)
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        assert sorted(fallback.vacuum(spark, name, 0, dry_run=True)) == [str(f) for f in retired]
        assert sorted(fallback.vacuum(spark, name, 0)) == [str(f) for f in retired]
        assert spark.sql(f"VACUUM '{table}' RETAIN 0 HOURS").count() == 0
    assert not list((table / "_zorder" / "_retired").iterdir())
    assert not list((table / "_zorder" / "_staging").iterdir())
    assert spark.read.parquet(name).count() == 40 and len(data_files(table)) == 2


def test_the_index_forgets_what_is_erased(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    optimized(spark, table)
    fallback.create_index(spark, str(table), ["id"])
    for start in (100, 200):
        spark.range(start, start + 1).selectExpr("id", "0 AS day").write.partitionBy("day").mode(
            "append"
        ).parquet(str(table))
        fallback.refresh_index(spark, str(table))
    states = table / "_zorder" / "_index"
    assert len(list(states.glob("_snapshot-*"))) > 1
    fallback.vacuum(spark, str(table), 1)
    assert len(list(states.glob("_snapshot-*"))) > 1
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        fallback.vacuum(spark, str(table), 0)
    assert [len(list(states.glob(n))) for n in ("_snapshot-*", "_v*.json")] == [1, 1]
    assert spark.read.parquet(str(table)).where("id = 200").count() == 1


def test_next_optimize_deletes_what_has_expired(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    retired = optimized(spark, table)
    assert fallback.optimize(spark, str(table), ["id"]).files_removed == 0
    assert all(file.exists() for file in retired)
    done = table / "_zorder" / "_journal" / "_1.done"
    os.utime(done, (0, done.stat().st_mtime - 8 * 24 * 3600))
    assert fallback.optimize(spark, str(table), ["id"]).files_removed == 0
    assert not any(file.exists() for file in retired)


def test_tables_without_a_journal(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    spark.range(5).write.parquet(str(table))
    assert fallback.vacuum(spark, str(table)) == []
    assert not (table / "_zorder").exists()


def test_it_makes_room_for_itself(spark: SparkSession, tmp_path: Path) -> None:
    """On a disk that is full to the last byte, and keeps what is younger than it is told."""
    with (
        small_disk(tmp_path / "disk") as disk,
        scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"),
    ):
        table = disk.folder / "t"
        retired = [str(file) for file in optimized(spark, table)]
        with disk.room(pages=0):
            with pytest.raises(ZOrderError, match="ZORDER_NO_SPACE.*as it was"):
                fallback.vacuum(spark, str(table), 1)
            assert all(map(os.path.exists, retired))
            assert sorted(fallback.vacuum(spark, str(table), 0)) == retired
        assert not list(table.rglob("*.retired"))
        assert spark.read.parquet(str(table)).count() == 40
        fallback.optimize(spark, str(table), ["id"], full=True)
