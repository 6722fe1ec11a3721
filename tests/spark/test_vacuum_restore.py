"""RESTORE can bring back the files that OPTIMIZE replaced, until VACUUM deletes them after a
retention period."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import pyzorder
from tests.support import scans
from tests.support.tables import aim_at, data_files, metrics, recorded_runs, rows_of, sales

FORMATS = ["parquet", "orc"]
CHECK = "spark.sql.zorder.vacuum.retentionCheck"


def retired(folder: Path) -> list[str]:
    return sorted(str(p) for p in folder.rglob("*.retired"))


def created(spark: SparkSession, provider: str = "parquet", partitioned: bool = False) -> None:
    writer = sales(spark, 2000).write.format(provider)
    (writer.partitionBy("day") if partitioned else writer).saveAsTable("t")


def vacuum(spark: SparkSession, statement: str) -> list[str]:
    return sorted(row["path"].removeprefix("file:") for row in spark.sql(statement).collect())


@pytest.mark.parametrize("provider", FORMATS)
@pytest.mark.parametrize("partitioned", [False, True])
def test_vacuum(
    spark: SparkSession, database: str, tmp_path: Path, provider: str, partitioned: bool
) -> None:
    created(spark, provider, partitioned)
    before = rows_of(spark.table("t"))
    folder = tmp_path / "db" / "t"
    assert vacuum(spark, "VACUUM t") == [] and not (folder / "_zorder").exists()
    replaced = len(data_files(folder))
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    assert vacuum(spark, "VACUUM t") == []  # retention is 168 hours by default
    assert len(retired(folder)) == replaced
    with pytest.raises(AnalysisException, match="Retain at least 1 hour"):
        spark.sql("VACUUM t RETAIN 0 HOURS").collect()
    spark.conf.set(CHECK, "false")
    ours = folder / "_zorder" / "_retired" / "_1" / "notes.txt"
    ours.write_text("not pyzorder's")
    assert vacuum(spark, "VACUUM t RETAIN 0 HOURS DRY RUN") == retired(folder) != []
    gone = retired(folder)
    assert vacuum(spark, "VACUUM t RETAIN 0 HOURS") == gone
    assert retired(folder) == [] and ours.exists()
    assert vacuum(spark, "VACUUM t RETAIN 0 HOURS") == []
    ours.unlink()
    assert vacuum(spark, "VACUUM t RETAIN 0 HOURS") == []
    assert not (folder / "_zorder" / "_retired" / "_1").exists()
    assert rows_of(spark.table("t")) == before


def test_the_index_forgets_what_is_erased(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    """VACUUM also deletes old snapshots of the index."""
    created(spark)
    spark.sql("CREATE SKIPPING INDEX ON t (a)")
    for _ in range(3):
        spark.sql("REFRESH SKIPPING INDEX ON t")
    states = tmp_path / "db" / "t" / "_zorder" / "_index"
    assert len(list(states.glob("_snapshot-*"))) > 1
    spark.sql("VACUUM t RETAIN 1 HOURS")
    assert len(list(states.glob("_snapshot-*"))) > 1
    spark.conf.set(CHECK, "false")
    spark.sql("VACUUM t RETAIN 0 HOURS")
    assert [len(list(states.glob(n))) for n in ("_snapshot-*", "_v*.json")] == [1, 1]
    assert scans.explain(spark.table("t"))[0]["unindexed"] == 0


def test_what_a_dead_writer_left(spark: SparkSession, database: str, tmp_path: Path) -> None:
    created(spark)
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    left = tmp_path / "db" / "t" / "_zorder" / "_staging" / "_1" / "_part-0.parquet.staged"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    assert vacuum(spark, "VACUUM t DRY RUN") == [str(left)]
    assert vacuum(spark, "VACUUM t") == [str(left)]
    assert not left.parent.exists()


def test_halves_of_records(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """VACUUM deletes temporary files of a process that died while writing. It keeps recent
    temporary files, because they may be in use."""
    created(spark)
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    zorder = tmp_path / "db" / "t" / "_zorder"
    folders = (zorder, zorder / "_journal", zorder / "_index")
    halves = [folder / f"_temporary-{age}" for folder in folders for age in ("new", "old")]
    for half in halves:
        half.write_bytes(b"{")
        if half.name.endswith("old"):
            os.utime(half, (0, 0))
    spark.conf.set(CHECK, "false")
    gone = vacuum(spark, "VACUUM t RETAIN 0 HOURS")
    assert [name for name in gone if "_temporary-" in name] == sorted(map(str, halves[1::2]))
    assert [half for half in halves if half.exists()] == halves[::2]


def test_optimize_deletes_what_has_expired(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    created(spark)
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    folder = tmp_path / "db" / "t"
    old = retired(folder)
    spark.sql("OPTIMIZE t FULL ZORDER BY (a)")
    assert set(old) < set(retired(folder))
    done = folder / "_zorder" / "_journal" / "_1.done"
    eight_days_ago = time.time() - 8 * 24 * 3600
    os.utime(done, (eight_days_ago, eight_days_ago))
    spark.sql("OPTIMIZE t ZORDER BY (a)")  # no files need to be rewritten
    assert set(old) & set(retired(folder)) == set() != set(retired(folder))


def test_partitions_elsewhere(spark: SparkSession, database: str, tmp_path: Path) -> None:
    created(spark, partitioned=True)
    elsewhere = tmp_path / "elsewhere"
    spark.sql(f"ALTER TABLE t ADD PARTITION (day = 7) LOCATION '{elsewhere}'")
    spark.sql("INSERT INTO t PARTITION (day = 7) SELECT a, b, c, d, s, list FROM t WHERE day = 1")
    before = rows_of(spark.table("t"))
    files = data_files(elsewhere)
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    assert data_files(elsewhere) != files and retired(elsewhere) != []
    spark.sql("RESTORE t TO BEFORE OPTIMIZE")
    assert data_files(elsewhere) == files
    assert rows_of(spark.table("t")) == before
    spark.conf.set(CHECK, "false")
    vacuum(spark, "VACUUM t RETAIN 0 HOURS")
    assert retired(elsewhere) == retired(tmp_path / "db" / "t") == []
    assert rows_of(spark.table("t")) == before


def test_all_partitions_elsewhere(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """Statements work even if all partitions are stored outside the table's folder. The table's
    folder then contains only pyzorder's files. OPTIMIZE fails if the table's folder does not
    exist."""
    home = tmp_path / "home"
    spark.sql(
        f"CREATE TABLE t (id BIGINT, day INT) USING parquet PARTITIONED BY (day) LOCATION '{home}'"
    )
    for day in (1, 2):
        place = tmp_path / f"elsewhere {day}"
        spark.range(100 * day, 100 * day + 100, 1, 3).write.parquet(str(place))
        spark.sql(f"ALTER TABLE t ADD PARTITION (day = {day}) LOCATION '{place}'")
    with pytest.raises(AnalysisException, match="ZORDER_CONFLICT.*create the folder"):
        spark.sql("OPTIMIZE t ZORDER BY (id)")
    home.mkdir()
    before = rows_of(spark.table("t"))
    assert metrics(spark.sql("OPTIMIZE t ZORDER BY (id)")).numFilesRemoved == 6
    assert len(scans.opened(spark.table("t").where("id = 150"))) == 1
    assert spark.sql("RESTORE t TO BEFORE OPTIMIZE").first().num_restored_files == 6
    spark.sql("OPTIMIZE t ZORDER BY (id)")
    spark.conf.set(CHECK, "false")
    assert len(vacuum(spark, "VACUUM t RETAIN 0 HOURS")) >= 6
    assert retired(tmp_path) == []
    assert rows_of(spark.table("t")) == before


def test_restore_without_a_dropped_partition(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    """RESTORE fails if a partition has been dropped, and works after the partition has been added
    again. Dropping a partition of an external table does not delete its files."""
    sales(spark, 300).write.partitionBy("day").option("path", str(tmp_path / "x")).saveAsTable("t")
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    spark.sql("ALTER TABLE t DROP PARTITION (day = 1)")
    rows, files = rows_of(spark.table("t")), data_files(tmp_path / "x")
    with pytest.raises(
        AnalysisException, match="ZORDER_CANNOT_RESTORE.*in day=1, which is no longer the folder"
    ):
        spark.sql("RESTORE t TO BEFORE OPTIMIZE")
    assert data_files(tmp_path / "x") == files and rows_of(spark.table("t")) == rows
    assert recorded_runs(spark, "t") == ["OPTIMIZE"]
    spark.sql("MSCK REPAIR TABLE t")
    spark.sql("RESTORE t TO BEFORE OPTIMIZE")
    assert rows_of(spark.table("t")) == rows_of(sales(spark, 300))


@pytest.mark.parametrize("provider", FORMATS)
@pytest.mark.parametrize("partitioned", [False, True])
def test_restore(
    spark: SparkSession, database: str, tmp_path: Path, provider: str, partitioned: bool
) -> None:
    """RESTORE brings back the same files byte for byte, keeps rows that were appended later, and
    updates the index."""
    created(spark, provider, partitioned)
    folder = tmp_path / "db" / "t"
    before = {path: path.read_bytes() for path in data_files(folder)}
    size = aim_at(spark, folder, 8)
    done = metrics(spark.sql("OPTIMIZE t ZORDER BY (a)"))
    optimized = set(data_files(folder))
    sales(spark, 30).write.mode("append").format(provider).insertInto("t")
    appended = set(data_files(folder)) - optimized
    rows = rows_of(spark.table("t"))
    (row,) = spark.sql("RESTORE t TO BEFORE OPTIMIZE").collect()
    assert row["num_restored_files"] == done["numFilesRemoved"] == len(before)
    assert row["num_removed_files"] == done["numFilesAdded"] == len(optimized)
    assert row["restored_files_size"] == size
    assert set(data_files(folder)) == set(before) | appended
    assert all(path.read_bytes() == content for path, content in before.items())
    assert rows_of(spark.table("t")) == rows
    for row in spark.sql("DESCRIBE SKIPPING INDEX ON t").collect():
        assert row["unindexed"] == 0 and row["clustered"] == 0
    query = "SELECT * FROM t WHERE a BETWEEN 100 AND 120"
    pruned = rows_of(spark.sql(query))
    with scans.plain(spark):
        assert rows_of(spark.sql(query)) == pruned
    assert metrics(spark.sql("OPTIMIZE t ZORDER BY (a)"))["numFilesRemoved"] > 0


@pytest.mark.parametrize("provider", FORMATS)
def test_restore_damaged_files(
    spark: SparkSession, database: str, tmp_path: Path, provider: str
) -> None:
    """RESTORE changes nothing if a retired file is not a data file, and names the file."""
    created(spark, provider, partitioned=False)
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    rows = rows_of(spark.table("t"))
    retired = sorted((tmp_path / "db" / "t" / "_zorder" / "_retired").rglob("*.retired"))
    for path in retired:
        path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(PySparkException, match="ZORDER_UNREADABLE_FILE") as refused:
        spark.sql("RESTORE t TO BEFORE OPTIMIZE")
    assert any(path.name in str(refused.value) for path in retired)
    assert "Repair or remove the damaged file" in str(refused.value)
    assert rows_of(spark.table("t")) == rows


def numbered(folder: Path, first: int, count: int) -> Path:
    """Writes rows to `part-0.parquet`, as a writer that numbers its files would."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "part-0.parquet"
    pq.write_table(pa.table({"id": pa.array(range(first, first + count), pa.int64())}), file)
    return file


