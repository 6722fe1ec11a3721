"""The collected file statistics agree with the values that Spark reads, and no required statistic
is missing."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tests.support import indexes
from tests.support.sampled import long
from tests.support.scans import settings as conf

FORMATS = ["parquet", "orc"]

# For each indexed type: (SQL type, values as SQL). The values include extreme values and null.
COLUMNS: list[tuple[str, list[str]]] = [
    ("boolean", ["true", "null", "true"]),
    ("tinyint", ["-128Y", "0Y", "127Y"]),
    ("smallint", ["-32768S", "null", "32767S"]),
    ("int", ["-2147483648", "7", "2147483647"]),
    ("bigint", ["-9223372036854775808L", "null", "9223372036854775807L"]),
    ("float", ["float(-1.5)", "float(-0.0)", "float(2.5)"]),
    ("double", ["double(1.5)", "null", "double('-Infinity')"]),
    ("decimal(7,2)", ["-12345.67", "0.00", "null"]),
    ("decimal(18,3)", ["-123456789012345.678", "5.000", "null"]),
    ("decimal(38,10)", ["-1234567890123456789012345678.0123456789", "0.0000000001", "null"]),
    ("date", ["date'1582-10-15'", "date'9999-12-31'", "null"]),
    ("timestamp", ["timestamp'1950-06-01 12:34:56.789012'", "null"]),
    ("timestamp_ntz", ["timestamp_ntz'1950-06-01 12:34:56.789012'", "null"]),
    ("interval day to second", ["interval '-1' day", "interval '2' hour", "null"]),
    ("string", ["''", "'a'", "'\U0001f600'", "'\uffee'", "null"]),
    ("varchar(9)", ["'b'", "'abc'", "null"]),
    ("binary", ["X''", "X'FF'", "X'7F80'", "null"]),
]


def write(spark: SparkSession, path: Path, fmt: str, query: str) -> None:
    """Appends a file that contains the rows of a query."""
    spark.sql(query).coalesce(1).write.format(fmt).mode("append").save(str(path))


def only(entries: dict[str, Any]) -> Any:
    """Returns the only entry."""
    (entry,) = entries.values()
    return entry


@pytest.mark.parametrize("fmt", FORMATS)
def test_every_type(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    """Statistics are collected for columns of every type. The test covers a file with values, a
    file with only nulls and a file without rows."""
    width = max(len(values) for _, values in COLUMNS)
    rows = [
        ", ".join(
            f"CAST({values[n % len(values)]} AS {t}) AS c{i}"
            for i, (t, values) in enumerate(COLUMNS)
        )
        for n in range(width)
    ]
    path = tmp_path / "t"
    write(spark, path, fmt, " UNION ALL ".join(f"SELECT {row}" for row in rows))
    write(
        spark,
        path,
        fmt,
        "SELECT " + ", ".join(f"CAST(NULL AS {t}) AS c{i}" for i, (t, _) in enumerate(COLUMNS)),
    )
    write(spark, path, fmt, f"SELECT {rows[0]} LIMIT 0")
    indexes.build(spark, path, fmt)
    entries = indexes.check_sound(spark, path, fmt)
    assert sorted(e["num_records"] for e in entries.values()) == [0, 1, width]
    for i, (sql_type, _) in enumerate(COLUMNS):
        for entry in entries.values():
            assert indexes.known(entry, f"c{i}"), f"{sql_type} is unknown in {entry}"
            assert entry[f"c{i}_num_nulls"] is not None


@pytest.mark.parametrize("fmt", FORMATS)
def test_months(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    """Statistics of year-month intervals are correct. PySpark cannot collect these intervals, so
    the test compares them in SQL."""
    path = tmp_path / "t"
    write(
        spark,
        path,
        fmt,
        "SELECT * FROM VALUES (interval '-1-2' year to month), (NULL), "
        "(interval '3-4' year to month) AS t(m)",
    )
    indexes.build(spark, path, fmt)
    row = indexes.loaded_frame(spark, path).selectExpr(
        "m_minValue = interval '-1-2' year to month AS a",
        "m_maxValue = interval '3-4' year to month AS b",
        "m_num_nulls AS n",
    ).first()  # fmt: skip
    assert (row["a"], row["b"], row["n"]) == (True, True, 1)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("sql_type", ["float", "double"])
@pytest.mark.parametrize(
    "values",
    [["'NaN'"], ["'NaN'", "1"], ["1", "'NaN'", "2"], ["null", "'NaN'"], ["-0.0"], ["0.0", "-0.0"]],
)
def test_nan_and_zero(
    spark: SparkSession, tmp_path: Path, fmt: str, sql_type: str, values: list[str]
) -> None:
    path = tmp_path / "t"
    query = ", ".join(f"({v if v == 'null' else f'{sql_type}({v})'})" for v in values)
    write(spark, path, fmt, f"SELECT CAST(x AS {sql_type}) AS x FROM VALUES {query} AS t(x)")
    indexes.build(spark, path, fmt)
    entry = only(indexes.check_sound(spark, path, fmt))
    assert entry["x_nan_seen"] == ("'NaN'" in values)
    assert indexes.known(entry, "x")


@pytest.mark.parametrize("size", long([255, 256, 257, 2000, 5000], 256, 257, 5000))
@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("last", ["a", "é", "\U0001f600", "\U0010ffff", "\x7f"])
def test_long_strings(spark: SparkSession, tmp_path: Path, fmt: str, size: int, last: str) -> None:
    """If strings are long, file footers contain truncated bounds or no bounds. The index truncates
    bounds to about 256 bytes. The truncated bounds must still enclose all values."""
    path = tmp_path / "t"
    spark.createDataFrame([(last * size,), ("b",), (None,)], "s string").coalesce(1).write.format(
        fmt
    ).save(str(path))
    indexes.build(spark, path, fmt)
    entry = only(indexes.check_sound(spark, path, fmt))
    if last == "\U0010ffff" and 4 * size > 256:
        assert not indexes.known(entry, "s")  # no string exceeds all strings with this prefix
        return
    assert entry["s_minValue"] is not None
    assert len(entry["s_maxValue"].encode(errors="surrogatepass")) <= 256 + 4


def test_bytes_that_are_no_text(spark: SparkSession, tmp_path: Path) -> None:
    """Bounds enclose strings that are not valid UTF-8. Parquet footers store such bounds as bytes.
    ORC footers store them as characters, which cannot represent these bytes."""
    for fmt in FORMATS:
        path = tmp_path / fmt
        write(
            spark, path, fmt, "SELECT CAST(v AS STRING) AS s FROM VALUES (X'FE'), (X'61') AS t(v)"
        )
        indexes.build(spark, path, fmt)
        frame = spark.read.format(fmt).load(str(path))
        row = frame.selectExpr("hex(min(s)) AS a", "hex(max(s)) AS b").first()
        assert (row["a"], row["b"]) == ("61", "FE")
        index = indexes.loaded_frame(spark, path)
        bounds = index.selectExpr("hex(s_minValue) AS a", "hex(s_maxValue) AS b").first()
        assert bytes.fromhex(bounds["a"]) <= b"\x61" and bytes.fromhex(bounds["b"]) >= b"\xfe"


@pytest.mark.parametrize("fmt", FORMATS)
def test_missing_columns(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    """If a column or struct field is missing from a file, the index records that all values are
    null. If the column has a default value, the index records that the values are unknown."""
    path = tmp_path / "t"
    write(spark, path, fmt, "SELECT 1 AS a, named_struct('x', 1) AS s")
    schema = indexes.schema(spark, "a int, b int, s struct<x: int, y: int>, d int")
    with_default = StructType.fromJson(schema.jsonValue())
    with_default["d"].metadata = {"EXISTS_DEFAULT": "5", "CURRENT_DEFAULT": "5"}
    indexes.build(spark, path, fmt, with_default)
    entry = indexes.loaded(spark, path)[0]
    assert entry["b_empty"] and entry["b_num_nulls"] == 1
    assert entry["`s.y`_empty" if "`s.y`_empty" in entry else "s.y_empty"]
    assert (entry["s.x_minValue"], entry["s.x_maxValue"]) == (1, 1)
    assert not indexes.known(entry, "d") and entry["d_num_nulls"] is None


@pytest.mark.parametrize("fmt", FORMATS)
def test_char_keeps_nulls_only(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    path = tmp_path / "t"
    spark.sql(f"CREATE TABLE chars (c CHAR(3), v VARCHAR(3)) USING {fmt} LOCATION '{path}'")
    try:
        spark.sql("INSERT INTO chars VALUES ('a', 'a'), (NULL, NULL)")
        schema = indexes.schema(spark, "c string, v string")
        schema["c"].metadata = {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}
        schema["v"].metadata = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}
        indexes.build(spark, path, fmt, schema)
        rows = [r for r in indexes.loaded(spark, path)]
        assert all(not r["c_minValue"] for r in rows)
        assert sum(r["c_num_nulls"] for r in rows) == 1
        assert {r["v_minValue"] for r in rows} - {None} == {"a"}
    finally:
        spark.sql("DROP TABLE chars")


STAMP = "SELECT timestamp'1990-01-01 00:00:00.000001' AS t UNION ALL SELECT NULL"


@pytest.mark.parametrize("stored", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_sparks_own_timestamps(spark: SparkSession, tmp_path: Path, stored: str) -> None:
    """If Spark has written a Parquet file, the footer says how timestamps are stored. Their values
    therefore do not depend on the reader's settings."""
    path = tmp_path / "t"
    with conf(spark, **{"spark.sql.parquet.outputTimestampType": stored}):
        write(spark, path, "parquet", STAMP)
    indexes.build(spark, path, "parquet")
    entry = only(indexes.check_sound(spark, path, "parquet"))
    assert indexes.known(entry, "t") and not entry["t_settings_dependent"]


