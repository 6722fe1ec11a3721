"""Publishing new files: what readers see, what is refused, what is left behind."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.spark import scans
from tests.spark.journal_driver import (
    Rewrite,
    hadoop_path,
    package,
    read,
    scala_seq,
    through_journal,
)
from tests.spark.tables import data_files

ROWS = 40


@pytest.fixture(params=["parquet", "orc"])
def fmt(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["flat", "partitioned"])
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, fmt: str) -> Path:
    """A table of 40 rows in several files."""
    path = tmp_path / "t"
    writer = spark.range(0, ROWS, 1, 4).selectExpr("id", "id % 2 as day").write.format(fmt)
    (writer.partitionBy("day") if request.param == "partitioned" else writer).save(str(path))
    return path


def ids(df: DataFrame) -> list[int]:
    return sorted(row["id"] for row in df.select("id").collect())


ALL = list(range(ROWS))


def test_publish_replaces_the_files(spark: SparkSession, table: Path, fmt: str) -> None:
    before = data_files(table)
    Rewrite(spark, table, fmt).publish()
    after = data_files(table)
    assert len(after) < len(before)
    assert not set(after) & set(before)
    assert ids(spark.read.format(fmt).load(str(table))) == ALL
    assert ids(read(spark, table, fmt)) == ALL


@pytest.mark.parametrize("new_life", [False, True])
def test_nothing_is_in_the_way_of_a_new_table(
    spark: SparkSession, tmp_path: Path, new_life: bool
) -> None:
    """A table is dropped while it is rewritten, and a record comes into the folder meanwhile."""
    table = tmp_path / "t"
    spark.range(ROWS).write.parquet(str(table))
    spark.sql(f"CREATE SKIPPING INDEX ON '{table}'")
    run = Rewrite(spark, table)
    journal = table / "_zorder" / "_journal"
    [prepare] = journal.glob("*.prepare")
    for left in [*table.iterdir(), *(table / "_zorder").iterdir()]:
        if left.name not in ("_zorder", "_journal", "_index"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    if new_life:
        (table / "_zorder" / "_incarnation").write_text("another")
        (journal / "_1.outcome").write_text('{"record": "outcome", "incarnation": "another"}')
    with pytest.raises(Exception, match="ZORDER_CONFLICT"):
        run.publish()
    assert prepare.name == "_1.prepare" and not prepare.exists()
    names = {path.name for path in table.rglob("*")}
    assert names == ({"_zorder", "_incarnation", "_journal", "_1.outcome"} if new_life else set())


def test_a_writer_of_a_table_that_is_being_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """It comes when the files are gone, and the folder and some old records are not yet."""
    table = tmp_path / "t"
    spark.range(ROWS).write.parquet(str(table))
    Rewrite(spark, table).publish()
    for left in [*table.iterdir(), *(table / "_zorder").iterdir()]:
        if left.name not in ("_zorder", "_journal"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    (table / "_zorder" / "_journal" / "_1.done").unlink()
    begin = package(spark).Writer.begin
    begin(spark._jsparkSession, hadoop_path(spark, table), "TEST").abort()
    assert list(table.iterdir()) == []


def test_names_below_zorder_are_hidden(spark: SparkSession, table: Path, fmt: str) -> None:
    Rewrite(spark, table, fmt).publish()
    below = list((table / "_zorder").rglob("*"))
    assert any(path.name.endswith(".retired") for path in below)
    for path in below:
        assert path.name.startswith("_"), path
        assert path.suffix not in (".parquet", ".orc"), path
    assert [p for p in table.rglob("_zorder.*")] == []  # no markers stay


def test_a_query_planned_before_still_answers(spark: SparkSession, table: Path, fmt: str) -> None:
    planned = read(spark, table, fmt)
    planned._jdf.queryExecution().executedPlan()  # its files are listed now
    physical = planned.rdd
    physical.getNumPartitions()
    Rewrite(spark, table, fmt).publish()
    assert sorted(row["id"] for row in physical.collect()) == ALL
    Rewrite(spark, table, fmt).publish()
    assert ids(planned) == ALL


def test_a_folder_that_got_other_partitions(spark: SparkSession, tmp_path: Path) -> None:
    """A DataFrame made while there were none, or others, sees what plain Spark shows it."""
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
    for overlay, seen in (("false", []), ("true", ALL)):  # lists anew
        with scans.settings(spark, spark__sql__zorder__journal__overlay=overlay):
            assert ids(empty) == seen
            with pytest.raises(Exception, match="FILE_NOT_EXIST"):
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


@pytest.mark.parametrize(
    "statement", ["VACUUM '{}' DRY RUN", "OPTIMIZE '{}' ZORDER BY (id) DRY RUN"]
)
def test_a_folder_that_is_empty_for_a_moment(
    spark: SparkSession, tmp_path: Path, statement: str
) -> None:
    """As one that is overwritten while a statement looks at it: nothing in it is damaged."""
    folder = tmp_path / "t"
    spark.range(10).coalesce(1).write.parquet(str(folder))
    [file] = data_files(folder)
    ended = threading.Event()

    def come_and_go() -> None:
        while not ended.is_set():
            file.rename(file.with_name("_away"))
            ended.wait(0.001)
            file.with_name("_away").rename(file)
            ended.wait(0.001)

    other = threading.Thread(target=come_and_go)
    other.start()
    said = []
    for _ in range(100):
        try:
            spark.sql(statement.format(folder)).collect()
        except (PySparkException, Py4JJavaError) as failure:
            said.append(str(failure))
    ended.set()
    other.join()
    assert not [text for text in said if not re.search("ZORDER_(NO_FILES|CONFLICT)", text)]


def test_a_file_that_was_away_for_a_moment(spark: SparkSession, tmp_path: Path) -> None:
    """The table was renamed and renamed back while it was read."""
    table = tmp_path / "t"
    spark.range(ROWS).write.parquet(str(table))
    jvm: Any = spark._jvm
    run = Rewrite(spark, table)
    exit_code = getattr(jvm.org.apache.hadoop.util, "Shell$ExitCodeException")
    for folder, told in ((table, "ZORDER_CONFLICT"), (tmp_path / "shuffle", "Job aborted")):
        for missing in (
            jvm.java.io.FileNotFoundException(f"File file:{folder}/part-0 does not exist"),
            exit_code(1, f"chmod: cannot access '{folder}/part-0': No such file or directory"),
        ):
            failure = jvm.java.lang.RuntimeException("Job aborted", missing)
            reason = run.writer.reason(failure, scala_seq(spark, []))
            assert told in f"{reason.toString()} {reason.getCause()}"
    run.writer.abort()


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
    with pytest.raises(Exception):  # its staged files are gone
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


@contextmanager
def optimizing(spark: SparkSession, table: Path) -> Iterator[Future[DataFrame]]:
    """OPTIMIZE writes many files of a table meanwhile."""
    spark.range(0, 4000, 1, 4).write.parquet(str(table))
    with (
        scans.settings(spark, spark__sql__zorder__optimize__targetFileSize="400"),
        ThreadPoolExecutor() as pool,
    ):
        run = pool.submit(spark.sql, f"OPTIMIZE '{table}' ZORDER BY (id)")
        while not list(table.rglob("*.staged")):
            time.sleep(0.01)
        yield run


def test_a_folder_that_another_has_just_made_is_left(spark: SparkSession, tmp_path: Path) -> None:
    """An overwrite deletes the table's folder while OPTIMIZE writes, and makes it anew."""
    table = tmp_path / "t"
    with optimizing(spark, table) as run:
        while table.exists():
            shutil.rmtree(table, ignore_errors=True)
        table.mkdir()
        time.sleep(0.1)
        (table / "_temporary").mkdir()
        with pytest.raises(Exception, match="ZORDER_CONFLICT"):
            run.result()
    until = time.monotonic() + 10  # a task may still be on its way to its end
    while len(list(table.iterdir())) > 1 and time.monotonic() < until:
        time.sleep(0.1)
    assert list(table.iterdir()) == [table / "_temporary"]