@pytest.mark.parametrize("method", ["rename", "location"])
@pytest.mark.parametrize("partition", ["", "p=1"])
def test_restore_with_a_reused_name(
    spark: SparkSession, database: str, tmp_path: Path, method: str, partition: str
) -> None:
    """RESTORE changes nothing if another writer has reused the name of a replaced file."""
    table = "(id BIGINT, p INT) USING parquet PARTITIONED BY (p)"
    folder = tmp_path / "numbered"
    numbered(folder / partition, 0, 100)
    spark.sql(
        f"CREATE TABLE numbered {table if partition else '(id BIGINT) USING parquet'}"
        f" LOCATION '{folder}'"
        f" TBLPROPERTIES ('zorder.publish.method' = '{method}')"
    )
    if partition:
        spark.sql("MSCK REPAIR TABLE numbered")
    spark.sql("OPTIMIZE numbered ZORDER BY (id)")
    details = f"DESCRIBE EXTENDED numbered {'PARTITION (p = 1)' if partition else ''}"
    now = [row for row in spark.sql(details).collect() if row["col_name"] == "Location"]
    added = numbered(Path(now[0]["data_type"].removeprefix("file:")), 1000, 10)
    spark.catalog.refreshTable("numbered")
    for _ in range(2):
        with pytest.raises(AnalysisException, match="ZORDER_NAME_TAKEN.*part-0.parquet,"):
            spark.sql("RESTORE numbered TO BEFORE OPTIMIZE").collect()
        assert spark.table("numbered").count() == 110
    assert "RESTORE" not in recorded_runs(spark, "numbered")
    added.rename(added.with_name("part-1.parquet"))
    spark.catalog.refreshTable("numbered")
    spark.sql("RESTORE numbered TO BEFORE OPTIMIZE")
    assert spark.table("numbered").count() == 110


