"""Sketches use Spark's equality for the column's type in the table: a lookup finds every equal
value, regardless of how the value is stored and how the literal is written."""

from __future__ import annotations

import os
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

import pyzorder
from tests.support import indexes, scans, sketches
from tests.support.sampled import long

FILES = 6

#: For each type, the values to write and to look up.
VALUES: dict[str, list[str]] = {
    "TINYINT": ["-128Y", "-1Y", "0Y", "1Y", "2Y", "127Y"],
    "SMALLINT": ["-32768S", "-1S", "0S", "1S", "300S", "32767S"],
    "INT": ["-2147483648", "-1", "0", "1", "70000", "2147483647"],
    "BIGINT": ["-9223372036854775808L", "-1L", "0L", "1L", "9000000000L", "9223372036854775807L"],
    "FLOAT": ["FLOAT('-Infinity')", "FLOAT('-0.0')", "FLOAT('0.0')", "FLOAT('NaN')", "1.5F",
              "FLOAT('Infinity')", "1e-45F", "FLOAT('3.4028235e38')"],
    "DOUBLE": ["DOUBLE('-Infinity')", "-0.0D", "0.0D", "DOUBLE('NaN')", "0.1D", "CAST(0.1F AS DOUBLE)",
               "4.9e-324D", "1e300D"],
    "DECIMAL(9,2)": ["-1.50BD", "0BD", "0.01BD", "1.5BD", "9999999.99BD"],
    "DECIMAL(18,4)": ["-1.5BD", "0BD", "0.0001BD", "1.5BD", "12345678901234.5678BD"],
    "DECIMAL(38,10)": ["-1.5BD", "0BD", "1e-10BD", "1.5BD", "922337203.6854775808BD",
                       "9999999999999999999999999999.9999999999BD",
                       "-9999999999999999999999999999.9999999999BD"],
    "DATE": ["DATE'0001-01-01'", "DATE'1582-10-15'", "DATE'1970-01-01'", "DATE'2024-02-29'"],
    "TIMESTAMP": ["TIMESTAMP'1500-01-01 00:00:00'", "TIMESTAMP'1970-01-01 00:00:00'",
                  "TIMESTAMP'2024-03-10 10:00:00.123456'", "TIMESTAMP'2024-03-10 10:00:00.123'"],
    "TIMESTAMP_NTZ": ["TIMESTAMP_NTZ'1500-01-01 00:00:00'", "TIMESTAMP_NTZ'1970-01-01 00:00:00'",
                      "TIMESTAMP_NTZ'2024-03-10 10:00:00.123456'"],
    "STRING": ["''", "' '", "'a'", "'a '", "'A'", "'ä'", "'a\\u0308'", "'日本'", "repeat('x', 300)",
               "concat(repeat('x', 300), 'y')", "CAST(X'ff00' AS STRING)"],
    "BINARY": ["X''", "X'00'", "X'0000'", "X'ff'", "X'61'"],
    "INTERVAL MONTH": ["INTERVAL '-1' MONTH", "INTERVAL '0' MONTH", "INTERVAL '13' MONTH"],
    "INTERVAL SECOND": ["INTERVAL '-1' SECOND", "INTERVAL '0' SECOND", "INTERVAL '1.5' SECOND"],
}  # fmt: skip


def check(spark: SparkSession, table: Path, ddl: str, values: list[str]) -> tuple[int, int]:
    """Checks lookups of each value, in Spark and with `pyzorder.files`, against plain Spark.
    Returns the number of opened files and the number of files with matching rows, both summed over
    all lookups."""
    spark.read.schema(ddl).format(kind(table)).load(str(table)).createOrReplaceTempView("t")
    asked = [f"c = {v}" for v in values] + [f"c <=> {v}" for v in values]
    asked += [f"c IN ({v}, {w})" for v, w in zip(values, values[1:], strict=False)]
    found = scans.check_sound(spark, "t", asked)
    scans.check_judged(spark, "t", asked)
    truth = [files["true"] for files in scans.truth(spark, "t", asked)]
    needed = [len(files) for files in truth]
    for condition, files in zip(asked, truth, strict=True):
        assert files <= without_spark(table, condition), condition
    spark.catalog.dropTempView("t")
    return sum(found[a] for a in asked), sum(needed)


def without_spark(table: Path, condition: str) -> set[str]:
    """The names of the files that `pyzorder.files` returns."""
    found = pyzorder.files(table, condition, time_zone="UTC")
    return {os.path.basename(path) for path in found}


def kind(table: Path) -> str:
    return "orc" if table.name.endswith("_orc") else "parquet"


