"""The fallback's OPTIMIZE: the rows of before, in files as good as the jar's."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pyzorder import fallback
from pyzorder.errors import ZOrderError
from pyzorder.fallback import footers, markers
from pyzorder.fallback.choice import files_of
from pyzorder.fallback.index_store import FileEntry
from pyzorder.fallback.run_records import FileRef
from pyzorder.fallback.run_settings import RunSettings
from pyzorder.fallback.stores import LocalStore, TableFolder
from pyzorder.fallback.writer import Writer
from tests.fallback.files import selection
from tests.spark import indexes, scans
from tests.spark.journal_driver import Rewrite
from tests.spark.tables import aim_at, data_files, metrics, rows_of, sales


@pytest.mark.parametrize("format", ["parquet", pytest.param("orc", marks=pytest.mark.fallback)])
def test_rows_stay(spark: SparkSession, tmp_path: Path, format: str) -> None:
    table = tmp_path / "t"
    sales(spark).write.format(format).partitionBy("day").save(str(table))
    before = rows_of(spark.read.format(format).load(str(table)))
    aim_at(spark, table, 12)
    done = fallback.optimize(spark, str(table), ["a", "b", "s.x"], format=format)
    assert done.files_added == len(data_files(table)) and 9 <= done.files_added <= 15
    assert rows_of(spark.read.format(format).load(str(table))) == before
    indexes.check_sound(spark, table, format)
    assert not [p for p in (table / "_zorder").rglob("*") if p.name[0] != "_"]
    assert not list(table.rglob(".part*.crc")) and not list(table.rglob("_zorder.*"))
    entries = indexes.table(spark, table)
    assert {tuple(e["clustered_by"]) for e in entries} == {("a", "b", "s.x")}
    left_out = selection(spark, str(table), "a = 77", format=format)
    assert len(left_out.skipped) > len(data_files(table)) / 3


def shares(spark: SparkSession, table: Path) -> tuple[float, float]:
    """Mean share of the files that lookups of one column open, and boxes of 10 % of each."""
    random, total = np.random.default_rng(3), len(data_files(table))
    relation = f"parquet.`{table}`"

    def opened(predicate: str) -> int:
        return len(scans.opened(spark.sql(f"SELECT * FROM {relation} WHERE {predicate}")))

    points = [f"{c} = {v}" for c in "ab" for v in random.integers(0, 10_000, 15)]
    boxes = [
        f"a BETWEEN {a} AND {a + 1000} AND b BETWEEN {b} AND {b + 1000}"
        for a, b in random.integers(0, 9000, (15, 2))
    ]
    means = [np.mean([opened(p) for p in asked]) / total for asked in (points, boxes)]
    return float(means[0]), float(means[1])


@pytest.mark.fallback
def test_files_as_good_as_the_jars(spark: SparkSession, tmp_path: Path) -> None:
    rows = ["int(abs(xxhash64(id)) % 10000) AS a", "abs(xxhash64(id, 1)) % 10000 AS b", "id"]
    for name in ("jar", "fallback"):
        spark.range(0, 60_000, 1, 4).selectExpr(*rows).write.parquet(str(tmp_path / name))
    aim_at(spark, tmp_path / "jar", 36)
    spark.sql(f"OPTIMIZE '{tmp_path / 'jar'}' ZORDER BY (a, b)")
    fallback.optimize(spark, str(tmp_path / "fallback"), ["a", "b"])
    jar, own = shares(spark, tmp_path / "jar"), shares(spark, tmp_path / "fallback")
    print(jar, own)
    assert own == pytest.approx(jar, rel=0.07)


@pytest.mark.fallback
def test_again(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is left to do, for neither; with new files, their partition alone is."""
    table = tmp_path / "t"
    sales(spark, 3000).write.partitionBy("day").parquet(str(table))
    aim_at(spark, table, 9)
    assert fallback.optimize(spark, str(table), ["a", "b"]).partitions == 3
    assert fallback.optimize(spark, str(table), ["a", "b"]).files_removed == 0
    by_jar = metrics(spark.sql(f"OPTIMIZE '{table}' ZORDER BY (a, b)"))
    assert by_jar.numFilesRemoved == 0
    with scans.settings(spark, spark__sql__zorder__write__index="false"):
        sales(spark, 300).where("day = 1").write.partitionBy("day").mode("append").parquet(
            str(table)
        )
    assert fallback.optimize(spark, str(table), ["a", "b"], where="day = 2").files_removed == 0
    assert fallback.optimize(spark, str(table), ["a", "b"]).partitions == 1
    assert fallback.optimize(spark, str(table), ["a", "b"], full=True).partitions == 3
    assert spark.read.parquet(str(table)).count() == 3100