def test_orc_timestamps_depend_on_the_zone(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(spark, path, "orc", STAMP)
    indexes.build(spark, path, "orc")
    entry = only(indexes.check_sound(spark, path, "orc"))
    assert indexes.known(entry, "t") and entry["t_settings_dependent"]


@pytest.mark.parametrize("written", ["CORRECTED", "LEGACY"])
@pytest.mark.parametrize("read", ["CORRECTED", "LEGACY", "EXCEPTION"])
@pytest.mark.parametrize("sql_type", ["date", "timestamp"])
def test_old_dates_of_spark(
    spark: SparkSession, tmp_path: Path, written: str, read: str, sql_type: str
) -> None:
    path = tmp_path / "t"
    settings_ = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": written,
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }
    with conf(spark, **settings_):
        write(spark, path, "parquet", f"SELECT CAST('1500-03-01' AS {sql_type}) AS d")
    with conf(spark, **{"spark.sql.parquet.datetimeRebaseModeInRead": read}):
        indexes.build(spark, path, "parquet")
        entry = only(indexes.check_sound(spark, path, "parquet"))
    if written == "CORRECTED":
        assert indexes.known(entry, "d") and not entry["d_settings_dependent"]
    else:
        assert entry["d_settings_dependent"] or not indexes.known(entry, "d")