def test_restore_step_by_step(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """Each RESTORE undoes the last OPTIMIZE that has not been undone yet."""
    created(spark)
    folder = tmp_path / "db" / "t"
    states = [data_files(folder)]
    for column in ("a", "b"):
        spark.sql(f"OPTIMIZE t ZORDER BY ({column})")
        states.append(data_files(folder))
    spark.sql("RESTORE t TO BEFORE OPTIMIZE")
    assert data_files(folder) == states[1]
    spark.sql("RESTORE t TO BEFORE OPTIMIZE")
    assert data_files(folder) == states[0]
    with pytest.raises(AnalysisException, match="ZORDER_CANNOT_RESTORE.*Every recorded OPTIMIZE"):
        spark.sql("RESTORE t TO BEFORE OPTIMIZE").collect()
    assert recorded_runs(spark, "t") == ["OPTIMIZE", "OPTIMIZE", "RESTORE", "RESTORE"]
    assert undone_runs(spark) == [1, 2]
    spark.sql("OPTIMIZE t ZORDER BY (c)")
    assert undone_runs(spark) == [1, 2]
    spark.sql("RESTORE t TO BEFORE OPTIMIZE")
    assert data_files(folder) == states[0]
    assert undone_runs(spark) == [1, 2, 5]


def undone_runs(spark: SparkSession) -> list[int]:
    rows = spark.sql("SELECT run FROM optimize_history('t') WHERE undone").collect()
    return [row["run"] for row in rows]


def overwrite_partition(spark: SparkSession, folder: Path) -> None:
    spark.sql("INSERT OVERWRITE t PARTITION (day = 1) SELECT 1, 'b', 2, NULL, NULL, array(3)")


def drop_partition(spark: SparkSession, folder: Path) -> None:
    spark.sql("ALTER TABLE t DROP PARTITION (day = 1)")


def truncate(spark: SparkSession, folder: Path) -> None:
    spark.sql("TRUNCATE TABLE t")


def vacuumed(spark: SparkSession, folder: Path) -> None:
    spark.conf.set(CHECK, "false")
    vacuum(spark, "VACUUM t RETAIN 0 HOURS")


def deleted_by_hand(spark: SparkSession, folder: Path) -> None:
    data_files(folder)[0].unlink()
    spark.catalog.refreshTable("t")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (overwrite_partition, "has since been replaced or deleted"),
        (drop_partition, "has since been replaced or deleted"),
        (truncate, "no OPTIMIZE has replaced files|has since been replaced or deleted"),
        (deleted_by_hand, "has since been replaced or deleted"),
        (vacuumed, "was deleted by VACUUM"),
    ],
)
def test_restore_refuses(
    spark: SparkSession, database: str, tmp_path: Path, change: Any, sentence: str
) -> None:
    created(spark, partitioned=True)
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    folder = tmp_path / "db" / "t"
    change(spark, folder)
    rows, files = rows_of(spark.table("t")), data_files(folder)
    runs = recorded_runs(spark, "t")
    with pytest.raises(AnalysisException, match=sentence):
        spark.sql("RESTORE t TO BEFORE OPTIMIZE").collect()
    assert data_files(folder) == files
    assert rows_of(spark.table("t")) == rows
    assert recorded_runs(spark, "t") == runs


def test_nothing_to_restore(spark: SparkSession, database: str) -> None:
    """RESTORE of a table that has only an index fails and is not recorded as a run."""
    created(spark)
    spark.sql("CREATE SKIPPING INDEX ON t")
    with pytest.raises(AnalysisException, match="no OPTIMIZE has replaced files"):
        spark.sql("RESTORE t TO BEFORE OPTIMIZE")
    assert recorded_runs(spark, "t") == []


def test_python_door(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    sales(spark, 500).write.parquet(str(folder))
    before = data_files(folder)
    table = pyzorder.ZOrderTable.forPath(spark, str(folder))
    table.optimize().executeZOrderBy("a")
    assert table.vacuum().count() == 0
    spark.conf.set(CHECK, "false")
    planned: DataFrame = table.vacuum(0, dryRun=True)
    assert planned.count() == len(before)
    assert table.restoreBeforeOptimize().collect()[0]["num_restored_files"] == len(before)
    assert data_files(folder) == before
    assert table.vacuum(0).count() > 0
    assert scans.opened(spark.read.parquet(str(folder))) == {f.name for f in before}