@pytest.mark.fallback
def test_what_the_jar_does_with_its_runs(spark: SparkSession, database: str) -> None:
    """RESTORE and VACUUM find the files that the fallback has retired."""
    sales(spark, 2000).write.saveAsTable("x")
    before = rows_of(spark.table("x"))
    fallback.optimize(spark, "x", ["a", "c"])
    planned = spark.table("x").where("a = 77")
    spark.sql("OPTIMIZE x FULL ZORDER BY (b)")
    assert planned.count() == sum(n for row, n in before.items() if row.startswith("Row(a=77,"))
    spark.sql("RESTORE x TO BEFORE OPTIMIZE")
    fallback.optimize(spark, "x", ["c", "d"], full=True)
    spark.sql("RESTORE x TO BEFORE OPTIMIZE")
    assert rows_of(spark.table("x")) == before
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        assert spark.sql("VACUUM x RETAIN 0 HOURS").count() > 0
    assert rows_of(spark.table("x")) == before


@pytest.mark.fallback
def test_types_and_names(spark: SparkSession, database: str) -> None:
    """Every type that can be clustered by; names that need quotes, and partitions of odd names."""
    spark.sql("""
        CREATE TABLE x (`a b` TINYINT, `x.y` DECIMAL(20,3), f FLOAT, dt DATE, ts TIMESTAMP,
          tn TIMESTAMP_NTZ, bin BINARY, flag BOOLEAN, c CHAR(4), n DECIMAL(9,2), `p q` STRING)
        USING parquet PARTITIONED BY (`p q`)""")
    spark.sql("""
        INSERT INTO x SELECT if(id % 9 = 0, NULL, tinyint(id)), id * 1.5, id / 3, date_add(
          DATE'1600-01-01', int(id) * 1000), timestamp_seconds(id * 1e7), TIMESTAMP_NTZ'2020-01-01 00:00:00'
          + make_dt_interval(id), CAST(string(id) AS BINARY), id % 2 = 0, concat('c', id % 10), id / 8,
          element_at(array('a b', 'é/x', '50%', NULL), 1 + int(id % 4)) FROM range(0, 120, 1, 3)""")
    before = rows_of(spark.table("x"))
    assert "y" not in before
    for columns in (["`a b`", "`x.y`"], ["f", "dt"], ["ts", "tn"], ["bin", "flag"], ["n"]):
        done = fallback.optimize(spark, "x", columns, full=True)
        assert done.partitions == 4 and done.files_added == 4
        assert rows_of(spark.table("x")) == before, columns
        found = fallback.read(spark, "x").where("`a b` = 5 OR f > 30")
        assert found.count() == spark.table("x").where("`a b` = 5 OR f > 30").count()


@pytest.mark.fallback
@pytest.mark.parametrize("period", [1, 2])
def test_a_heavy_value_that_comes_again_and_again(
    spark: SparkSession, tmp_path: Path, period: int
) -> None:
    """Its rows are dealt out evenly, however regularly other rows lie between them."""
    table = tmp_path / "t"
    rows = spark.range(0, 40_000, 1, 1)
    rows.selectExpr(f"if(id % {period} = 0, 0, id) AS a", "xxhash64(id) AS payload").write.parquet(
        str(table)
    )
    aim_at(spark, table, 8)
    fallback.optimize(spark, str(table), ["a"])
    counts = [pq.read_metadata(file).num_rows for file in data_files(table)]
    assert len(counts) == 8
    assert max(counts) < 1.2 * min(counts)


