"""The summary files _metadata and _common_metadata are retired together with the files that they
describe, because OPTIMIZE makes the summaries stale."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support import scans
from tests.support.processes.journal_driver import killed
from tests.support.sampled import crash
from tests.support.tables import data_files, ids, metrics, target_size

SUMMARIES = ["_common_metadata", "_metadata"]
ROWS = list(range(60))


def summarize(folder: Path, files: list[Path] | None = None) -> None:
    """Writes both summary files for the files below a folder, in the form that PyArrow and Dask
    use."""
    collected = []
    for path in files or data_files(folder):
        footer = pq.read_metadata(path)
        footer.set_file_path(str(path.relative_to(folder)))
        collected.append(footer)
    schema = pq.read_schema(data_files(folder)[0])
    pq.write_metadata(schema, folder / "_common_metadata")
    pq.write_metadata(schema, folder / "_metadata", metadata_collector=collected)


def summaries(folder: Path) -> list[str]:
    """The paths of the summary files outside `_zorder`."""
    found = [path.relative_to(folder) for path in folder.rglob("_*metadata")]
    return sorted(str(path) for path in found if "_zorder" not in path.parts)


def by_summary(folder: Path) -> list[int]:
    """The ids that PyArrow reads through `_metadata`."""
    return sorted(ds.parquet_dataset(folder / "_metadata").to_table()["id"].to_pylist())


def made(spark: SparkSession, folder: Path, parted: bool = False) -> Path:
    """Writes 60 rows in three files or in two levels of partitions, with summaries of all files.
    Returns the folder."""
    rows = spark.range(0, 60, 1, 3).selectExpr("id", "id % 7 AS a", "id % 2 AS p", "id % 3 AS q")
    (rows.write.partitionBy("p", "q") if parted else rows.write).parquet(str(folder))
    summarize(folder)
    if parted:
        summarize(folder / "p=1")
        summarize(folder / "p=1" / "q=0")
    target_size(spark, 600)
    return folder


def history(spark: SparkSession, folder: Path) -> list[tuple[int, int]]:
    rows = spark.sql(f"SELECT removed, added FROM optimize_history('{folder}') WHERE committed")
    return [(row["removed"], row["added"]) for row in rows.collect()]


@pytest.mark.parametrize("by", ["ZORDER BY (id)", ""])
@pytest.mark.parametrize("parted", [False, True])
def test_optimize_and_restore(spark: SparkSession, tmp_path: Path, parted: bool, by: str) -> None:
    folder = made(spark, tmp_path / "t", parted)
    before, old = summaries(folder), len(data_files(folder))
    bytes_before = {name: (folder / name).read_bytes() for name in before}
    planned = spark.read.parquet(str(folder))
    planned._jdf.queryExecution().executedPlan()
    assert by_summary(folder) == ROWS and len(before) == (6 if parted else 2)
    if not by:
        target_size(spark, 10**6)
    done = metrics(spark.sql(f"OPTIMIZE '{folder}' {by}"))
    assert done.numFilesRemoved == old
    assert summaries(folder) == []
    assert ids(spark.read.parquet(str(folder))) == ids(planned) == ROWS
    assert ds.dataset(folder, partitioning="hive" if parted else None).count_rows() == 60
    restored = spark.sql(f"RESTORE '{folder}' TO BEFORE OPTIMIZE").first()
    assert restored["num_restored_files"] == old
    assert history(spark, folder) == [(old, done.numFilesAdded), (done.numFilesAdded, old)]
    assert {name: (folder / name).read_bytes() for name in summaries(folder)} == bytes_before
    assert by_summary(folder) == ids(spark.read.parquet(str(folder))) == ROWS
    assert not list(folder.rglob("_zorder.*"))
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        spark.sql(f"VACUUM '{folder}' RETAIN 0 HOURS")
    assert summaries(folder) == before and by_summary(folder) == ROWS


def test_one_partition(spark: SparkSession, tmp_path: Path) -> None:
    """OPTIMIZE of one partition keeps the summaries in other folders if all the files that they
    describe still exist."""
    folder = made(spark, tmp_path / "t", parted=True)
    summarize(folder / "p=0")
    spark.sql(f"OPTIMIZE '{folder}' FULL WHERE p = 1 AND q = 2 ZORDER BY (id)")
    kept = ["p=0/_common_metadata", "p=0/_metadata"]
    assert summaries(folder) == [*kept, "p=1/q=0/_common_metadata", "p=1/q=0/_metadata"]


@pytest.mark.parametrize("parted", [False, True])
def test_restore_takes_newer_ones_away(spark: SparkSession, tmp_path: Path, parted: bool) -> None:
    """If a user has created summaries of the new files, RESTORE retires these summaries and
    restores the old ones."""
    folder = made(spark, tmp_path / "t", parted)
    old = (folder / "_metadata").read_bytes()
    spark.sql(f"OPTIMIZE '{folder}' ZORDER BY (id)")
    summarize(folder)
    assert by_summary(folder) == ROWS and (folder / "_metadata").read_bytes() != old
    spark.sql(f"RESTORE '{folder}' TO BEFORE OPTIMIZE")
    assert (folder / "_metadata").read_bytes() == old and by_summary(folder) == ROWS
    spark.sql(f"OPTIMIZE '{folder}' ZORDER BY (a)")
    assert summaries(folder) == []


def test_writes_leave_them(spark: SparkSession, tmp_path: Path) -> None:
    """As in plain Spark, an append keeps summaries and an overwrite deletes them."""
    folder = made(spark, tmp_path / "t")
    spark.sql(f"CREATE SKIPPING INDEX ON '{folder}'")
    rows = spark.range(60, 70, 1, 1).selectExpr("id", "id AS a", "id AS p", "id AS q")
    rows.write.mode("append").parquet(str(folder))
    assert summaries(folder) == SUMMARIES and by_summary(folder) == ROWS
    rows.write.mode("overwrite").parquet(str(folder))
    assert summaries(folder) == []


@pytest.mark.parametrize("content", [b"", b"notes of somebody", b"{}"])
def test_files_of_another_kind_stay(
    spark: SparkSession, database: str, tmp_path: Path, content: bytes
) -> None:
    folder = tmp_path / "db" / "t"
    spark.range(0, 60, 1, 3).write.format("orc").saveAsTable("t")
    (folder / "_metadata").write_bytes(content)
    assert metrics(spark.sql("OPTIMIZE t ZORDER BY (id)")).numFilesRemoved == 3
    assert (folder / "_metadata").read_bytes() == content and ids(spark.table("t")) == ROWS


POINTS = ["after-markers", "after-retire", "mid-retire", "before-commit", "after-commit",
          "mid-move-in", "before-done"]  # fmt: skip


@pytest.mark.variants(1)
@pytest.mark.parametrize("point", crash(POINTS, "after-commit"))  # fmt: skip
@pytest.mark.parametrize(
    "statement", ["OPTIMIZE '{}' ZORDER BY (id)", "RESTORE '{}' TO BEFORE OPTIMIZE"]
)
def test_killed(spark: SparkSession, tmp_path: Path, statement: str, point: str) -> None:
    """If a run is killed, every row exists exactly once. After the next writer has run, summaries
    exist if and only if the files that they describe exist."""
    folder = made(spark, tmp_path / "t")
    old = data_files(folder)
    if "RESTORE" in statement:
        spark.sql(f"OPTIMIZE '{folder}' ZORDER BY (id)")
    killed(folder, point, statement.format(folder), "spark.sql.zorder.optimize.targetFileSize=600")
    listing = spark.read.parquet(str(folder))
    assert ids(listing) == ROWS
    spark.sql(f"VACUUM '{folder}'")
    assert ids(spark.read.parquet(str(folder))) == ids(listing) == ROWS
    back = data_files(folder) == old
    assert summaries(folder) == (SUMMARIES if back else [])
    assert not back or by_summary(folder) == ROWS


def test_location_switch(spark: SparkSession, tmp_path: Path) -> None:
    """If OPTIMIZE switches the table to a new folder, this folder does not contain any summaries.
    RESTORE copies the old summaries to a third folder, and VACUUM then deletes the other two
    folders."""
    folder = made(spark, tmp_path / "t")
    spark.sql(f"CREATE TABLE summarized USING parquet LOCATION '{folder}'")
    try:
        spark.sql("ALTER TABLE summarized SET TBLPROPERTIES ('zorder.publish.method' = 'location')")
        (row,) = spark.sql("OPTIMIZE summarized ZORDER BY (id)").collect()
        new = Path(row["path"].removeprefix("file:"))
        assert new != folder and summaries(new) == [] and by_summary(folder) == ROWS
        spark.sql("RESTORE summarized TO BEFORE OPTIMIZE")
        (third,) = {p for p in tmp_path.iterdir() if p.is_dir()} - {folder, new}
        assert summaries(third) == SUMMARIES and by_summary(third) == ROWS
        assert ids(spark.table("summarized")) == ROWS
        with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
            spark.sql("VACUUM summarized RETAIN 0 HOURS")
        assert {p for p in tmp_path.iterdir() if p.is_dir()} == {third}
        assert by_summary(third) == ROWS
    finally:
        spark.sql("DROP TABLE summarized")


def test_partition_switch(spark: SparkSession, tmp_path: Path) -> None:
    """If OPTIMIZE switches partitions, it retires summaries that cover several partitions. The
    summaries of a single partition remain in its old folder until VACUUM deletes the folder."""
    folder = made(spark, tmp_path / "t", parted=True)
    spark.sql("CREATE TABLE summarized (id BIGINT, a BIGINT, p BIGINT, q BIGINT) USING parquet "
              f"PARTITIONED BY (p, q) LOCATION '{folder}'")  # fmt: skip
    try:
        spark.sql("MSCK REPAIR TABLE summarized")
        spark.sql("ALTER TABLE summarized SET TBLPROPERTIES ('zorder.publish.method' = 'location')")
        spark.sql("OPTIMIZE summarized ZORDER BY (id)")
        assert summaries(folder) == ["p=1/q=0/_common_metadata", "p=1/q=0/_metadata"]
        assert ids(spark.table("summarized")) == ROWS
        with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
            spark.sql("VACUUM summarized RETAIN 0 HOURS")
        assert summaries(folder) == [] and ids(spark.table("summarized")) == ROWS
        assert not (folder / "p=1").exists()
    finally:
        spark.sql("DROP TABLE summarized")


def test_the_record_names_them(spark: SparkSession, tmp_path: Path) -> None:
    """The record `retire` lists summary files before data files. sql/FORMAT.md requires this."""
    folder = made(spark, tmp_path / "t")
    spark.sql(f"OPTIMIZE '{folder}' ZORDER BY (id)")
    record = json.loads((folder / "_zorder/_journal/_1.retire").read_text())
    assert sorted(file["path"] for file in record["retire"][:2]) == SUMMARIES
    assert len(record["retire"]) == 5
