"""Indexes that the fallback writes match the rows, and the jar can use them."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyzorder import fallback
from pyzorder.errors import ZOrderError
from tests.fuzz import differential
from tests.fuzz.worlds import World, on_drawn
from tests.support import indexes, scans
from tests.support.fallback_files import kept, selection
from tests.support.tables import data_files, sales

#: The SELECT lists that produce three files. Each file has a column of every type.
FILES = [
    f"int({k} * 10 + id) AS i; {k} * 10 + id AS l; smallint(id) AS sh; tinyint({k}) AS by; "
    f"float({k}) AS f; if(id = 3, double('NaN'), {k} / 2D) AS d; decimal({k} + id / 4) AS n; "
    f"CAST({k} * 12345678901234567890.5BD AS DECIMAL(38,4)) AS w; {k} > 1 AS b; "
    f"date_add(DATE'2024-01-01', {k}) AS dt; timestamp_micros({k} * 1000000 + id) AS ts; "
    f"TIMESTAMP_NTZ'2024-01-01 00:00:00' + make_dt_interval({k}, id) AS tn; "
    f"concat('s', {k}, repeat('é', int(id) * 20)) AS s; CAST(repeat('x', int(id) * 40) AS BINARY) AS x; "
    f"make_dt_interval({k}) AS itv; array(id) AS list; named_struct('a b', {k}, 'c', if({k} = 1, NULL, 'y')) AS st; "
    f"if({k} = 2, NULL, id) AS nul"
    for k in range(3)
]

#: predicate | how many of the three files are skipped
PREDICATES = """
i = 15 | 1
l > 25 | 1
by = 1 | 2
f < 1 | 2
d = 0.5 | 2
d > 5 | 0
n = 2 | 0
w > 20000000000000000000 | 2
b | 2
dt = '2024-01-02' | 2
ts < timestamp_micros(500000) | 2
tn >= TIMESTAMP_NTZ'2024-01-03 00:00:00' | 2
s LIKE 's1%' | 2
st.`a b` = 2 | 2
st.c IS NULL | 2
nul IS NOT NULL | 1
"""


def written(spark: SparkSession, table: Path, format: str = "parquet") -> None:
    for part in FILES:
        rows = spark.range(0, 20, 1, 1).selectExpr(*part.split("; "))
        rows.write.format(format).mode("append").save(str(table))


@pytest.mark.parametrize("format", ["parquet", pytest.param("orc", marks=pytest.mark.fallback)])
def test_index(spark: SparkSession, tmp_path: Path, format: str) -> None:
    table = tmp_path / "t"
    written(spark, table, format)
    assert fallback.create_index(spark, str(table), format=format) == 3
    indexes.check_sound(spark, table, format)
    relation = f"{format}.`{table}`"
    for line in filter(None, PREDICATES.splitlines()):
        predicate, _, few = line.rpartition(" | ")
        found = kept(table, selection(spark, str(table), predicate, format=format))
        assert found == scans.opened(spark.sql(f"SELECT * FROM {relation} WHERE {predicate}"))
        assert len(found) == 3 - int(few), predicate
    scans.check_sound(
        spark, relation, [p.rpartition(" | ")[0] for p in PREDICATES.splitlines()[1:]]
    )
    assert spark.sql(f"SELECT * FROM skipping_index('{table}')").count() == 3
    assert not [p for p in (table / "_zorder").rglob("*") if p.name[0] != "_"]
    modes = {p.stat().st_mode & 0o777 for p in (table / "_zorder").rglob("*") if p.is_file()}
    assert modes == {table.stat().st_mode & 0o666}


def test_writers_in_turns(spark: SparkSession, tmp_path: Path) -> None:
    """The jar and the fallback keep each other's index entries, even entries that they could not
    create themselves."""
    table = tmp_path / "t"
    written(spark, table)
    indexes.build(spark, table, "parquet")
    before = indexes.table(spark, table)
    for part in (FILES[0], FILES[2]):
        rows = spark.range(0, 20, 1, 1).selectExpr(*part.split("; "))
        with scans.settings(spark, spark__sql__zorder__write__index="false"):
            rows.write.mode("append").parquet(str(table))
    (table / before[0]["path"]).unlink()
    assert fallback.refresh_index(spark, str(table)) == 4
    indexes.check_sound(spark, table, "parquet")
    after = {row["path"]: row for row in indexes.table(spark, table)}
    same = [row for row in before if row["path"] in after]
    assert len(same) == 2 and all(repr(after[row["path"]]) == repr(row) for row in same)
    spark.sql(f"REFRESH SKIPPING INDEX ON '{table}'")
    again = {row["path"]: row for row in indexes.table(spark, table)}
    assert {k: repr(v) for k, v in again.items()} == {k: repr(v) for k, v in after.items()}
    assert fallback.refresh_index(spark, str(table)) == 4


def test_named_and_denied_columns(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    written(spark, table)
    with scans.settings(spark, spark__sql__zorder__index__denyColumns="st, I"):
        fallback.create_index(spark, str(table))
        names = set(indexes.table(spark, table)[0].asDict())
        assert "l_minValue" in names and "i_minValue" not in names
        assert not any(name.startswith("st.") for name in names)
        with pytest.raises(ZOrderError, match="ZORDER_FALLBACK_TABLE.* column i "):
            fallback.create_index(spark, str(table), ["i"])
    fallback.create_index(spark, str(table), ["I", "st.`a b`"])
    columns = {n for n in indexes.table(spark, table)[0].asDict() if n.endswith("_minValue")}
    assert columns == {"i_minValue", "st.a b_minValue"}


@pytest.mark.fallback
def test_partitioned_table(spark: SparkSession, database: str) -> None:
    sales(spark, 600).write.partitionBy("day").saveAsTable("parts")
    fallback.create_index(spark, "parts")
    for predicate in ("a = 77", "day = 1 AND a < 100", "day = 1 OR b > 'key-9'"):
        expected = scans.opened(spark.sql(f"SELECT * FROM parts WHERE {predicate}"))
        found = fallback.read(spark, "parts").where(predicate)
        with scans.plain(spark):
            assert found.count() == spark.table("parts").where(predicate).count()
        assert expected == scans.opened(found)


REFUSED = {
    "CREATE VIEW x AS SELECT 1 AS a": "the table is a view",
    "CREATE TABLE x (a INT) USING csv": "the table's provider is csv",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_refused(spark: SparkSession, database: str, statement: str) -> None:
    spark.sql(statement)
    with pytest.raises(ZOrderError, match=REFUSED[statement]):
        fallback.create_index(spark, "x")


@pytest.mark.fallback
def test_char_and_defaults(spark: SparkSession, database: str) -> None:
    spark.sql("CREATE TABLE x (c CHAR(4), v VARCHAR(4), a INT DEFAULT 7) USING parquet")
    spark.sql("INSERT INTO x VALUES ('a', 'b', 1), ('ab', 'bc', 2)")
    spark.sql("ALTER TABLE x ADD COLUMN b INT DEFAULT 5")
    if spark.version.startswith("3."):
        with pytest.raises(ZOrderError, match="Spark 3.5 does not say which file"):
            fallback.create_index(spark, "x")
        assert fallback.read(spark, "x").where("c = 'a'").count() == 1
        return
    fallback.create_index(spark, "x")
    for predicate in ("c = 'a'", "v = 'b'", "a = 9", "b = 5", "b IS NULL"):
        with scans.plain(spark):
            expected = spark.table("x").where(predicate).count()
        assert spark.table("x").where(predicate).count() == expected
        assert fallback.read(spark, "x").where(predicate).count() == expected
    spark.sql("CREATE SKIPPING INDEX IF NOT EXISTS ON x")
    spark.sql("DROP SKIPPING INDEX ON x")
    spark.sql("CREATE SKIPPING INDEX ON x")
    for predicate in ("c = 'a'", "v = 'b'", "a = 9", "b = 5", "b IS NULL"):
        with scans.plain(spark):
            expected = spark.table("x").where(predicate).count()
        assert fallback.read(spark, "x").where(predicate).count() == expected


@pytest.mark.fallback
@pytest.mark.parametrize("number", range(7))
def test_drawn_tables(spark: SparkSession, tmp_path: Path, number: int) -> None:
    """If the fallback has written the index, neither the jar nor the fallback skips a file with
    matching rows."""
    counts = [0, 0]

    def run(world: World) -> None:
        check(spark, tmp_path / str(counts[1]), world, counts)

    on_drawn(run, examples=10 if number else 1, cases=8 if number else 4, number=number)
    assert number == 0 or counts[0] > 0


def check(spark: SparkSession, folder: Path, world: World, counts: list[int]) -> None:
    counts[1] += 1
    table = folder / "t"
    with differential.session(spark, world):
        differential.lay_out(spark, table, world)
        spark.sql("DROP TABLE IF EXISTS drawn")
        spark.sql(f"CREATE TABLE drawn ({world.ddl()}) USING {world.format} LOCATION '{table}'")
        try:
            if not differential.readable(spark, spark.table("drawn")):
                return
            fallback.create_index(spark, "drawn")
            asked = differential.answerable(spark, "drawn", world.predicates)
            if not asked:
                return
            found = scans.check_sound(spark, "drawn", asked)
            counts[0] += sum(len(data_files(table)) - n for n in found.values())
            for predicate, files in zip(asked, scans.truth(spark, "drawn", asked), strict=True):
                left_in = kept(table, selection(spark, "drawn", predicate))
                assert files["true"] <= left_in, f"{world!r}\n{predicate}"
        except scans.FAILURES:
            return
        finally:
            spark.sql("DROP TABLE drawn")


def test_nan_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    rows = spark.createDataFrame([(math.nan,), (None,)], "d DOUBLE")
    rows.coalesce(1).write.parquet(str(table))
    fallback.create_index(spark, str(table))
    for predicate, few in (
        ("d = double('NaN')", 0),
        ("d > 5", 0),
        ("d < 5", 1),
        ("d <= double('NaN')", 0),
    ):
        assert len(selection(spark, str(table), predicate).skipped) == few, predicate


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change the owner of a link")
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_strange_links(spark: SparkSession, database: str, tmp_path: Path, kind: str) -> None:
    """A file that is reached through a link is not indexed if the link and the file belong to
    different users. If the table is named by its path, its columns are not read from the file
    either."""
    table, secret = tmp_path / "t", tmp_path / "secret"
    spark.range(10).selectExpr("id", "1 AS day").write.partitionBy("day").parquet(str(table))
    spark.range(100, 110).coalesce(1).write.parquet(str(secret))
    [file] = data_files(secret)
    link = table / "day=1" / "x.parquet" if kind == "file" else table / "day=2"
    link.symlink_to(file if kind == "file" else secret)
    spark.sql(
        "CREATE TABLE days (id BIGINT, day INT) USING parquet PARTITIONED BY (day) "
        f"LOCATION '{table}'"
    )
    spark.sql("MSCK REPAIR TABLE days")
    fallback.create_index(spark, str(table))
    known = fallback.refresh_index(spark, "days")
    assert known == len(data_files(table / "day=1")) + (kind == "folder")
    os.lchown(link, 12345, 12345)
    (table / "_zorder").rename(tmp_path / "before")
    with pytest.raises(ZOrderError, match="ZORDER_SYMBOLIC_LINK"):
        fallback.create_index(spark, str(table))
    assert fallback.create_index(spark, "days") == known - 1
    assert fallback.refresh_index(spark, "days") == known - 1