REFUSED = {
    ("CREATE TABLE x (a INT) USING parquet CLUSTERED BY (a) INTO 2 BUCKETS", "a"): "is bucketed",
    ("CREATE TABLE x (a INT, p INT) USING parquet PARTITIONED BY (p)", "p"): "no one column p",
    ("CREATE TABLE x (a INT) USING parquet", "b"): "no one column b .*; there are a",
    ("CREATE TABLE x (a INT) USING parquet", "a,a"): "each named once",
    ("CREATE TABLE x (a INTERVAL DAY) USING parquet", "a"): "cannot be clustered by here",
    ("CREATE TABLE x (a INT) USING parquet TBLPROPERTIES ('zorder.optimize.curve' = 'hilbert')", "a"):
        "asks for zorder.optimize.curve hilbert",
    ("CREATE TABLE x (a INT) USING parquet TBLPROPERTIES ('zorder.publish.method' = 'location')", "a"):
        "asks for zorder.publish.method location",
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(spark: SparkSession, database: str, case: tuple[str, str]) -> None:
    statement, columns = case
    spark.sql(statement)
    with pytest.raises(ZOrderError, match=REFUSED[case]):
        fallback.optimize(spark, "x", columns.split(","))


#: What is in a folder -> what is said of it.
FOLDERS: dict[str, dict[str, bytes]] = {
    "ZORDER_NO_FILES": {},
    "ZORDER_UNREADABLE_FILE": {"a.parquet": b"no such thing" * 9},
}


@pytest.mark.parametrize("condition", FOLDERS)
def test_a_folder_without_a_table(spark: SparkSession, tmp_path: Path, condition: str) -> None:
    for name, held in FOLDERS[condition].items():
        (tmp_path / name).write_bytes(held)
    with pytest.raises(ZOrderError, match=condition):
        fallback.optimize(spark, str(tmp_path), ["a"])
    assert [path.name for path in data_files(tmp_path)] == list(FOLDERS[condition])
    with pytest.raises(ZOrderError, match="ZORDER_PATH_NOT_FOUND"):
        fallback.optimize(spark, str(tmp_path / "none"), ["a"])


def test_one_text_is_no_list_of_columns(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(5).write.parquet(str(tmp_path / "t"))
    with pytest.raises(ZOrderError, match=r"write \['id'\]"):
        fallback.optimize(spark, str(tmp_path / "t"), "id")


def test_a_column_that_would_be_lost(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    spark.range(5).selectExpr("id AS a").write.parquet(str(table))
    spark.range(5).selectExpr("id AS a", "id AS z").write.mode("append").parquet(str(table))
    spark.sql(f"CREATE TABLE narrow (a BIGINT) USING parquet LOCATION '{table}'")
    try:
        with pytest.raises(ZOrderError, match=r"ZORDER_UNDECLARED_COLUMNS.*\(z\)"):
            fallback.optimize(spark, "narrow", ["a"])
    finally:
        spark.sql("DROP TABLE narrow")
    assert spark.read.option("mergeSchema", "true").parquet(str(table)).columns == ["a", "z"]


def test_another_writer_at_work(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).toDF("a").write.parquet(str(table))
    at_work = Rewrite(spark, table)
    try:
        with pytest.raises(ZOrderError, match="ZORDER_CONCURRENT_OPTIMIZE.*Run 1"):
            fallback.optimize(spark, str(table), ["a"])
    finally:
        at_work.writer.abort()
    assert fallback.optimize(spark, str(table), ["a"]).files_added == 1


# what someone does to the table while the new file waits to be published
def replace_one(table: Path, files: list[Path]) -> None:
    files[0].write_bytes(files[1].read_bytes() + b" ")


def delete_one(table: Path, files: list[Path]) -> None:
    files[0].unlink()


def overwrite(table: Path, files: list[Path]) -> None:
    table.rename(table.with_name("gone"))  # and not rmtree, which the lease's thread races
    table.mkdir()


def drop(table: Path, files: list[Path]) -> None:
    """As a disk does, into whose folder a record comes meanwhile."""
    for left in [*table.iterdir(), *(table / "_zorder").iterdir()]:
        if left.name not in ("_zorder", "_journal"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()


@pytest.mark.parametrize("change", [replace_one, delete_one, overwrite, drop])
def test_conflict(
    spark: SparkSession, tmp_path: Path, change: Callable[[Path, list[Path]], None]
) -> None:
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).toDF("a").write.parquet(str(table))
    folder, files = TableFolder(str(table)), data_files(table)
    writer = Writer.begin(folder, "TEST", RunSettings())
    refs = [FileRef(f.name, *LocalStore().stats([str(f)])[str(f)]) for f in files]
    staged = Path(writer.staged("part-new.parquet"))
    staged.parent.mkdir(parents=True)
    staged.write_bytes(b"rows")
    entry = FileEntry(
        "part-new.parquet", *LocalStore().stats([str(staged)])[str(staged)], 4, (), ""
    )
    change(table, files)
    left = {f.name: f.read_bytes() for f in data_files(table)}
    with pytest.raises(ZOrderError, match="ZORDER_CONFLICT"):
        writer.publish(refs, [entry], lambda old: old, lambda c: False, lambda: None)
    assert {f.name: f.read_bytes() for f in data_files(table)} == left
    assert not list(table.rglob("*.staged"))
    if change is drop:
        assert not list(table.iterdir())  # or a new table could not have its place


def test_a_file_that_goes_while_it_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """What Spark says of it then is no conflict: it is told as one."""
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).toDF("a").write.parquet(str(table))
    rows = spark.read.parquet(str(table))
    writer = Writer.begin(TableFolder(str(table)), "TEST", RunSettings())
    files = list(files_of(rows, writer.folder))
    broken = RuntimeError("of Spark's")
    assert writer.reason(broken, files) is broken
    away = RuntimeError(f"[FAILED_READ_FILE.FILE_NOT_EXIST] file {table}/part-0 does not exist")
    assert "ZORDER_CONFLICT" in str(writer.reason(away, files))
    data_files(table)[0].unlink()
    assert "ZORDER_CONFLICT" in str(writer.reason(broken, files))
    writer.abort()


@pytest.mark.fallback
def test_a_folder_of_two_tables(spark: SparkSession, tmp_path: Path) -> None:
    """A partition that is a table of its own has a lock of its own: refused, nothing changed."""
    table = tmp_path / "t"
    rows = spark.range(0, 40, 1, 2).selectExpr("id", "id % 2 AS day")
    rows.write.partitionBy("day").parquet(str(table))
    inner = table / "day=1"
    fallback.optimize(spark, str(inner), ["id"])
    before = data_files(table)
    with pytest.raises(ZOrderError, match="ZORDER_SHARED_FOLDER.*journal of its own"):
        fallback.optimize(spark, str(table), ["id"])
    assert fallback.optimize(spark, str(table), ["id"], where="day = 0").partitions == 1
    assert [f for f in before if f.parent == inner] == [
        f for f in data_files(table) if f.parent == inner
    ]
    at_work = Writer.begin(TableFolder(str(table)), "TEST", RunSettings())
    marker = Path(markers.path(at_work.folder, at_work.run, at_work.incarnation, "day=1"))
    marker.touch()
    with pytest.raises(ZOrderError, match="ZORDER_SHARED_FOLDER.*at work there"):
        fallback.optimize(spark, str(inner), ["id"], full=True)
    marker.unlink()
    at_work.abort()
    assert not list(table.rglob("*.staged"))
    assert spark.read.parquet(str(table)).count() == 40


def test_how_files_are_written(spark: SparkSession, tmp_path: Path) -> None:
    """With the codec and the timestamps that they had; the session keeps its settings."""
    table, old = tmp_path / "t", "spark.sql.parquet.outputTimestampType"
    with scans.settings(spark, spark__sql__parquet__outputTimestampType="INT96"):
        rows = spark.range(0, 40, 1, 4).selectExpr("id", "timestamp_seconds(id) AS ts")
        rows.write.option("compression", "gzip").parquet(str(table))
    before = rows_of(spark.read.parquet(str(table))), spark.conf.get(old)
    fallback.optimize(spark, str(table), ["ts"])
    (file,) = data_files(table)
    footer = footers.read(str(file), "parquet")
    assert (footer.codec, footer.timestamps, footer.rows) == ("gzip", {"INT96"}, 40)
    assert (rows_of(spark.read.parquet(str(table))), spark.conf.get(old)) == before
    assert len(selection(spark, str(table), "ts > timestamp_seconds(90)").skipped) == 1


@pytest.mark.fallback
def test_files_appended_meanwhile_stay(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).toDF("a").write.parquet(str(table))
    others = data_files(table)
    spark.range(40, 50, 1, 1).toDF("a").write.mode("append").parquet(str(table))
    (late,) = [f for f in data_files(table) if f not in others]
    hidden = late.rename(late.with_name("_" + late.name))
    fallback.optimize(spark, str(table), ["a"])
    hidden.rename(late)
    assert fallback.read(spark, str(table)).where("a >= 35").count() == 15
    assert spark.read.parquet(str(table)).count() == 50
