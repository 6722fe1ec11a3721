"""The fallback's OPTIMIZE copies a table's rows to new files. These files are clustered about as
well as files that the jar writes."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pyzorder import fallback
from pyzorder.errors import ZOrderError
from tests.support import indexes, scans
from tests.support.fallback_files import selection
from tests.support.tables import aim_at, data_files, metrics, rows_of, sales


@pytest.mark.parametrize("format", ["parquet", pytest.param("orc", marks=pytest.mark.fallback)])
def test_a_copy(spark: SparkSession, tmp_path: Path, format: str) -> None:
    table, to = tmp_path / "t", tmp_path / "z"
    sales(spark).write.format(format).partitionBy("day").save(str(table))
    before, files = rows_of(spark.read.format(format).load(str(table))), data_files(table)
    aim_at(spark, table, 12)
    done = fallback.optimize(spark, str(table), ["a", "b", "s.x"], to=str(to), format=format)
    assert data_files(table) == files and not (table / "_zorder").exists()
    assert (done.files, done.partitions, done.rows) == (len(data_files(to)), 3, 6000)
    assert 9 <= done.files <= 15 and not done.is_switched
    assert {file.parent.name for file in data_files(to)} == {"day=0", "day=1", "day=2"}
    assert rows_of(spark.read.format(format).load(str(to))) == before
    indexes.check_sound(spark, to, format)
    entries = indexes.table(spark, to)
    assert len(entries) == done.files
    assert {tuple(e["clustered_by"]) for e in entries} == {("a", "b", "s.x")}
    left_out = selection(spark, str(to), "a = 77", format=format)
    assert len(left_out.skipped) > done.files / 3
    by_jar = scans.opened(spark.sql(f"SELECT * FROM {format}.`{to}` WHERE a = 77"))
    assert len(by_jar) == done.files - len(left_out.skipped)


def test_the_jar_goes_on_with_a_copy(spark: SparkSession, tmp_path: Path) -> None:
    """The jar treats the copied files as clustered. Appends, OPTIMIZE and RESTORE work on the copy
    as usual."""
    table, to = tmp_path / "t", tmp_path / "z"
    sales(spark, 3000).write.partitionBy("day").parquet(str(table))
    aim_at(spark, table, 9)
    fallback.optimize(spark, str(table), ["a", "b"], to=str(to))
    assert metrics(spark.sql(f"OPTIMIZE '{to}' ZORDER BY (a, b)")).numFilesRemoved == 0
    sales(spark, 300).write.partitionBy("day").mode("append").parquet(str(to))
    assert len(indexes.table(spark, to)) == len(data_files(to))
    before = rows_of(spark.read.parquet(str(to)))
    assert metrics(spark.sql(f"OPTIMIZE '{to}' FULL ZORDER BY (c)")).numFilesRemoved > 0
    spark.sql(f"RESTORE '{to}' TO BEFORE OPTIMIZE")
    assert rows_of(spark.read.parquet(str(to))) == before


def shares(spark: SparkSession, table: Path) -> tuple[float, float]:
    """The mean share of files that a lookup of a value in one column opens, and the mean share that
    a box query opens. A box spans 10% of each column's range."""
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
    spark.range(0, 60_000, 1, 4).selectExpr(*rows).write.parquet(str(tmp_path / "jar"))
    aim_at(spark, tmp_path / "jar", 36)
    fallback.optimize(spark, str(tmp_path / "jar"), ["a", "b"], to=str(tmp_path / "fallback"))
    spark.sql(f"OPTIMIZE '{tmp_path / 'jar'}' ZORDER BY (a, b)")
    jar, own = shares(spark, tmp_path / "jar"), shares(spark, tmp_path / "fallback")
    print(jar, own)
    assert own == pytest.approx(jar, rel=0.07)


@pytest.mark.parametrize("partition", ["id % 3", "concat('p', id % 3)"])
def test_rows_lie_in_order(spark: SparkSession, tmp_path: Path, partition: str) -> None:
    """With a single clustering column, the rows in each file are sorted by that column, and each
    file is written by a single task."""
    table, to = tmp_path / "t", tmp_path / "z"
    rows = spark.range(0, 6000, 1, 4).selectExpr("abs(xxhash64(id)) AS a", f"{partition} AS p")
    rows.write.partitionBy("p").parquet(str(table))
    aim_at(spark, table, 12)
    assert fallback.optimize(spark, str(table), ["a"], to=str(to)).files == 12
    for file in data_files(to):
        values = pq.ParquetFile(file).read()["a"].to_pylist()
        assert values == sorted(values)