OLD = [date(1500, 3, 1), date(2000, 1, 1)]


@pytest.mark.parametrize("read", ["CORRECTED", "LEGACY", "EXCEPTION"])
def test_old_dates_of_others(spark: SparkSession, tmp_path: Path, read: str) -> None:
    """In files from other writers, the bounds of dates before the start of the Gregorian calendar
    depend on the reader's calendar setting. The bounds of later dates do not."""
    path = tmp_path / "t"
    path.mkdir()
    stamps = [datetime(1500, 3, 1, tzinfo=timezone.utc), datetime(2000, 1, 1, tzinfo=timezone.utc)]
    pq.write_table(
        pa.table({
            "old": pa.array(OLD, pa.date32()),
            "new": pa.array([date(2000, 1, 1), date(2001, 1, 1)], pa.date32()),
            "old_t": pa.array(stamps, pa.timestamp("us", "UTC")),
            "new_t": pa.array([stamps[1]] * 2, pa.timestamp("us", "UTC")),
        }),
        path / "a.parquet",
    )  # fmt: skip
    with conf(spark, **{"spark.sql.parquet.datetimeRebaseModeInRead": read}):
        indexes.build(spark, path, "parquet")
        entry = indexes.loaded(spark, path)[0]
        if read != "EXCEPTION":
            indexes.check_sound(spark, path, "parquet")
    for column in ("new", "new_t"):
        assert indexes.known(entry, column) and not entry[f"{column}_settings_dependent"]
    for column in ("old", "old_t"):
        assert entry[f"{column}_settings_dependent"]
        assert indexes.known(entry, column) == (read != "EXCEPTION")


