"""Queries return the right answers in cases where other projects have returned wrong ones. Examples
are NaN, added columns and changed files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tests.support.indexes import build
from tests.support.sampled import long
from tests.support.scans import FAILURES, check_sound, explain, opened, plain, settings

FORMATS = pytest.mark.parametrize("fmt", long(["parquet", "orc"], "parquet"))


def _write(spark: SparkSession, path: Path, fmt: str, *selects: str) -> None:
    """Writes one file for each SELECT, in order."""
    for select in selects:
        spark.sql(select).coalesce(1).write.format(fmt).mode("append").save(str(path))


@FORMATS
def test_nan_alone_first_and_last(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    path = tmp_path / "t"
    for values in (
        "(double('NaN'))",
        "(double('NaN')), (1D)",
        "(1D), (double('NaN'))",
        "(1D), (2D)",
        "(-0.0D)",
        "(0.0D)",
        "(-0.0D), (5D)",
        "(CAST(NULL AS DOUBLE))",
        "(CAST(NULL AS DOUBLE)), (double('NaN'))",
    ):
        _write(spark, path, fmt, f"SELECT x, CAST(x AS FLOAT) AS y FROM VALUES {values} AS t(x)")
    build(spark, path, fmt)
    spark.read.format(fmt).load(str(path)).createOrReplaceTempView("nans")
    counts = check_sound(
        spark,
        "nans",
        [
            f"{c} {p}"
            for c in "xy"
            for p in (
                "> 1e300",
                "= double('NaN')",
                ">= 2",
                "= 0.0D",
                "< 0.0D",
                ">= 0.0D",
                "= -0.0D",
                "!= 1",
                "NOT IN (1, 2)",
                "IN (1, double('NaN'))",
            )
        ]
        + ["NOT (x < 5)", "NOT (y < 5)"],
    )
    assert counts["x > 1e300"] == 4 and counts["x = 0.0D"] == 3 and counts["x < 0.0D"] == 0
    with plain(spark):
        expected = spark.sql("SELECT count(*) FROM nans WHERE x >= 2").collect()
    assert spark.sql("SELECT count(*) FROM nans WHERE x >= 2").collect() == expected


def test_an_added_column_reads_as_its_default(spark: SparkSession) -> None:
    spark.sql("DROP TABLE IF EXISTS added")
    spark.sql("CREATE TABLE added (a INT) USING parquet")
    try:
        spark.sql("INSERT INTO added SELECT /*+ COALESCE(1) */ 1")
        spark.sql("ALTER TABLE added ADD COLUMN c INT DEFAULT 5")
        spark.sql("ALTER TABLE added ADD COLUMN e INT")
        spark.sql("INSERT INTO added SELECT /*+ COALESCE(1) */ 2, 7, 8")
        location = spark.sql("DESCRIBE FORMATTED added").where("col_name = 'Location'")
        path = Path(location.first()["data_type"].removeprefix("file:"))  # type: ignore[index]
        predicates = ["c = 5", "c IS NULL", "c = 7", "c IS NOT NULL", "e IS NULL", "e = 8", "c < 6"]
        # The files are indexed with a schema that declares the default, and then with a schema that
        # does not. Each time, queries read the files with both schemas.
        for schema in (spark.table("added").schema, spark.read.parquet(str(path)).schema):
            build(spark, path, "parquet", schema)
            check_sound(spark, "added", predicates)
            reader = spark.read.schema("a INT, c INT, e INT").parquet(str(path))
            reader.createOrReplaceTempView("added_files")
            check_sound(spark, "added_files", predicates)
    finally:
        spark.sql("DROP TABLE added")


def test_char_is_padded_on_reading(spark: SparkSession) -> None:
    spark.sql("DROP TABLE IF EXISTS padded")
    spark.sql("CREATE TABLE padded (c CHAR(4), v VARCHAR(4)) USING parquet")
    try:
        for value in ("a", "a\\t", "b", ""):
            spark.sql(f"INSERT INTO padded SELECT /*+ COALESCE(1) */ '{value}', '{value}'")
        location = spark.sql("DESCRIBE FORMATTED padded").where("col_name = 'Location'")
        path = Path(location.first()["data_type"].removeprefix("file:"))  # type: ignore[index]
        build(spark, path, "parquet", spark.table("padded").schema)
        check_sound(
            spark,
            "padded",
            [
                "c = 'a'",
                "c < 'a'",
                "c > 'a'",
                "c IN ('a', 'b')",
                "v = 'a'",
                "c LIKE 'a%'",
                "v < 'a\\t'",
            ],
        )
        for charts in ("true", "false"):
            with settings(spark, spark__sql__readSideCharPadding=charts):
                check_sound(spark, "padded", ["c = 'a'", "c > 'a'", "c = ''"])
    finally:
        spark.sql("DROP TABLE padded")


def test_collations_are_not_compared_by_bytes(spark: SparkSession) -> None:
    if spark.version.startswith("3."):
        pytest.skip("collations need Spark 4")
    spark.sql("DROP TABLE IF EXISTS collated")
    spark.sql(
        "CREATE TABLE collated (w STRING COLLATE UTF8_LCASE, u STRING COLLATE UNICODE_CI, "
        "s STRING) USING parquet"
    )
    try:
        for value in ("'a'", "'B'), ('c'", "'É'", "'e\u0301'", "''", "NULL"):
            spark.sql(
                "INSERT INTO collated SELECT /*+ COALESCE(1) */ s, s, s "
                f"FROM VALUES ({value}) AS t(s)"
            )
        spark.sql("CREATE SKIPPING INDEX ON collated")
        of_rules = ["{} = 'A'", "{} < 'B'", "{} > 'b'", "{} IN ('C', 'é')",
                    "{0} >= 'A' AND {0} <= 'b'", "NOT ({} = 'A')", "{} <=> 'é'", "{} != 'b'",
                    "startswith({}, 'b')", "{} = 'e'", "upper({}) = 'é'"]  # fmt: skip
        predicates = [rule.format(c) for rule in of_rules for c in ("w", "u")]
        predicates += [
            rule.format(f"s COLLATE {name}")
            for rule in of_rules[:8]
            for name in ("UTF8_LCASE", "UNICODE_CI_AI")
        ]
        counts = check_sound(
            spark, "collated", [*predicates, "w LIKE 'É%'", "w IS NULL", "s = 'B'"]
        )
        assert counts["w = 'A'"] == 6
        assert counts["s COLLATE UTF8_LCASE = 'A'"] < 6 or spark.version < "4.1"
        assert counts["s = 'B'"] == 1
        for query in (
            "SELECT min(w), max(w), min(u), max(u), count(w), count(u) FROM collated",
            "SELECT w FROM collated ORDER BY w LIMIT 2",
            "SELECT u FROM collated ORDER BY u DESC NULLS LAST LIMIT 2",
            "SELECT count(*) FROM collated WHERE w >= 'b'",
        ):
            with plain(spark):
                expected = spark.sql(query).collect()
            assert spark.sql(query).collect() == expected, query
    finally:
        spark.sql("DROP TABLE collated")


@FORMATS
def test_files_changed_after_indexing(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    path, other = tmp_path / "t", tmp_path / "u"
    spark.range(0, 40, 1, 4).write.format(fmt).save(str(path))
    build(spark, path, fmt)
    read = spark.read.format(fmt).load(str(path))
    old = read.where("id > 100")
    assert len(opened(read.where("id = 35"))) == 1 and opened(old) == set()

    # Another writer appends a file. The file is not indexed, so it must be read.
    spark.range(100, 110, 1, 1).write.format(fmt).save(str(other))
    (new,) = other.glob(f"part-*.{fmt}")
    shutil.copy(new, path / f"part-foreign.{fmt}")
    fresh = spark.read.format(fmt).load(str(path)).where("id = 105")
    assert explain(fresh)[0]["unindexed"] == 1 and fresh.count() == 1

    # A file is replaced with a different file of the same name. A DataFrame that listed the old
    # file must also notice the change.
    held = spark.read.format(fmt).load(str(path))
    assert held.where("id = 5").count() == 1
    victim = sorted(path.glob("part-00000-*"))[0]
    for crc in path.glob(".*.crc"):
        crc.unlink()
    shutil.copy(new, victim)
    assert victim.name in opened(held.where("id = 107"))
    assert spark.read.format(fmt).load(str(path)).where("id = 107").count() == 2

    # Another writer deletes the file.
    victim.unlink()
    assert spark.read.format(fmt).load(str(path)).where("id = 107").count() == 1


def test_partition_columns_in_the_predicate(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.range(0, 40, 1, 1).selectExpr(
        "id", "id div 10 AS p", "if(id < 20, 'A', 'a') AS q"
    ).write.partitionBy("p", "q").parquet(str(path))
    build(spark, path, "parquet")
    spark.read.parquet(str(path)).createOrReplaceTempView("parts")
    for predicate, rows in {
        "p = 1": 10,
        "q = 'A'": 20,
        "p = 1 AND id = 15": 1,
        "p = 1 OR id = 35": 11,
        "p = 1 AND id = 35": 0,
        "id = p * 10": 4,
        "(p = 0 AND id < 5) OR (p = 3 AND id > 37)": 7,
    }.items():
        assert spark.sql(f"SELECT * FROM parts WHERE {predicate}").count() == rows, predicate
    assert len(opened(spark.sql("SELECT * FROM parts WHERE id = 15"))) == 1


@FORMATS
def test_empty_files_and_files_of_nulls(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    path = tmp_path / "t"
    _write(
        spark,
        path,
        fmt,
        "SELECT 1 AS a WHERE false",
        "SELECT CAST(NULL AS INT) AS a",
        "SELECT 1 AS a",
    )
    build(spark, path, fmt)
    spark.read.format(fmt).load(str(path)).createOrReplaceTempView("empties")
    counts = check_sound(spark, "empties", ["a = 1", "a IS NULL", "a IS NOT NULL", "a != 2"])
    assert counts["a = 1"] == counts["a IS NULL"] == 1


def test_expressions_that_see_the_file(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.range(0, 40, 1, 4).selectExpr("id", "id AS file_size").write.parquet(str(path))
    build(spark, path, "parquet")
    files = f"parquet.`{path}`"  # a view would hide _metadata
    spark.udf.register("plus_one", lambda n: n + 1, "long")
    for predicate in (
        "_metadata.file_size > 100",
        "_metadata.file_size > 100 AND id = 5",
        "file_size = 5",
        "input_file_name() LIKE '%part%' AND id = 5",
        "rand() >= 0 AND id = 5",
        "plus_one(id) = 6",
        "plus_one(id) = 6 AND id < 20",
        "id IN (SELECT 5)",
        f"id = (SELECT max(id) FROM {files})",
    ):
        query = f"SELECT id FROM {files} WHERE {predicate} ORDER BY id"
        with plain(spark):
            expected = spark.sql(query).collect()
        assert spark.sql(query).collect() == expected, predicate


@pytest.mark.parametrize("fmt", long(["parquet", "orc"], "parquet"))
@pytest.mark.parametrize("optimized", long([False, True], True))
@pytest.mark.parametrize("kind", ["table", "path"])
def test_python_functions_of_partition_columns(
    spark: SparkSession, database: str, tmp_path: Path, fmt: str, optimized: bool, kind: str
) -> None:
    """The optimizer must not evaluate Python functions, which run only in the executed plan."""
    name = f"{database}.t" if kind == "table" else f"{fmt}.`{tmp_path}/t`"
    rows = spark.range(0, 20, 1, 1).selectExpr("id", "CAST(id % 3 AS INT) AS p")
    writer = rows.write.partitionBy("p").format(fmt)
    if kind == "table":
        writer.saveAsTable(name)
    else:
        writer.save(f"{tmp_path}/t")
    if optimized:
        spark.sql(f"OPTIMIZE {name} ZORDER BY (id)")
    spark.udf.register("same", lambda n: n, "long")
    spark.udf.register("same_series", F.pandas_udf(lambda series: series, "long"))
    for predicate, expected in {
        "same(p) = 1": [n for n in range(20) if n % 3 == 1],
        "same_series(p) = 1": [n for n in range(20) if n % 3 == 1],
        "same(p) = 1 AND id < 5": [1, 4],
        "p = 1 AND same(p) IN (1, 2) AND id < 5": [1, 4],
        "same(p) = 1 OR p = 0": [n for n in range(20) if n % 3 != 2],
        "same(p + id) = 0": [0],
        "p = (SELECT max(same(p)) FROM {t})": [n for n in range(20) if n % 3 == 2],
        "id IN (SELECT same(p) FROM {t})": [0, 1, 2],
    }.items():
        selected = f"FROM {name} WHERE {predicate.format(t=name)}"
        ids = [id for (id,) in spark.sql(f"SELECT id {selected} ORDER BY id").collect()]
        assert ids == expected, predicate
        assert spark.sql(f"SELECT count(*) {selected}").head()[0] == len(expected), predicate


def test_names_of_another_case_and_strange_names(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.range(0, 40, 1, 4).selectExpr(
        "id AS Id", "id AS `a.b c`", "id AS id_minValue", "named_struct('x.y', id) AS s"
    ).write.parquet(str(path))
    build(spark, path, "parquet")
    spark.read.parquet(str(path)).createOrReplaceTempView("names")
    for predicate in ("ID = 5", "`a.b c` = 5", "id_minValue = 5", "s.`x.y` = 5"):
        query = spark.sql(f"SELECT * FROM names WHERE {predicate}")
        assert query.count() == 1 and len(opened(query)) == 1, predicate
    reader = spark.read.schema("ID INT").parquet(str(path))
    assert len(opened(reader.where("ID = 5"))) == 4  # the indexed type is BIGINT
    with settings(spark, spark__sql__caseSensitive="true"):
        reader = spark.read.schema("iD LONG").parquet(str(path))
        assert reader.where("iD IS NULL").count() == 40


def test_a_broken_index_breaks_no_query(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.range(0, 40, 1, 4).write.parquet(str(path))
    build(spark, path, "parquet")
    assert len(opened(spark.read.parquet(str(path)).where("id = 5"))) == 1
    for file in sorted((path / "_zorder" / "_index").glob("_v*.json")):
        file.write_text(file.read_text()[:40])
    for crc in (path / "_zorder" / "_index").glob(".*.crc"):
        crc.unlink()
    query = spark.read.parquet(str(path)).where("id = 5")
    assert query.count() == 1 and len(opened(query)) == 4


#: (time zone, three instants in ascending order). Between the first and the last instant, the local
#: date goes back and then advances again.
REPEATED_DAYS = [
    ("America/St_Johns", ["2010-11-07 02:30:30", "2010-11-07 02:31:30", "2010-11-07 03:31:00"]),
    ("America/Juneau", ["1867-10-18 08:57:41", "1867-10-18 10:00:00", "1867-10-19 08:57:41"]),
]


@FORMATS
def test_a_file_replaced_after_explain(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    path = tmp_path / "t"
    _write(spark, path, fmt, "SELECT 1 AS i", "SELECT 5 AS i")
    build(spark, path, fmt)
    _write(spark, tmp_path / "new", fmt, "SELECT 7 AS i")
    (new,) = (tmp_path / "new").glob(f"*.{fmt}")
    query = spark.read.format(fmt).load(str(path)).where("i > 6")
    assert [scan["opened"] for scan in explain(query)] in ([[]], [])
    target = next(path.glob(f"*.{fmt}"))
    target.with_name(f".{target.name}.crc").unlink()
    new.rename(target)
    assert [row.i for row in query.collect()] == [7]


@FORMATS
@pytest.mark.parametrize(("zone", "instants"), REPEATED_DAYS)
def test_a_day_that_comes_twice(
    spark: SparkSession, tmp_path: Path, fmt: str, zone: str, instants: list[str]
) -> None:
    """No matching row is skipped if a local day occurs twice. In that case, cast(ts AS date) may
    decrease while the timestamps increase, so the days of the bounds do not enclose the days of all
    values."""
    path = tmp_path / "t"
    rows = ", ".join(f"(TIMESTAMP'{instant} UTC')" for instant in instants)
    with settings(spark, spark__sql__session__timeZone=zone):
        _write(spark, path, fmt, f"SELECT * FROM VALUES {rows} AS t(ts)",
               "SELECT TIMESTAMP'2020-05-05 12:00:00 UTC' AS ts")  # fmt: skip
        build(spark, path, fmt)
        spark.read.format(fmt).load(str(path)).createOrReplaceTempView("days")
        days = [str(row[0]) for row in spark.sql("SELECT DISTINCT date(ts) FROM days").collect()]
        counts = check_sound(
            spark,
            "days",
            [f"{f} {op} {kind}'{day}'"
             for day in days for op in ("=", "<", ">")
             for f, kind in (("date_add(date(ts), 0)", "DATE"), ("trunc(ts, 'MM')", "DATE"),
                             ("date_trunc('DAY', ts)", "TIMESTAMP"))]
            + ["year(ts) = 2020", "year(ts) < 2020"],
        )  # fmt: skip
        assert counts["year(ts) < 2020"] == 1


@FORMATS
def test_days_beyond_timestamps(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    """If a bound is a day that a timestamp cannot represent, the file is not skipped. The query
    then fails, as it does in plain Spark."""
    path = tmp_path / "t"
    before, beyond = (f"date_add(DATE'2000-01-01', {days})" for days in (-110000000, 110000000))
    files = {
        "before": f"({before}), (DATE'1960-01-01')",
        "after": f"(DATE'2030-01-01'), ({beyond})",
        "beyond": f"({beyond})",
        "between": "(DATE'2024-01-01'), (DATE'2024-01-03')",
        "later": "(DATE'2024-01-03')",
        "null": "(CAST(NULL AS DATE))",
    }
    for name, days in files.items():
        _write(spark, path, fmt, f"SELECT dt, '{name}' AS name FROM VALUES {days} AS t(dt)")
    build(spark, path, fmt)
    frame = spark.read.format(fmt).load(str(path))
    rows = frame.select(F.input_file_name(), "name").distinct().collect()
    names = {row[0].rsplit("/", 1)[-1]: row[1] for row in rows}
    instants = "(TIMESTAMP'1970-01-01 00:00:00', TIMESTAMP'2024-01-02 00:00:00')"
    query = frame.where(f"CAST(dt AS TIMESTAMP) IN {instants}")
    assert {names[file] for file in opened(query)} == {"before", "after", "beyond", "between"}
    assert attempt(query) is None


def test_times_of_day(spark: SparkSession, tmp_path: Path) -> None:
    if tuple(map(int, spark.version.split(".")[:2])) < (4, 1):
        pytest.skip("TIME needs Spark 4.1")
    with settings(spark, spark__sql__timeType__enabled="true"):
        for hour in ("01", "02", "23"):
            _write(spark, tmp_path, "parquet", f"SELECT TIME'{hour}:59:59.5' AS at")
        build(spark, tmp_path, "parquet")
        spark.read.parquet(str(tmp_path)).createOrReplaceTempView("times")
        expected = {"at < TIME'02:00:00'": 1, "at >= TIME'01:59:59.5'": 3, "at = TIME'02:00:00'": 0}
        assert check_sound(spark, "times", list(expected)) == expected


@FORMATS
def test_any_expression_on_constant_files(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    path = tmp_path / "t"
    _write(
        spark, path, fmt,
        "SELECT 'abc' AS s, 7 AS i, 0.0D AS d, CAST('x' AS CHAR(3)) AS c",
        "SELECT 'xyz' AS s, 8 AS i, -0.0D AS d, 'y' AS c",
        "SELECT * FROM VALUES ('abc', 7, 0.0D, 'x'), (NULL, 7, -0.0D, 'x') AS t(s, i, d, c)",
        "SELECT * FROM VALUES ('abc', 7, 1D, 'x'), ('abd', 9, 2D, 'y') AS t(s, i, d, c)",
    )  # fmt: skip
    build(spark, path, fmt)
    spark.read.format(fmt).load(str(path)).createOrReplaceTempView("singles")
    expected = {
        "reverse(s) = 'cba'": 3,
        "length(s) = 4": 2,
        "i % 2 = 0": 2,
        "(reverse(s) = 'cba') IS NULL": 2,
        "CASE WHEN i = 8 THEN s = 'xyz' ELSE i > 100 END": 1,
        "md5(s) = md5('xyz')": 3,
        "1 / (i - 8) > 0": 1,
        "CAST(1 / d AS STRING) = '-Infinity'": 4,  # the files may contain zeros of either sign
        "rand() < 2 AND reverse(s) = 'zyx'": 3,
    }
    with settings(spark, spark__sql__ansi__enabled="false"):
        counts = check_sound(spark, "singles", [p for p in expected if "rand" not in p])
        counts |= {p: len(opened(spark.sql(f"SELECT * FROM singles WHERE {p}")))
                   for p in expected if "rand" in p}  # fmt: skip
    assert counts == expected
    with settings(spark, spark__sql__ansi__enabled="true"):  # only the query itself may fail
        assert len(opened(spark.sql("SELECT * FROM singles WHERE 1 / (i - 8) > 0"))) == 2


@FORMATS
def test_only_a_trusted_index_is_believed_without_asking(
    spark: SparkSession, tmp_path: Path, fmt: str
) -> None:
    path = tmp_path / "t"
    spark.range(0, 40, 1, 4).write.format(fmt).save(str(path))
    spark.sql(f"CREATE SKIPPING INDEX ON '{path}'")
    listed = spark.read.format(fmt).load(str(path))
    assert listed.where("id = 100").collect() == []
    (replaced, *_) = sorted(path.glob(f"part-*.{fmt}"))
    spark.range(100, 101, 1, 1).write.format(fmt).save(str(tmp_path / "u"))
    (other,) = (tmp_path / "u").glob(f"part-*.{fmt}")
    shutil.copy(other, replaced)
    (path / f".{replaced.name}.crc").unlink()
    with settings(spark, spark__sql__zorder__index__trusted="true"):
        # With this setting, the user asserts that the index contains all files and that no file is
        # ever replaced.
        assert listed.where("id = 100").collect() == []
    assert [tuple(row) for row in listed.where("id = 100").collect()] == [(100,)]


def attempt(df: DataFrame) -> list[Row] | None:
    """Returns the rows, or None if the query fails."""
    try:
        return df.collect()
    except FAILURES:
        return None


@pytest.mark.parametrize("limit", ["512m", "1"])
def test_settings_that_functions_read(spark: SparkSession, tmp_path: Path, limit: str) -> None:
    """No matching row is skipped if a file has only one value and the result of a function on this
    value depends on session settings."""
    for i, text in enumerate(["2020-1-1", "2021-01-01"]):
        _write(spark, tmp_path / "t", "parquet", f"SELECT '{text}' AS s, {i} AS k")
    build(spark, tmp_path / "t", "parquet")
    frame = spark.read.parquet(str(tmp_path / "t"))
    with settings(
        spark,
        spark__sql__ansi__enabled="false",
        spark__sql__zorder__index__driverLimit=limit,
        spark__sql__legacy__timeParserPolicy="CORRECTED",
    ):
        for value in (
            "to_date(s, 'yyyy-MM-dd')",
            "from_csv(s, 'd DATE', map('dateFormat', 'yyyy-MM-dd', 'mode', 'FAILFAST')).d",
        ):
            condition = f"{value} = DATE'2020-01-01'"
            for policy, rows in ("CORRECTED", []), ("LEGACY", [("2020-1-1", 0)]):
                spark.conf.set("spark.sql.legacy.timeParserPolicy", policy)
                with plain(spark):
                    expected = attempt(frame.where(condition))
                assert attempt(frame.where(condition)) == expected, (condition, policy)
                assert expected in (rows, None)
