"""PyArrow, DuckDB and Polars return the same answers as Spark on tables that Spark has written and
optimized. They do not open the files that the index rules out."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import pyzorder
from tests.support import indexes, scans
from tests.support.engine_tables import spoil
from tests.support.tables import aim_at, data_files
from tests.unit.engines.test_partitions import TYPES

#: One column of each type whose bounds other engines can use. The expressions are evaluated over
#: range(0, 4000).
COLUMNS = """
    if(id % 50 = 3, NULL, int(hash(id) % 1000)) AS a, bigint(hash(id, 1) % 1000) AS l,
    smallint(id % 300) AS sh, float(id % 400) / 4 AS f, if(id = 77, double('NaN'), id / 8D) AS x,
    decimal(id) / 4 AS n, date_add(DATE'2020-01-01', int(id % 900)) AS d,
    timestamp_micros(id * 10000000000 + 7) AS ts,
    CAST(timestamp_micros(id * 9000000000) AS TIMESTAMP_NTZ) AS tn,
    concat('k', lpad(hash(id, 2) % 1000, 5, '0'), repeat('é', 200)) AS s,
    unhex(hex(id)) AS bin, id % 2 = 0 AS b, named_struct('y', id) AS st
"""

T, N = "2000-01-01 00:00:00+00:00", "2000-01-01 00:00:00"
C, F = pl.col, pc.field
_INSTANT = pa.scalar(946684800_000_000, pa.timestamp("us", tz="UTC"))
_LOCAL = pa.scalar(946684800_000_000, pa.timestamp("us"))

#: Conditions in four forms: Spark's SQL, DuckDB's SQL (empty if it is the same as Spark's),
#: PyArrow, Polars.
CONDITIONS: list[tuple[str, str, Any, Any]] = [
    ("a = 7", "", F("a") == 7, C("a") == 7),
    ("a > 900", "", F("a") > 900, C("a") > 900),
    ("a IS NULL", "", F("a").is_null(), None),  # Polars opens all files
    ("a IN (5, 6, 900)", "", F("a").isin([5, 6, 900]), C("a").is_in([5, 6, 900])),
    ("NOT (a < 900)", "", ~(F("a") < 900), ~(C("a") < 900)),
    ("a = 7 AND s < 'k00500'", "", (F("a") == 7) & (F("s") < "k00500"), (C("a") == 7) & (C("s") < "k00500")),
    ("l < -950 OR a = 7", "", (F("l") < -950) | (F("a") == 7), (C("l") < -950) | (C("a") == 7)),
    ("sh = 299", "", F("sh") == 299, C("sh") == 299),
    ("f > 99.5", "", F("f") > 99.5, C("f") > 99.5),
    ("x >= 499", "x >= 499 OR isnan(x)", (F("x") >= 499) | F("x").is_nan(), C("x") >= 499),
    ("isnan(x)", "", F("x").is_nan(), C("x").is_nan()),
    ("n = 12.25", "", F("n") == pa.scalar("12.25").cast(pa.decimal128(26, 6)), C("n") == pl.lit("12.25").cast(pl.Decimal(26, 6))),
    ("d = DATE'2021-02-03'", "", F("d") == pa.scalar("2021-02-03").cast(pa.date32()), C("d") == pl.date(2021, 2, 3)),
    (f"ts < TIMESTAMP'{T}'", f"ts < TIMESTAMPTZ'{T}'", F("ts") < _INSTANT, C("ts") < pl.lit(_INSTANT.as_py())),
    (f"tn < TIMESTAMP_NTZ'{N}'", f"tn < TIMESTAMP'{N}'", F("tn") < _LOCAL, C("tn") < pl.lit(_LOCAL.as_py())),
    ("s LIKE 'k00012%'", "", pc.starts_with(F("s"), "k00012"), C("s").str.starts_with("k00012")),
    ("s BETWEEN 'k00012' AND 'k00014'", "", (F("s") >= "k00012") & (F("s") <= "k00014"), C("s").is_between(pl.lit("k00012"), pl.lit("k00014"))),
    ("bin >= X'0F'", "bin >= '\\x0F'::BLOB", F("bin") >= b"\x0f", C("bin") >= b"\x0f"),
    ("st.y = 3999", "", F("st", "y") == 3999, C("st").struct.field("y") == 3999),
]  # fmt: skip


@pytest.fixture(scope="module")
def optimized(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a table with about 20 files that are clustered by two columns, and one file that is
    not indexed."""
    table = tmp_path_factory.mktemp("engines") / "t"
    with scans.settings(spark, spark__sql__parquet__outputTimestampType="TIMESTAMP_MICROS"):
        rows = spark.range(0, 4000, 1, 4).selectExpr(*_split(COLUMNS))
        rows.write.parquet(str(table))
        aim_at(spark, table, 20)
        spark.sql(f"OPTIMIZE '{table}' ZORDER BY (a, s)")
        spark.conf.unset("spark.sql.zorder.optimize.targetFileSize")
        rows = spark.range(4000, 4010, 1, 1).selectExpr(*_split(COLUMNS))
        with scans.plain(spark):
            rows.write.parquet(str(table / "_new"))
    (new,) = data_files(table / "_new")
    shutil.move(new, table / "unindexed.parquet")
    shutil.rmtree(table / "_new")
    return table