# (name, Arrow array, whether its statistics must be collected)
ARROW: list[tuple[str, pa.Array, bool]] = [
    ("uint8", pa.array([0, 255, None], pa.uint8()), True),
    ("uint16", pa.array([0, 65535], pa.uint16()), True),
    ("uint32", pa.array([0, 2**32 - 1], pa.uint32()), True),
    ("uint64", pa.array([0, 2**64 - 1], pa.uint64()), True),
    ("int8", pa.array([-128, 127], pa.int8()), True),
    ("decimal", pa.array([Decimal("-1.50"), Decimal("2.25")], pa.decimal128(20, 2)), True),
    ("decimal_small", pa.array([Decimal("-1.5"), Decimal("2.5")], pa.decimal128(5, 1)), True),
    ("ntz", pa.array([datetime(1500, 1, 1), datetime(2020, 1, 1)], pa.timestamp("us")), True),
    ("millis", pa.array([datetime(1970, 1, 1), None], pa.timestamp("ms", "UTC")), True),
    ("text", pa.array(["", "z", "\U0001f600"]), True),
    ("large", pa.array(["x" * 9000, "y"]), True),
    ("bytes", pa.array([b"\xff", b"\x00\x01"]), True),
    ("fixed", pa.array([b"\xff\x00", b"\x00\x01"], pa.binary(2)), True),
    ("nan", pa.array([float("nan"), 1.0, -0.0]), True),
    ("dictionary", pa.array(["a", "b", "a"]).dictionary_encode(), True),
    ("struct", pa.array([{"a": 1}, None, {"a": None}]), True),
]


@pytest.mark.parametrize("stats", [True, False], ids=["statistics", "no statistics"])
@pytest.mark.parametrize("name, array, must", ARROW, ids=[a[0] for a in ARROW])
def test_parquet_of_arrow(
    spark: SparkSession, tmp_path: Path, name: str, array: pa.Array, must: bool, stats: bool
) -> None:
    path = tmp_path / "t"
    path.mkdir()
    pq.write_table(
        pa.table({"c": array}), path / "a.parquet", write_statistics=stats, row_group_size=2
    )
    indexes.build(spark, path, "parquet")
    entry = only(indexes.check_sound(spark, path, "parquet"))
    column = "c.a" if name == "struct" else "c"
    assert indexes.known(entry, column) == must
    assert entry[f"{column}_num_nulls"] is not None