def append(spark: SparkSession, table: Path, value: str) -> None:
    """Adds a file with one row to an indexed folder."""
    spark.sql(f"SELECT {value} AS c").write.mode("append").format(kind(table)).save(str(table))


def make(spark: SparkSession, table: Path, data_type: str, values: list[str]) -> None:
    """Writes files that all contain the first and the last value, so their bounds hardly differ.
    Each file also contains up to two other values."""
    ends = (values[0], values[-1])

    def rows(i: int) -> DataFrame:
        inner = {values[i % len(values)], values[(3 * i + 1) % len(values)]}
        listed = ", ".join(f"(CAST({v} AS {data_type}))" for v in [*ends, *sorted(inner), "NULL"])
        return spark.sql(f"SELECT * FROM VALUES {listed} AS v(c)").coalesce(1)

    # A union has the partitions of its inputs, so each input becomes a file.
    reduce(DataFrame.union, map(rows, range(FILES))).write.format(kind(table)).save(str(table))


@pytest.mark.parametrize(
    ("name", "data_type"),
    long(
        [(name, data_type) for name in ("t", "t_orc") for data_type in VALUES],
        ("t", "BIGINT"), ("t", "DOUBLE"), ("t", "DECIMAL(38,10)"), ("t", "TIMESTAMP"),
        ("t", "STRING"), ("t_orc", "DATE"), ("t_orc", "STRING"),
    ),
)  # fmt: skip
def test_every_type(spark: SparkSession, tmp_path: Path, name: str, data_type: str) -> None:
    spark.conf.set(sketches.BUDGET, "1")
    values = VALUES[data_type]
    table = tmp_path / name
    make(spark, table, data_type, values)
    columns = indexes.schema(spark, f"c {data_type}")
    indexes.build(spark, table, kind(table), columns, columns=[["c"]])
    opened, needed = check(spark, table, f"c {data_type}", values)
    append(spark, table, f"CAST({values[1]} AS {data_type})")
    check(spark, table, f"c {data_type}", values)
    assert needed <= opened
    if sketches.stored(table):
        assert opened <= needed + len(values)
    else:
        # settings determine which values Spark reads from these columns
        assert name == "t_orc" and data_type in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [("INT", "BIGINT"), ("SMALLINT", "INT"), ("FLOAT", "DOUBLE"),
              ("DATE", "TIMESTAMP_NTZ"), ("DECIMAL(9,2)", "DECIMAL(18,4)"), ("INT", "DOUBLE")],
)  # fmt: skip
def test_a_widened_column(spark: SparkSession, tmp_path: Path, narrow: str, wide: str) -> None:
    """Lookups find rows in a file whose sketch was made before the column's type was widened. Trino
    lost such rows because of its Bloom filters (#30544)."""
    if wide != "INT" and spark.version < "4":
        pytest.skip("Spark 3.5 cannot read Parquet files as this type")
    spark.conf.set(sketches.BUDGET, "1")
    values = VALUES[narrow]
    table = tmp_path / "t"
    make(spark, table, narrow, values)
    before = indexes.schema(spark, f"c {narrow}")
    indexes.build(spark, table, "parquet", before, columns=[["c"]])
    assert sketches.stored(table)
    wider = [f"CAST({v} AS {wide})" for v in values]
    check(spark, table, f"c {wide}", wider)  # sketches of the narrow type, read as the wide type
    after = indexes.schema(spark, f"c {wide}")
    indexes.build(spark, table, "parquet", after, columns=[["c"]])
    opened, needed = check(spark, table, f"c {wide}", wider)
    if (narrow, wide) in (("INT", "BIGINT"), ("SMALLINT", "INT")):
        assert opened <= needed + len(values)
    else:
        assert opened >= needed  # without bounds, there are no sketches


@pytest.mark.skipif(pyspark.__version__ < "4", reason="Spark 3.5 cannot widen Parquet columns")
def test_files_of_two_types(spark: SparkSession, tmp_path: Path) -> None:
    """Lookups find all rows even if ALTER COLUMN … TYPE has widened the column's type and some
    files still have the narrower type."""
    spark.conf.set(sketches.BUDGET, "1")
    table = tmp_path / "t"
    table.mkdir()
    for i in range(FILES):
        kinds = {"c": [pa.int32(), pa.int64()], "d": [pa.float32(), pa.float64()]}
        columns = {
            "c": pa.array([0, i + 1, 1000], kinds["c"][i % 2]),
            "d": pa.array([-0.0, i + 0.5, 1000.0], kinds["d"][i % 2]),
        }
        pq.write_table(pa.table(columns), table / f"f{i}.parquet")
    schema = indexes.schema(spark, "c BIGINT, d DOUBLE")
    indexes.build(spark, table, "parquet", schema, columns=[["c"], ["d"]])
    spark.read.schema(schema).parquet(str(table)).createOrReplaceTempView("t")
    asked = [f"c = {i}L" for i in range(10)] + [f"d = {i + 0.5}D" for i in range(10)]
    found = scans.check_sound(spark, "t", [*asked, "c = 0", "d = 0.0D", "d = 1000"])
    assert sum(found[f"c = {i}L"] for i in range(1, 10)) <= FILES + 2