def _split(columns: str) -> list[str]:
    """Splits a SELECT list at commas outside of parentheses."""
    found, depth = [""], 0
    for c in columns:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return found


@pytest.mark.parametrize(
    ("sql", "in_duckdb", "arrow", "polars"), CONDITIONS, ids=lambda v: str(v)[:20]
)
def test_answers(
    spark: SparkSession, optimized: Path, tmp_path: Path, sql: str, in_duckdb: str, arrow: Any,
    polars: Any,
) -> None:  # fmt: skip
    """All engines return Spark's answer, even if the skipped files are overwritten with garbage."""
    frame = spark.read.parquet(str(optimized)).where(sql)
    ((count, least),) = frame.selectExpr("count(*)", "min(l)").collect()
    copied = tmp_path / "t"
    shutil.copytree(optimized, copied)
    table, lazy = pyzorder.dataset(copied), pyzorder.scan_polars(copied)
    kept = [Path(path).name for path in pyzorder.files(copied, sql)]
    assert "unindexed.parquet" in kept
    opened = [Path(f.path).name for f in table.get_fragments(arrow)]
    spoil(copied, kept)
    if polars is not None:
        found = lazy.filter(polars).select(pl.len(), pl.min("l")).collect()
        assert found.rows() == [(count, least)]
    spoil(copied, [name for name in kept if name in opened])
    if set(opened) <= set(kept):
        found = table.to_table(filter=arrow, columns=["l"])
        assert (found.num_rows, pc.min(found["l"]).as_py()) == (count, least)
    query = f"SELECT count(*), min(l) FROM ds WHERE {in_duckdb or sql}"
    with duckdb.connect() as connection:
        connection.register("ds", pyzorder.dataset(optimized))
        assert connection.sql(query).fetchall() == [(count, least)]
        paths = [str(optimized / name) for name in kept]
        listed = query.replace("FROM ds", f"FROM read_parquet({paths})")
        if "isnan" not in listed:  # footers exclude NaN from bounds, and DuckDB relies on bounds
            assert connection.sql(listed).fetchall() == [(count, least)]


def test_the_same_files_as_spark(spark: SparkSession, optimized: Path) -> None:
    """For lookups by clustering columns, all engines open the same files as Spark."""
    frame = spark.read.parquet(str(optimized))
    table = pyzorder.dataset(optimized)
    total = len(data_files(optimized))
    for sql, _, arrow, _ in CONDITIONS[:2] + CONDITIONS[5:6]:
        by_spark = scans.opened(frame.where(sql))
        assert {Path(path).name for path in pyzorder.files(optimized, sql)} == by_spark
        assert {Path(f.path).name for f in table.get_fragments(arrow)} == by_spark
        assert len(by_spark) < total / 2


# ---- which files, and which columns -------------------------------------------------------------


def test_files_as_spark_lists_them(spark: SparkSession, tmp_path: Path) -> None:
    for place in (
        ["a.parquet", "_b.parquet", ".c.parquet", "sub/d.parquet", "_c=1"],
        ["p=1/a.parquet", "p=2/x/b.parquet", "p=2/_y/c.parquet", "d.parquet"],
        ["x/p=1/q=2/a.parquet", "x/p=2/q=1/b.parquet"],
    ):
        table = tmp_path / place[0].replace("/", "-")
        for name in place:
            (table / name).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"a": [1]}), table / name)
        (table / Path(place[0]).parent / "empty.parquet").touch()
        read = spark.read.parquet(str(table)).selectExpr("input_file_name() AS f").collect()
        expected = sorted(unquote(row["f"].removeprefix("file://")) for row in read)
        assert sorted(pyzorder.files(table)) == expected