def test_int96_of_others(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.mkdir()
    array = pa.array([datetime(2000, 1, 1), None], pa.timestamp("us"))
    pq.write_table(pa.table({"c": array}), path / "a.parquet", use_deprecated_int96_timestamps=True)
    indexes.build(spark, path, "parquet")
    entry = only(indexes.check_sound(spark, path, "parquet"))
    assert indexes.known(entry, "c") and entry["c_settings_dependent"]


def test_orc_of_arrow(spark: SparkSession, tmp_path: Path) -> None:
    """Statistics are collected for files that ORC's C++ library has written."""
    path = tmp_path / "t"
    path.mkdir()
    po.write_table(
        pa.table({
            "i": pa.array([3, None, -5]),
            "s": pa.array(["b", "a", None]),
            "x": pa.array([float("nan"), 1.0, None]),
            "d": pa.array([date(1500, 1, 1), date(2020, 1, 1), None]),
            "b": pa.array([True, None, True]),
            "n": pa.array([None, None, None], pa.int64()),
        }),
        str(path / "a.orc"),
    )  # fmt: skip
    indexes.build(spark, path, "orc")
    entry = only(indexes.check_sound(spark, path, "orc"))
    assert all(indexes.known(entry, c) for c in "isxdbn")


# (stored type, declared type). Depending on the two types, Spark converts the values, truncates
# them or fails.
WIDER: list[tuple[str, str]] = [
    ("int", "bigint"), ("bigint", "int"), ("int", "smallint"), ("float", "double"),
    ("decimal(5,2)", "decimal(12,2)"), ("decimal(5,2)", "decimal(12,4)"), ("string", "int"),
    ("date", "timestamp_ntz"), ("binary", "string"), ("int", "decimal(12,0)"),
]  # fmt: skip


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("stored, declared", WIDER)
def test_files_of_another_type(
    spark: SparkSession, tmp_path: Path, fmt: str, stored: str, declared: str
) -> None:
    """If a column has a different type in a file than in the table, collecting statistics does not
    fail. If Spark can read the file, the statistics are correct."""
    path = tmp_path / "t"
    values = {"date": "date'2000-01-01'", "binary": "X'41'", "int": "100000", "bigint": "1L"}
    value = values.get(stored, "7")
    write(spark, path, fmt, f"SELECT CAST({value} AS {stored}) AS c")
    schema = indexes.schema(spark, f"c {declared}")
    indexes.build(spark, path, fmt, schema)
    try:
        spark.read.schema(schema).format(fmt).load(str(path)).collect()
    except Exception:  # noqa: BLE001 - Spark itself cannot read the file
        return
    indexes.check_sound(spark, path, fmt, schema)


def test_names_by_case(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(spark, path, "parquet", "SELECT 1 AS Id")
    write(spark, path, "parquet", "SELECT 2 AS ID")
    schema = indexes.schema(spark, "id int")
    indexes.build(spark, path, "parquet", schema)
    entries = indexes.check_sound(spark, path, "parquet", schema)
    assert {e["id_minValue"] for e in entries.values()} == {1, 2}
    with conf(spark, **{"spark.sql.caseSensitive": "true"}):
        indexes.build(spark, path, "parquet", schema)
        entries = indexes.check_sound(spark, path, "parquet", schema)
        assert all(e["id_empty"] for e in entries.values())


@pytest.mark.parametrize("fmt", FORMATS)
def test_unreadable_file_stays_unindexed(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    path = tmp_path / "t"
    write(spark, path, fmt, "SELECT 1 AS a")
    schema = spark.read.format(fmt).load(str(path)).schema
    (path / f"broken.{fmt}").write_bytes(b"PAR1 not a file at all")
    (path / f"empty.{fmt}").write_bytes(b"")
    indexes.build(spark, path, fmt, schema)
    assert len(indexes.loaded(spark, path)) == 1


def test_positional_orc_is_unknown(spark: SparkSession, tmp_path: Path) -> None:
    """The index does not contain statistics for ORC files from old Hive versions. These files lack
    column names, so the reader's schema determines which name refers to which column."""
    path = tmp_path / "t"
    write(spark, path, "orc", "SELECT 1 AS _col0, 2 AS _col1")
    indexes.build(spark, path, "orc", indexes.schema(spark, "a int, b int"))
    entry = indexes.loaded(spark, path)[0]
    assert not indexes.known(entry, "a") and entry["a_num_nulls"] is None


VALUES: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "l": ("bigint", st.integers(-(2**63), 2**63 - 1)),
    "i": ("int", st.integers(-(2**31), 2**31 - 1)),
    "x": ("double", st.floats()),
    "s": ("string", st.text(st.characters(exclude_categories=["Cs"]))),
    "y": ("binary", st.binary(max_size=300)),
    "m": ("decimal(30,4)", st.decimals(-(10**25), 10**25, places=4)),
    "d": ("date", st.dates(date(1600, 1, 1), date(2999, 1, 1))),
    "b": ("boolean", st.booleans()),
}
ROW = st.tuples(*(st.none() | strategy for _, strategy in VALUES.values()))


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(ROW, min_size=1, max_size=12), st.sampled_from(FORMATS))
def test_any_rows(spark: SparkSession, tmp_path_factory: Any, rows: list[Any], fmt: str) -> None:
    schema = ", ".join(f"{name} {sql}" for name, (sql, _) in VALUES.items())
    path: Path = tmp_path_factory.mktemp("any") / "t"
    spark.createDataFrame(rows, schema).coalesce(1).write.format(fmt).save(str(path))
    indexes.build(spark, path, fmt)
    indexes.check_sound(spark, path, fmt)