@pytest.mark.fallback
def test_types_and_names(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """OPTIMIZE accepts clustering columns of every supported type, names that must be quoted, and
    unusual partition values."""
    spark.sql("""
        CREATE TABLE x (`a b` TINYINT, `x.y` DECIMAL(20,3), f FLOAT, dt DATE, ts TIMESTAMP,
          tn TIMESTAMP_NTZ, bin BINARY, flag BOOLEAN, c CHAR(4), n DECIMAL(9,2), `p q` STRING)
        USING parquet PARTITIONED BY (`p q`)""")
    spark.sql("""
        INSERT INTO x SELECT if(id % 9 = 0, NULL, tinyint(id)), id * 1.5, id / 3, date_add(
          DATE'1600-01-01', int(id) * 1000), timestamp_seconds(id * 1e7), TIMESTAMP_NTZ'2020-01-01 00:00:00'
          + make_dt_interval(id), CAST(string(id) AS BINARY), id % 2 = 0, concat('c', id % 10), id / 8,
          element_at(array('a b', 'é/x', '50%', NULL), 1 + int(id % 4)) FROM range(0, 120, 1, 3)""")
    before, schema = rows_of(spark.table("x")), spark.table("x").schema
    for number, columns in enumerate(
        (["`a b`", "`x.y`"], ["f", "dt"], ["ts", "tn"], ["bin", "flag"], ["n"])
    ):
        to = str(tmp_path / f"z {number}")
        done = fallback.optimize(spark, "x", columns, to=to)
        assert (done.partitions, done.files) == (4, 4)
        copy = spark.read.schema(schema).parquet(to)
        assert rows_of(copy) == before, columns
        asked = "`a b` = 5 OR f > 30"
        found = fallback.read(spark, to, schema=schema).where(asked)
        assert found.count() == spark.table("x").where(asked).count()


@pytest.mark.fallback
@pytest.mark.parametrize("period", [1, 2])
def test_a_heavy_value_that_comes_again_and_again(
    spark: SparkSession, tmp_path: Path, period: int
) -> None:
    """The rows with a frequent value are distributed evenly over the files, even if this value
    occurs at regular intervals."""
    table, to = tmp_path / "t", tmp_path / "z"
    rows = spark.range(0, 40_000, 1, 1)
    rows.selectExpr(f"if(id % {period} = 0, 0, id) AS a", "xxhash64(id) AS payload").write.parquet(
        str(table)
    )
    aim_at(spark, table, 8)
    fallback.optimize(spark, str(table), ["a"], to=str(to))
    counts = [pq.read_metadata(file).num_rows for file in data_files(to)]
    assert len(counts) == 8
    assert max(counts) < 1.2 * min(counts)


REFUSED = {
    ("CREATE TABLE x (a INT) USING parquet CLUSTERED BY (a) INTO 2 BUCKETS", "a"): "is bucketed",
    ("CREATE TABLE x (a INT, p INT) USING parquet PARTITIONED BY (p)", "p"): " column p ",
    ("CREATE TABLE x (a INT) USING parquet", "b"): " column b .*: a",
    ("CREATE TABLE x (a INT) USING parquet", "a,a"): "was given twice",
    ("CREATE TABLE x (a INTERVAL DAY) USING parquet", "a"): "type is interval day",
    ("CREATE TABLE x (a INT) USING parquet TBLPROPERTIES ('zorder.optimize.curve' = 'hilbert')", "a"):
        "sets zorder.optimize.curve to hilbert",
    ("CREATE TABLE x (a INT) USING parquet", "a"): "ZORDER_NO_FILES",
    ("CREATE TABLE x (a INT) USING csv", "a"): "the table's provider is csv",
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(spark: SparkSession, database: str, tmp_path: Path, case: tuple[str, str]) -> None:
    statement, columns = case
    spark.sql(statement)
    with pytest.raises(ZOrderError, match=REFUSED[case]):
        fallback.optimize(spark, "x", columns.split(","), to=str(tmp_path / "z"))
    assert not (tmp_path / "z").exists()


#: An error → the files in the folder that cause it
FOLDERS: dict[str, dict[str, bytes]] = {
    "ZORDER_NO_FILES": {},
    "ZORDER_UNREADABLE_FILE": {"a.parquet": b"no such thing" * 9},
    "is a Delta table": {"_delta_log/0.json": b"{}"},
}


@pytest.mark.parametrize("condition", FOLDERS)
def test_a_folder_without_a_table(spark: SparkSession, tmp_path: Path, condition: str) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    for name, held in FOLDERS[condition].items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(held)
    with pytest.raises(ZOrderError, match=condition):
        fallback.optimize(spark, str(folder), ["a"], to=str(tmp_path / "z"))
    with pytest.raises(ZOrderError, match="ZORDER_PATH_NOT_FOUND"):
        fallback.optimize(spark, str(tmp_path / "none"), ["a"], to=str(tmp_path / "z"))
    assert not (tmp_path / "z").exists()


# the target of a copy of table t → why the target is rejected
TARGETS = {
    "t": "overlaps",
    "t/z": "overlaps",
    ".": "overlaps",
    "full": "exists and is not empty",
    "file": "exists and is not empty",
}


@pytest.mark.parametrize("to", TARGETS)
def test_targets(spark: SparkSession, tmp_path: Path, to: str) -> None:
    spark.range(5).write.parquet(str(tmp_path / "t"))
    spark.range(5).write.parquet(str(tmp_path / "full"))
    (tmp_path / "file").touch()
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(ZOrderError, match=f"ZORDER_FALLBACK_TARGET.*{TARGETS[to]}"):
        fallback.optimize(spark, str(tmp_path / "t"), ["id"], to=str(tmp_path / to))
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.parametrize("to", ["empty", "odd ü%20'x", "day=1/z"])
def test_more_targets(spark: SparkSession, tmp_path: Path, to: str) -> None:
    spark.range(5).write.parquet(str(tmp_path / "t"))
    (tmp_path / "empty").mkdir()
    done = fallback.optimize(spark, f"file:{tmp_path}/t/", ["id"], to=f"file:{tmp_path}/{to}")
    assert done.path == str(tmp_path / to)
    assert fallback.read(spark, done.path).where("id = 3").count() == 1


def test_one_text_is_no_list_of_columns(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(5).write.parquet(str(tmp_path / "t"))
    with pytest.raises(ZOrderError, match=r"\['id'\]"):
        fallback.optimize(spark, str(tmp_path / "t"), "id", to=str(tmp_path / "z"))


#: The SELECT list of a second file → the column that is missing from the table's schema. The schema
#: is (a BIGINT, s STRUCT<x INT>).
LOST = {
    "id AS a; named_struct('x', 1) AS s; id AS z": "z",
    "id AS a; named_struct('x', 1, 'y', 2) AS s": "s.y",
    "int(id) AS a; named_struct('x', 1) AS s; id AS z": "z",  # types that cannot be merged
}


@pytest.mark.parametrize("columns", LOST)
def test_a_column_that_would_be_lost(spark: SparkSession, tmp_path: Path, columns: str) -> None:
    table, rows = tmp_path / "t", spark.range(5)
    rows.selectExpr("id AS a", "named_struct('x', 1) AS s").write.parquet(str(table))
    rows.selectExpr(*columns.split("; ")).write.mode("append").parquet(str(table))
    spark.sql(f"CREATE TABLE narrow (a BIGINT, s STRUCT<x: INT>) USING parquet LOCATION '{table}'")
    try:
        with pytest.raises(ZOrderError, match=rf"ZORDER_UNDECLARED_COLUMNS.*\({LOST[columns]}\)"):
            fallback.optimize(spark, "narrow", ["a"], to=str(tmp_path / "z"))
    finally:
        spark.sql("DROP TABLE narrow")
    assert not (tmp_path / "z").exists()


def test_rows_are_counted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another writer adds rows to the copy's folder, OPTIMIZE fails. It does not create an index
    or switch the table to the copy."""
    table, to = tmp_path / "t", tmp_path / "z"
    spark.range(0, 40, 1, 4).write.parquet(str(table))
    copy = importlib.import_module("pyzorder.fallback.optimize")._Copy
    write = copy._write

    def and_another(self: Any) -> None:
        write(self)
        spark.range(1).write.mode("append").parquet(str(to))

    monkeypatch.setattr(copy, "_write", and_another)
    spark.sql(f"CREATE TABLE counted USING parquet LOCATION '{table}'")
    try:
        with pytest.raises(ZOrderError, match="ZORDER_ROW_COUNT.*40 rows but its copy has 41"):
            fallback.optimize(spark, "counted", ["id"], to=str(to), switch_location=True)
        assert not (to / "_zorder" / "_index").exists()
        assert spark.table("counted").count() == 40
    finally:
        spark.sql("DROP TABLE counted")


def test_settings_stay(spark: SparkSession, tmp_path: Path) -> None:
    """OPTIMIZE uses the session's settings for writing files, and leaves these settings
    unchanged."""
    table, old = tmp_path / "t", "spark.sql.files.ignoreMissingFiles"
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "timestamp_seconds(id) AS ts")
    rows.write.parquet(str(table))
    with scans.settings(
        spark,
        spark__sql__parquet__outputTimestampType="TIMESTAMP_MICROS",
        spark__sql__parquet__compression__codec="gzip",
        spark__sql__files__ignoreMissingFiles="true",
    ):
        fallback.optimize(spark, str(table), ["ts"], to=str(tmp_path / "z"))
        assert spark.conf.get(old) == "true"
    (file,) = data_files(tmp_path / "z")
    footer = pq.read_metadata(file)
    assert footer.row_group(0).column(1).compression == "GZIP"
    assert footer.schema.column(1).physical_type == "INT64"
    assert len(selection(spark, str(tmp_path / "z"), "ts > timestamp_seconds(90)").skipped) == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change the owner of a link")
def test_strange_links_are_not_copied(spark: SparkSession, tmp_path: Path) -> None:
    table, secret, to = tmp_path / "t", tmp_path / "secret", tmp_path / "copy"
    spark.range(10).write.parquet(str(table))
    spark.range(100, 110).coalesce(1).write.parquet(str(secret))
    [file] = data_files(secret)
    link = table / "x.parquet"
    link.symlink_to(file)
    os.lchown(link, 12345, 12345)
    with pytest.raises(ZOrderError, match="ZORDER_SYMBOLIC_LINK"):
        fallback.optimize(spark, str(table), ["id"], to=str(to))
    assert not to.exists()