@pytest.mark.parametrize("texts", [row[0] for row in TYPES], ids=str)
def test_partition_columns(spark: SparkSession, tmp_path: Path, texts: list[str]) -> None:
    """Spark infers the types and values that the unit test of partition columns expects."""
    for k, text in enumerate(texts):
        (tmp_path / f"p={text}").mkdir()
        pq.write_table(pa.table({"k": [k]}), tmp_path / f"p={text}" / "a.parquet")
    frame = spark.read.parquet(str(tmp_path))
    found = pyzorder.dataset(tmp_path)
    names = {"int": "int32", "bigint": "int64", "timestamp": "timestamp[us]", "date": "date32[day]"}
    data_type = frame.schema["p"].dataType.simpleString()
    shown = str(found.schema.field("p").type).replace("128", "").replace(", ", ",")
    assert shown == names.get(data_type, data_type).replace("void", "string")
    values = {row["k"]: row["p"] for row in frame.collect()}
    assert {row["k"]: row["p"] for row in found.to_table().to_pylist()} == values
    for k, value in values.items():
        where = "p IS NULL" if value is None else f"p = {_literal(value)}"
        assert str(tmp_path / f"p={texts[k]}" / "a.parquet") in pyzorder.files(tmp_path, where)


def _literal(value: Any) -> str:
    return f"'{value}'" if not isinstance(value, (int, float)) else f"{value}"


# ---- values for which other projects have returned wrong answers --------------------------------


def check_alike(table: Path, conditions: list[str]) -> None:
    """Asserts that DuckDB finds the same number of rows with and without the index."""
    paths = [str(path) for path in data_files(table)]
    plain, ours = ds.dataset(paths), pyzorder.dataset(table)
    with duckdb.connect() as connection:
        connection.register("plain", plain)
        connection.register("ours", ours)
        for condition in conditions:
            query = f"SELECT count(*) FROM {{}} WHERE {condition}"
            expected = connection.sql(query.format("plain")).fetchall()
            assert connection.sql(query.format("ours")).fetchall() == expected, condition