def test_a_folder_stays_for_a_moment_where_a_table_was(spark: SparkSession, tmp_path: Path) -> None:
    """CREATE TABLE makes one, and gives it its permissions then."""
    table = tmp_path / "t"
    with optimizing(spark, table) as run:
        for _ in range(60):
            while table.exists():
                shutil.rmtree(table, ignore_errors=True)
            table.mkdir(exist_ok=True)
            time.sleep(0.05)
            assert table.exists()
        with pytest.raises(Exception, match="ZORDER_CONFLICT"):
            run.result()


def test_renamed_and_renamed_back(spark: SparkSession, tmp_path: Path) -> None:
    table, away = tmp_path / "t", tmp_path / "away"
    with optimizing(spark, table) as run:
        table.rename(away)
        time.sleep(0.2)
        if table.exists():  # a task made it anew with its file, and takes it away in a moment
            shutil.rmtree(table)
        away.rename(table)
        with pytest.raises(Exception, match="ZORDER_CONFLICT"):
            run.result()
    assert ids(spark.read.parquet(str(table))) == list(range(4000))


def test_nothing_stays_where_a_table_was(spark: SparkSession, tmp_path: Path) -> None:
    """It is renamed while OPTIMIZE writes: its old name is free again a moment later."""
    table = tmp_path / "t"
    with optimizing(spark, table) as run:
        table.rename(tmp_path / "away")
        with pytest.raises(Exception, match="ZORDER_CONFLICT"):
            run.result()
    until = time.monotonic() + 10
    while table.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not table.exists(), list(table.rglob("*"))


def test_a_folder_that_is_gone_is_not_a_full_disk(spark: SparkSession, tmp_path: Path) -> None:
    """The disk says that 0 bytes are left there."""
    table = tmp_path / "t"
    spark.range(ROWS).write.parquet(str(table))
    run = Rewrite(spark, table)
    shutil.rmtree(table)
    with pytest.raises(Exception, match="ZORDER_CONFLICT"):
        run.writer.checkSpace(1)


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