def test_decimals_of_other_scales(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set(sketches.BUDGET, "1")
    table = tmp_path / "t"
    make(spark, table, "DECIMAL(9,2)", VALUES["DECIMAL(9,2)"])
    columns = indexes.schema(spark, "c DECIMAL(9,2)")
    indexes.build(spark, table, "parquet", columns, columns=[["c"]])
    values = ["1.5", "1.50", "1.500000", "1.505", "0", "0.0", "-1.5000", "1", "1.5D", "'1.5'",
              "9999999.99", "99999999999.99", "CAST(1.5 AS DECIMAL(38,20))"]  # fmt: skip
    check(spark, table, "c DECIMAL(9,2)", values)


def test_milliseconds(spark: SparkSession, tmp_path: Path) -> None:
    """Lookups find the value that Spark reads, even if it differs from the value that was
    inserted."""
    spark.conf.set(sketches.BUDGET, "1")
    with scans.settings(spark, spark__sql__parquet__outputTimestampType="TIMESTAMP_MILLIS"):
        table = tmp_path / "t"
        make(spark, table, "TIMESTAMP", VALUES["TIMESTAMP"])
        columns = indexes.schema(spark, "c TIMESTAMP")
        indexes.build(spark, table, "parquet", columns, columns=[["c"]])
        append(spark, table, VALUES["TIMESTAMP"][2])
        check(spark, table, "c TIMESTAMP", VALUES["TIMESTAMP"])


def test_old_calendars(spark: SparkSession, tmp_path: Path) -> None:
    """Lookups in files that use the hybrid calendar find the values that Spark reads. These values
    depend on the session's settings."""
    spark.conf.set(sketches.BUDGET, "1")
    for data_type in ("DATE", "TIMESTAMP"):
        table = tmp_path / data_type
        with scans.settings(spark, spark__sql__parquet__datetimeRebaseModeInWrite="LEGACY"):
            make(spark, table, data_type, VALUES[data_type])
        columns = indexes.schema(spark, f"c {data_type}")
        indexes.build(spark, table, "parquet", columns, columns=[["c"]])
        for mode in ("CORRECTED", "LEGACY"):
            with scans.settings(spark, spark__sql__parquet__datetimeRebaseModeInRead=mode):
                check(spark, table, f"c {data_type}", VALUES[data_type])


def test_char_and_collations(spark: SparkSession, database: str) -> None:
    """Lookups find values that differ in their bytes but are equal after padding or under a
    collation."""
    spark.conf.set(sketches.BUDGET, "1")
    collated = spark.version >= "4"
    spark.sql(
        "CREATE TABLE s (c CHAR(5), v VARCHAR(5)"
        + (", k STRING COLLATE UTF8_LCASE" if collated else "")
        + ") USING parquet"
    )
    names = ["c", "v", "k"] if collated else ["c", "v"]
    spark.sql(f"CREATE SKIPPING INDEX ON s ({', '.join(names)})")
    for pair in ("a, z", "b, z", "c, z", "a , zz"):
        rows = ", ".join("(" + ", ".join([f"'{v}'"] * len(names)) + ")" for v in pair.split(","))
        spark.sql(f"INSERT INTO s VALUES {rows}")
    asked = [f"{n} = '{v}'" for n in names for v in ("a", "a ", "A", "B", " z", " zz", "Z")]
    scans.check_sound(spark, "s", asked)
    spark.sql("DROP TABLE s")


def test_struct_fields_and_case(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set(sketches.BUDGET, "1")
    table = tmp_path / "t"
    for i in range(FILES):
        spark.sql(f"SELECT named_struct('X', v) AS S FROM VALUES (0), ({i + 1}), (99) AS t(v)") \
            .coalesce(1).write.mode("append").parquet(str(table))  # fmt: skip
    spark.sql(f"CREATE SKIPPING INDEX ON '{table}' (S.X)")
    spark.read.parquet(str(table)).createOrReplaceTempView("t")
    found = scans.check_sound(spark, "t", ["s.x = 3", "S.X = 50"])
    assert found == {"s.x = 3": 1, "S.X = 50": 0}
    spark.catalog.dropTempView("t")
