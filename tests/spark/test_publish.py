"""Publishing replaces files without losing or duplicating rows for readers. It detects conflicts
and leaves no temporary files behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support import scans
from tests.support.processes.journal_driver import (
    Rewrite,
    hadoop_path,
    package,
    read,
    through_journal,
)
from tests.support.sampled import long
from tests.support.tables import data_files, ids

ROWS = 40


@pytest.fixture(params=long(["parquet", "orc"], "parquet"))
def fmt(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["flat", "partitioned"])
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, fmt: str) -> Path:
    """A table of 40 rows in several files."""
    path = tmp_path / "t"
    writer = spark.range(0, ROWS, 1, 4).selectExpr("id", "id % 2 as day").write.format(fmt)
    (writer.partitionBy("day") if request.param == "partitioned" else writer).save(str(path))
    return path


ALL = list(range(ROWS))


def test_publish_replaces_the_files(spark: SparkSession, table: Path, fmt: str) -> None:
    before = data_files(table)
    Rewrite(spark, table, fmt).publish()
    after = data_files(table)
    assert len(after) < len(before)
    assert not set(after) & set(before)
    assert ids(spark.read.format(fmt).load(str(table))) == ALL
    assert ids(read(spark, table, fmt)) == ALL


def test_names_below_zorder_are_hidden(spark: SparkSession, table: Path, fmt: str) -> None:
    Rewrite(spark, table, fmt).publish()
    below = list((table / "_zorder").rglob("*"))
    assert any(path.name.endswith(".retired") for path in below)
    for path in below:
        assert path.name.startswith("_"), path
        assert path.suffix not in (".parquet", ".orc"), path
    assert [p for p in table.rglob("_zorder.*")] == []  # no markers are left


def test_a_query_planned_before_still_answers(spark: SparkSession, table: Path, fmt: str) -> None:
    planned = read(spark, table, fmt)
    planned._jdf.queryExecution().executedPlan()  # lists the files
    physical = planned.rdd
    physical.getNumPartitions()
    Rewrite(spark, table, fmt).publish()
    assert sorted(row["id"] for row in physical.collect()) == ALL
    Rewrite(spark, table, fmt).publish()
    assert ids(planned) == ALL


def test_a_folder_that_got_other_partitions(spark: SparkSession, tmp_path: Path) -> None:
    """If a folder's partition columns change after a DataFrame was created, the DataFrame returns
    no rows or fails, as in plain Spark. If Spark lists the folder again, the DataFrame may return
    all rows."""
    table = tmp_path / "t"
    table.mkdir()
    schema = "id BIGINT, day BIGINT"
    empty = spark.read.schema(schema).parquet(str(table))
    rows = spark.range(0, ROWS, 1, 4).selectExpr("id", "id % 2 AS day")
    rows.write.mode("append").partitionBy("day").parquet(str(table))
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    with scans.settings(spark, spark__sql__zorder__journal__overlay="false"):
        assert ids(empty) == []
    assert ids(empty) == []
    full = spark.read.schema(schema).parquet(str(table))
    for day in table.glob("day=*"):
        shutil.rmtree(day)
    assert ids(full) == []
    rows.write.mode("append").parquet(str(table))
    for overlay, seen in (("false", []), ("true", ALL)):  # with the journal, Spark lists again
        with scans.settings(spark, spark__sql__zorder__journal__overlay=overlay):
            assert ids(empty) == seen
            with pytest.raises(Exception, match="FILE_NOT_EXIST|does not exist"):
                full.count()
    assert ids(spark.read.schema(schema).parquet(str(table))) == ALL


def test_also_with_ignore_missing_files(spark: SparkSession, table: Path, fmt: str) -> None:
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        rows = read(spark, table, fmt)
        rows._jdf.queryExecution().executedPlan()
        Rewrite(spark, table, fmt).publish()
        assert ids(rows) == ALL
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_a_dataframe_made_before_lists_again(spark: SparkSession, table: Path, fmt: str) -> None:
    made = spark.read.format(fmt).load(str(table))
    Rewrite(spark, table, fmt).publish()
    again = through_journal(spark, made, fmt)
    assert ids(again) == ALL
    assert all("new-" in name for name in again.inputFiles())


def test_single_files_named_before_are_read_where_they_are(
    spark: SparkSession, table: Path, fmt: str
) -> None:
    files = [str(path) for path in data_files(table)]
    made = spark.read.format(fmt).load(files)
    Rewrite(spark, table, fmt).publish()
    assert ids(through_journal(spark, made, fmt)) == ALL


def test_partition_folder_finds_the_journal_above(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    spark.range(0, ROWS).selectExpr("id", "id % 2 as day").write.partitionBy("day").parquet(
        str(table)
    )
    rows = read(spark, table / "day=1")
    rows._jdf.queryExecution().executedPlan()
    made = spark.read.parquet(str(table / "day=1"))
    Rewrite(spark, table).publish()
    assert ids(rows) == ALL[1::2]
    assert ids(through_journal(spark, made)) == ALL[1::2]


def test_abort_leaves_the_table_as_it_was(spark: SparkSession, table: Path, fmt: str) -> None:
    before = data_files(table)
    Rewrite(spark, table, fmt).writer.abort()
    assert data_files(table) == before
    assert ids(read(spark, table, fmt)) == ALL
    assert not list((table / "_zorder").rglob("*.staged"))
    Rewrite(spark, table, fmt).publish()
    assert ids(read(spark, table, fmt)) == ALL


def test_only_one_writer(spark: SparkSession, table: Path, fmt: str) -> None:
    first = Rewrite(spark, table, fmt)
    with pytest.raises(Exception, match="ZORDER_CONCURRENT_OPTIMIZE.*TEST by process"):
        Rewrite(spark, table, fmt)
    first.publish()
    Rewrite(spark, table, fmt).publish()


def test_an_explicit_takeover_undoes_the_other(spark: SparkSession, table: Path, fmt: str) -> None:
    first = Rewrite(spark, table, fmt)
    spark.conf.set("spark.sql.zorder.journal.takeOver", str(first.writer.run()))
    try:
        second = Rewrite(spark, table, fmt)
    finally:
        spark.conf.unset("spark.sql.zorder.journal.takeOver")
    with pytest.raises(Exception):  # the takeover deleted the first run's staged files
        first.publish()
    second.publish()
    assert ids(read(spark, table, fmt)) == ALL


def test_files_appended_meanwhile_are_kept(spark: SparkSession, table: Path, fmt: str) -> None:
    run = Rewrite(spark, table, fmt)
    append = spark.range(ROWS, ROWS + 4).selectExpr("id", "id % 2 as day").write.format(fmt)
    partitioned = any("day=" in str(path) for path in data_files(table))
    (append.partitionBy("day") if partitioned else append).mode("append").save(str(table))
    run.publish()
    assert ids(read(spark, table, fmt)) == list(range(ROWS + 4))


def delete_one(table: Path) -> None:
    data_files(table)[0].unlink()


def touch_one(table: Path) -> None:
    path = data_files(table)[0]
    path.write_bytes(path.read_bytes())


def wipe(table: Path) -> None:
    keep = data_files(table)[0]
    content = keep.read_bytes()
    shutil.rmtree(table)
    keep.parent.mkdir(parents=True)
    keep.write_bytes(content)


@pytest.mark.parametrize("change", [delete_one, touch_one, wipe])
def test_a_changed_input_is_a_conflict(
    spark: SparkSession, table: Path, fmt: str, change: object
) -> None:
    run = Rewrite(spark, table, fmt)
    change(table)  # type: ignore[operator]
    left = data_files(table)
    with pytest.raises(Exception) as failure:
        run.publish()
    assert "ZORDER_CONFLICT" in str(failure.value)
    assert data_files(table) == left


def test_wrong_row_counts_change_nothing(spark: SparkSession, table: Path, fmt: str) -> None:
    run = Rewrite(spark, table, fmt)
    run.staged = run.staged[:-1]
    before = data_files(table)
    with pytest.raises(Exception, match="ZORDER_ROW_COUNT"):
        run.publish()
    assert data_files(table) == before
    assert ids(read(spark, table, fmt)) == ALL


def test_paths_of_the_table_folder(spark: SparkSession) -> None:
    folder = package(spark).TableFolder(hadoop_path(spark, "/t"))
    for name in ["a.parquet", "day=1/a.parquet", "ts=1:2/a b.parquet", "file:/other/p=1/a.parquet"]:
        assert folder.relativize(folder.resolve(name)) == name
    assert (
        folder.retiredPath(7, "day=1/a.parquet").toString()
        == "file:/t/_zorder/_retired/_7/_day=1/_a.parquet.retired"
    )
    assert (
        folder.stagedPath(7, "file:/other/p=1/a.parquet").toString()
        == "file:/other/p=1/_zorder/_staging/_7/_a.parquet.staged"
    )


def test_stores_without_a_known_primitive_are_refused(spark: SparkSession) -> None:
    store = getattr(getattr(package(spark), "CreateIfAbsent$"), "MODULE$")
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    elsewhere = spark._jvm.org.apache.hadoop.fs.Path("http://127.0.0.1/t")
    with pytest.raises(Exception, match="ZORDER_UNSUPPORTED_STORE.*Keep the table on HDFS"):
        store.of(conf, elsewhere)
