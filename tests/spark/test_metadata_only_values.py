"""COUNT, MIN and MAX return the right answers for all values and types, and use the index where
possible."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.support.indexes import build
from tests.support.metadata_only import FORMATS, answered, check_strict, same, view, write
from tests.support.scans import plain, settings

VALUES = st.lists(
    st.sampled_from(["NULL", "-1", "0.0", "-0.0", "1", "2", "double('NaN')", "double('inf')"]),
    min_size=1,
    max_size=3,
)
LIMITS = st.sampled_from(["-1D", "0.0D", "-0.0D", "1D", "2D", "double('NaN')", "double('-inf')"])
SIMPLE = st.one_of(
    st.tuples(st.sampled_from(["<", "<=", "=", "!=", ">", ">=", "<=>"]), LIMITS).map(
        lambda t: f"x {t[0]} {t[1]}"
    ),
    st.lists(LIMITS, min_size=1, max_size=12).map(lambda v: f"x IN ({', '.join(v)})"),
    st.lists(LIMITS, min_size=1, max_size=3).map(lambda v: f"x NOT IN ({', '.join(v)})"),
    st.sampled_from(["x IS NULL", "x IS NOT NULL", "isnan(x)", "NOT isnan(x)", "NOT (x <=> 1D)"]),
)


@hypothesis_settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(VALUES, min_size=4, max_size=4), st.lists(SIMPLE, min_size=12, max_size=12))
def test_drawn_values(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[str]],
    predicates: list[str],
) -> None:
    path = Path(tmp_path_factory.mktemp("drawn")) / "t"
    write(spark, path, "parquet", *[
        f"SELECT CAST(x AS DOUBLE) AS x FROM VALUES {', '.join(f'({v})' for v in values)} AS t(x)"
        for values in files
    ])  # fmt: skip
    build(spark, path, "parquet")
    relation = view(spark, path, "parquet", "drawn_values")
    check_strict(spark, relation, predicates)
    for predicate in ("true", predicates[0], predicates[1]):
        same(spark, f"SELECT count(*), count(x), min(x), max(x) FROM {relation} WHERE {predicate}")


# (the values in a file, whether the index is used for min(x), whether it is used for max(x))
FLOATING = [
    ("(1), (2)", True, True),
    ("(double('NaN'))", False, False),
    ("(1), (double('NaN'))", False, False),
    ("(0.0)", False, False),
    ("(-0.0D), (5)", False, True),
    ("(-5), (0.0D)", True, False),
    ("(-5), (0.0D), (5)", True, True),
    ("(CAST(NULL AS DOUBLE))", True, True),
    ("(CAST(NULL AS DOUBLE)), (3)", True, True),
    ("(double('inf')), (double('-inf'))", True, True),
]


@FORMATS
def test_nan_and_zeros_are_read(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    for i, (values, least, greatest) in enumerate(FLOATING):
        path = tmp_path / str(i)
        write(spark, path, fmt,
            f"SELECT CAST(x AS DOUBLE) AS x, CAST(x AS FLOAT) AS y FROM VALUES {values} AS t(x)"
        )  # fmt: skip
        build(spark, path, fmt)
        name = view(spark, path, fmt, "floating")
        column = "xy"[(i + (fmt == "orc")) % 2]
        assert answered(same(spark, f"SELECT min({column}) FROM {name}")) == least, values
        assert answered(same(spark, f"SELECT max({column}) FROM {name}")) == greatest, values
        assert answered(spark.sql(f"SELECT count({column}), count(*) FROM {name}")) == 1
        predicate = ("IN (0.0D, 1D, 2D)", ">= -0.0D")[i % 2]
        same(spark, f"SELECT count({column}), count(*) FROM {name} WHERE {column} {predicate}")


@FORMATS
def test_strings_and_binaries(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    path = tmp_path / "t"
    write(
        spark,
        path,
        fmt,
        "SELECT repeat('a', 300) AS s, CAST(repeat('b', 300) AS BINARY) AS x",
        "SELECT repeat('é', 200) AS s, X'FF' AS x UNION ALL SELECT 'é', X''",
        "SELECT '' AS s, X'00' AS x",
        "SELECT CAST(NULL AS STRING) AS s, CAST(NULL AS BINARY) AS x",
    )
    build(spark, path, fmt)
    name = view(spark, path, fmt, "texts")
    for query in ("min(s), max(s)", "min(x), max(x)", "count(s), count(x)"):
        same(spark, f"SELECT {query} FROM {name}")
    for predicate in ("s LIKE 'a%'", "s NOT LIKE 'é%'", "s > 'a'", "s LIKE 'é%'", "s = ''"):
        same(spark, f"SELECT count(*), count(s) FROM {name} WHERE {predicate}")


@FORMATS
def test_old_dates_and_timestamps(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    path = tmp_path / "t"
    for mode in ("CORRECTED", "LEGACY"):
        with settings(
            spark,
            spark__sql__parquet__datetimeRebaseModeInWrite=mode,
            spark__sql__parquet__int96RebaseModeInWrite=mode,
        ):
            for outputs in ("TIMESTAMP_MICROS", "INT96"):
                with settings(spark, spark__sql__parquet__outputTimestampType=outputs):
                    write(
                        spark,
                        path,
                        fmt,
                        "SELECT DATE'1400-03-01' AS d, TIMESTAMP'1400-03-01 01:02:03' AS t",
                        "SELECT DATE'2024-03-01' AS d, TIMESTAMP'2024-03-01 01:02:03.456789' AS t",
                    )
    build(spark, path, fmt)
    name = view(spark, path, fmt, "old_days")
    for zone in ("UTC", "America/St_Johns"):
        with settings(spark, spark__sql__session__timeZone=zone):
            for query in ("min(d), max(d)", "min(t), max(t)", "count(d), count(t)"):
                same(spark, f"SELECT {query} FROM {name}")
            same(spark, f"SELECT count(*) FROM {name} WHERE t < TIMESTAMP'2000-01-01 00:00:00'")
    with settings(spark, spark__sql__parquet__datetimeRebaseModeInRead="LEGACY"):
        same(spark, f"SELECT min(d), max(d), min(t), max(t) FROM {name}")


def location(spark: SparkSession, table: str) -> Path:
    row = spark.sql(f"DESCRIBE FORMATTED {table}").where("col_name = 'Location'").first()
    return Path(row["data_type"].removeprefix("file:"))  # type: ignore[index]


def test_char_and_columns_with_a_default(spark: SparkSession) -> None:
    spark.sql("DROP TABLE IF EXISTS answers_added")
    spark.sql("CREATE TABLE answers_added (a INT, c CHAR(4), v VARCHAR(4)) USING parquet")
    try:
        spark.sql("INSERT INTO answers_added SELECT /*+ COALESCE(1) */ 1, 'x', 'x'")
        spark.sql("ALTER TABLE answers_added ADD COLUMN e INT DEFAULT 5")
        spark.sql("ALTER TABLE answers_added ADD COLUMN g INT")
        spark.sql("INSERT INTO answers_added SELECT /*+ COALESCE(1) */ 2, 'y', 'y', 7, NULL")
        path = location(spark, "answers_added")
        queries = [
            "SELECT count(*), count(a), count(c), count(e), count(g) FROM {t}",
            "SELECT min(c), max(c) FROM {t}",
            "SELECT min(v), max(v) FROM {t}",
            "SELECT min(e), max(e), min(g), max(g) FROM {t}",
            "SELECT count(*) FROM {t} WHERE e = 5",
            "SELECT count(*) FROM {t} WHERE e IS NULL",
            "SELECT count(*) FROM {t} WHERE c = 'x'",
            "SELECT count(*) FROM {t} WHERE g IS NULL",
        ]
        # The files are indexed with a schema that declares the default, and then with a schema that
        # does not. Each time, queries read the files with both schemas.
        for schema in (spark.table("answers_added").schema, spark.read.parquet(str(path)).schema):
            build(spark, path, "parquet", schema)
            reader = spark.read.schema("a INT, c STRING, v STRING, e INT, g INT").parquet(str(path))
            reader.createOrReplaceTempView("answers_added_files")
            for query in queries:
                for padding in ("true", "false"):
                    with settings(spark, spark__sql__readSideCharPadding=padding):
                        same(spark, query.format(t="answers_added"))
                same(spark, query.format(t="answers_added_files"))
    finally:
        spark.sql("DROP TABLE answers_added")


def test_a_schema_of_other_types_and_cases(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(spark, path, "parquet", "SELECT 1 AS a, 2 AS Bb", "SELECT 3 AS a, 4 AS Bb")
    build(spark, path, "parquet")
    for ddl in ("a BIGINT, Bb INT", "A INT, bB INT", "a INT, other INT", "a DOUBLE, bb STRING"):
        spark.read.schema(ddl).parquet(str(path)).createOrReplaceTempView("other_types")
        column = ddl.split()[0]
        query = f"SELECT count(*), count({column}), min({column}) FROM other_types"
        with plain(spark):
            try:
                spark.sql(query).collect()
            except Exception:  # Spark cannot read the column as this type
                continue
        same(spark, query)
    with settings(spark, spark__sql__caseSensitive="true"):
        spark.read.schema("A INT, a INT").parquet(str(path)).createOrReplaceTempView("other_cases")
        same(spark, "SELECT count(*), count(A), count(a), max(A), max(a) FROM other_cases")