@pytest.mark.parametrize("calendar", ["LEGACY", "CORRECTED"])
@pytest.mark.parametrize("unit", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_old_dates_and_timestamps(
    spark: SparkSession, tmp_path: Path, calendar: str, unit: str
) -> None:
    table = tmp_path / "t"
    with scans.settings(
        spark,
        spark__sql__parquet__datetimeRebaseModeInWrite=calendar,
        spark__sql__parquet__int96RebaseModeInWrite=calendar,
        spark__sql__parquet__outputTimestampType=unit,
        spark__sql__session__timeZone="America/Los_Angeles",
    ):
        for day in (
            "1400-02-28",
            "1582-10-04",
            "1582-10-15",
            "1883-11-18",
            "1900-01-01",
            "2024-03-10",
        ):
            row = f"SELECT DATE'{day}' AS d, TIMESTAMP'{day} 02:30:00' AS ts"
            spark.sql(row).coalesce(1).write.mode("append").parquet(str(table))
        indexes.build(spark, table, "parquet")
    check_alike(
        table,
        [f"{column} {operator} '{day}'" for day in
         ("1400-02-28", "1400-03-08", "1582-10-04", "1582-10-14", "1582-10-15", "1900-01-01", "2024-03-10")
         for column in (("d",) if unit == "INT96" else ("d", "ts")) for operator in ("=", "<", ">=")],
    )  # fmt: skip


def test_nan_zero_and_nulls(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    for values in ("(double('NaN'))", "(double('NaN')), (1D)", "(1D), (2D)", "(-0.0D)", "(0.0D)",
                   "(CAST(NULL AS DOUBLE))", "(NULL), (double('NaN'))", "(NULL), (7D)"):  # fmt: skip
        rows = spark.sql(f"SELECT x, CAST(x AS FLOAT) AS y FROM VALUES {values} AS t(x)")
        rows.coalesce(1).write.mode("append").parquet(str(table))
    indexes.build(spark, table, "parquet")
    for c in "xy":
        check_alike(table, [f"{c} {p}" for p in (
            "> 1e300", "= 'NaN'", ">= 2", "= 0.0", "< 0.0", ">= 0.0", "= -0.0", "!= 1", "IS NULL",
            "NOT IN (1, 2)", "IN (1, 'NaN')", "IS NOT NULL", "IS DISTINCT FROM 7")])  # fmt: skip
        for condition in ("> 1e300", "= double('NaN')", ">= 2", "= 0.0", "< 0.0"):
            expected = spark.read.parquet(str(table)).where(f"{c} {condition}").count()
            frame = {
                "> 1e300": pl.col(c) > 1e300, "= double('NaN')": pl.col(c).is_nan(),
                ">= 2": pl.col(c) >= 2, "= 0.0": pl.col(c) == 0.0, "< 0.0": pl.col(c) < 0.0,
            }[condition]  # fmt: skip
            assert pyzorder.scan_polars(table).filter(frame).collect().height == expected


def test_collations_and_char(spark: SparkSession) -> None:
    if spark.version.startswith("3."):
        pytest.skip("collations need Spark 4")
    spark.sql("DROP TABLE IF EXISTS engines_text")
    spark.sql(
        "CREATE TABLE engines_text (w STRING COLLATE UTF8_LCASE, c CHAR(4), s STRING) USING parquet"
    )
    try:
        spark.sql("CREATE SKIPPING INDEX ON engines_text")
        for value in ("a", "B", "ab", ""):
            spark.sql(f"INSERT INTO engines_text SELECT '{value}', '{value}', '{value}'")
        location = spark.sql("DESCRIBE FORMATTED engines_text").where("col_name = 'Location'")
        table = Path(location.first()["data_type"].removeprefix("file:"))  # type: ignore[index]
        check_alike(table, [f"{c} {o} '{v}'" for c in "wcs" for o in ("=", "<", ">=")
                                   for v in ("a", "A", "b", "a   ", "")])  # fmt: skip
        assert len(pyzorder.files(table, "w = 'A'")) == 4
        assert len(pyzorder.files(table, "c = 'a   '")) == 4
        assert len(pyzorder.files(table, "s = 'a'")) == 1
    finally:
        spark.sql("DROP TABLE engines_text")


def test_files_of_other_writers(spark: SparkSession, tmp_path: Path) -> None:
    """DuckDB returns the right answers for unsigned integers, millisecond timestamps and
    low-precision decimals in files that PyArrow has written."""
    table = tmp_path / "t"
    table.mkdir()
    for k in range(3):
        pq.write_table(
            pa.table({
                "u": pa.array([2**32 - 1 - k], pa.uint32()), "v": pa.array([2**64 - 1 - k], pa.uint64()),
                "m": pa.array([k], pa.timestamp("ms")), "n": pa.array([k], pa.decimal128(5, 0)),
                "w": pa.array([2**31 - 1 - k], pa.int32()),
            }),
            table / f"f{k}.parquet",
        )  # fmt: skip
    indexes.build(spark, table, "parquet")
    check_alike(table, ["u = 4294967295", "u > 4294967293", "v >= 18446744073709551615",
                               "m = '1970-01-01'", "n = 1", "w > 2147483645", "w = 3000000000"])  # fmt: skip


def test_a_file_that_was_replaced(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).write.parquet(str(table))
    spark.sql(f"CREATE SKIPPING INDEX ON '{table}'")
    replaced = data_files(table)[0]
    old = replaced.stat()
    pq.write_table(pa.table({"id": [100, 101]}), replaced)
    os.utime(replaced, ns=(old.st_atime_ns, old.st_mtime_ns + 1_000_000))
    assert [Path(p).name for p in pyzorder.files(table, "id = 100")] == [replaced.name]
    assert pyzorder.dataset(table).to_table(filter=F("id") == 100).num_rows == 1
    assert pyzorder.scan_polars(table).filter(C("id") == 101).collect().height == 1


def test_staleness_of_a_table_that_spark_covers(spark: SparkSession, tmp_path: Path) -> None:
    """If CREATE SKIPPING INDEX has recorded that the index covers all files, other engines plan
    without a listing until the maximum staleness has passed."""
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).write.parquet(str(table))
    spark.sql(f"CREATE SKIPPING INDEX ON '{table}'")
    pq.write_table(pa.table({"id": [100]}), table / "later.parquet")
    assert len(pyzorder.files(table)) == 5
    assert len(pyzorder.files(table, max_staleness="1h")) == 4
    assert len(pyzorder.files(table, "id = 7", max_staleness="1h")) == 1
