"""COUNT, MIN and MAX answered from the index: which files are still read, and that nothing changes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from tests.spark.indexes import build, drop
from tests.spark.scans import explain, opened, plain, settings, some, truth
from tests.spark.test_pruning import COLUMNS, FILES, PREDICATES, ROWS, TREES, _split

FORMATS = pytest.mark.parametrize("fmt", ["parquet", "orc"])

# (query over {t}, files it reads at most); 8 files of 20 rows, see COLUMNS of test_pruning.py.
ANSWERED = [
    ("SELECT count(*) FROM {t}", 0),
    ("SELECT count(1), count('x'), count(id), count(i), count(nothing), count(st.a) FROM {t}", 0),
    ("SELECT min(id), max(id), count(*) FROM {t}", 0),
    ("SELECT max(id) - min(id) + 1 AS span FROM {t}", 0),
    ("SELECT CAST(count(*) AS INT) + 1 AS c FROM {t} HAVING count(*) > 5", 0),
    ("SELECT count(*) FROM {t} HAVING count(*) < 5", 0),
    ("SELECT count(*), 'a', 1 + 1 FROM {t}", 0),
    *[(f"SELECT min({c}), max({c}), count({c}) FROM {{t}}", 0) for c in
        ("by", "sh", "i", "l", "n", "b", "dt", "tn", "dy", "k", "ks", "st.a", "nothing")],
    ("SELECT CAST(min(ym) AS STRING), CAST(max(ym) AS STRING) FROM {t}", 0),
    ("SELECT min(w), max(w) FROM {t}", 0),
    ("SELECT min(ts), max(ts) FROM {t}", 0),
    ("SELECT min(f), max(f) FROM {t}", 1),  # one holds a NaN and a zero
    ("SELECT min(d), max(d) FROM {t}", 2),
    ("SELECT count(f), count(d), count(s), count(x), count(st.b.z) FROM {t}", 0),
    ("SELECT min(s), max(s) FROM {t}", 7),  # bounds of strings are exact in files of one value
    ("SELECT min(x) FROM {t}", 7),
    ("SELECT count(*) FROM {t} WHERE id < 40", 0),
    ("SELECT count(*) FROM {t} WHERE id < 47", 1),
    ("SELECT count(*), min(id), max(id), min(l) FROM {t} WHERE id >= 15 AND id < 100", 1),
    ("SELECT count(*) FROM {t} WHERE id NOT BETWEEN 40 AND 59", 0),
    ("SELECT count(*) FROM {t} WHERE id < 40 OR id >= 140", 0),
    ("SELECT count(*) FROM {t} WHERE NOT (id < 40 OR id >= 140)", 0),
    ("SELECT count(*) FROM {t} WHERE id = 1000", 0),
    ("SELECT count(*), max(i) FROM {t} WHERE i < 1000", 7),  # a null in each file
    ("SELECT count(*) FROM {t} WHERE i IS NULL", 7),
    ("SELECT count(*), min(id), max(i) FROM {t} WHERE nothing IS NULL", 0),
    ("SELECT count(*) FROM {t} WHERE nothing <=> NULL AND id > 79", 0),
    ("SELECT count(*) FROM {t} WHERE id > 0.5D", 1),
    ("SELECT count(*) FROM {t} WHERE id < 40 AND length(s) >= 0", 2),
    ("SELECT count(*) FROM {t} WHERE try_divide(1, id - 8) > -5 AND id < 40", 2),  # NULL at 8
    ("SELECT count(*) FROM {t} WHERE try_cast(s AS INT) <=> NULL AND id < 40", 2),
    ("SELECT count(*) FROM {t} WHERE NOT (try_divide(1, id - 8) <= -5) AND id < 40", 2),
    ("SELECT count(*) FROM (SELECT id AS a, i FROM {t} WHERE id > 19) WHERE a < 60", 0),
    ("SELECT max(a) FROM (SELECT id AS a, i FROM {t}) WHERE a < 60", 0),
    ("SELECT * FROM (SELECT max(id) AS m FROM {t}) JOIN (SELECT count(i) AS c FROM {t})", 0),
    ("SELECT count(*) FROM {t} UNION ALL SELECT max(id) FROM {t} WHERE id < 40", 16),  # merged
    ("SELECT (SELECT min(id) FROM {t}), (SELECT max(id) FROM {t})", 0),
    ("WITH c AS (SELECT count(*) AS n FROM {t}) SELECT a.n, b.n FROM c a JOIN c b", 0),
]  # fmt: skip

# Not answered: whatever it reads, no file is left to the index.
UNANSWERED = [
    "SELECT k, count(*) FROM {t} GROUP BY k",
    "SELECT count(DISTINCT id) FROM {t}",
    "SELECT count(*), count(DISTINCT id) FROM {t}",
    "SELECT count(*) FILTER (WHERE id < 40) FROM {t}",
    "SELECT max(id) FILTER (WHERE id < 40), count(*) FROM {t}",
    "SELECT count(*), sum(id) FROM {t}",
    "SELECT max(id + 1) FROM {t}",
    "SELECT max(CAST(id AS STRING)) FROM {t}",
    "SELECT count(i, id) FROM {t}",
    "SELECT count(NULL) FROM {t}",
    "SELECT count(st) FROM {t}",
    "SELECT count(*) FROM {t} WHERE rand() < 0.5D",
    "SELECT count(*) FROM {t} WHERE id < (SELECT avg(40) FROM {t})",
    "SELECT count(*) FROM (SELECT * FROM {t} LIMIT 7)",
    "SELECT count(*) FROM {t} TABLESAMPLE (50 PERCENT) REPEATABLE (7)",
    "SELECT id FROM {t} WHERE id < 5",
]


def same(spark: SparkSession, query: str) -> DataFrame:
    """Asserts that the query answers what it does with skipping off; returns it, planned anew."""
    with plain(spark):
        expected = repr(sorted(spark.sql(query).collect(), key=repr))
    assert repr(sorted(spark.sql(query).collect(), key=repr)) == expected, query
    return spark.sql(query)


def read(df: DataFrame) -> int:
    """How many files the query's scans read."""
    return sum(scan["selected"] + scan["unindexed"] for scan in explain(df))


def answered(df: DataFrame) -> int:
    """For how many files the index answers."""
    return sum(scan["answered"] for scan in explain(df))


def write(spark: SparkSession, path: Path, fmt: str, *selects: str) -> None:
    """One file for each select."""
    for select in selects:
        spark.sql(select).coalesce(1).write.format(fmt).mode("append").save(str(path))


def view(spark: SparkSession, path: Path, fmt: str, name: str) -> str:
    """The folder as it is now, as a view."""
    spark.read.format(fmt).load(str(path)).createOrReplaceTempView(name)
    return name


@pytest.fixture(scope="module", params=["parquet", "orc"])
def relation(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> str:
    fmt = str(request.param)
    path = Path(tmp_path_factory.mktemp("answers")) / fmt
    spark.range(0, FILES * ROWS, 1, FILES).selectExpr(*_split(COLUMNS)).write.format(fmt).save(
        str(path)
    )
    build(spark, path, fmt)
    return view(spark, path, fmt, f"answers_{fmt}")


def test_answers_are_those_of_plain_spark(spark: SparkSession, relation: str) -> None:
    loose = {}
    for query, most in some(ANSWERED, relation):
        df = same(spark, query.format(t=relation))
        if read(df) > most:
            loose[query] = (read(df), most)
    assert not loose, f"files read, and at most expected: {loose}"


def test_what_the_index_cannot_answer(spark: SparkSession, relation: str) -> None:
    for query in UNANSWERED:
        if "rand()" not in query and "SAMPLE" not in query:
            same(spark, query.format(t=relation))
        assert answered(spark.sql(query.format(t=relation))) == 0, query


@pytest.mark.parametrize("aqe", ["true", "false"])
def test_with_and_without_adaptive_execution(spark: SparkSession, relation: str, aqe: str) -> None:
    with settings(spark, spark__sql__adaptive__enabled=aqe):
        same(spark, f"SELECT count(*), max(i) FROM {relation} WHERE id < 47")
        same(spark, f"SELECT min(s), max(s), count(*) FROM {relation}")
        same(
            spark,
            f"SELECT (SELECT max(id) FROM {relation} WHERE id < 25), (SELECT min(id) FROM "
            f"{relation} WHERE id > 79), (SELECT count(*) FROM {relation} WHERE id < 40)",
        )
        same(spark, f"SELECT count(*) FROM {relation} a, (SELECT max(id) m FROM {relation}) b "
                    "WHERE a.id < b.m")  # fmt: skip


def test_merged_scalar_subqueries(spark: SparkSession, relation: str) -> None:
    row = spark.sql(
        f"SELECT (SELECT min(id) FROM {relation} WHERE id < 40), (SELECT max(id) FROM {relation})"
    ).first()
    assert tuple(row or ()) == (0, 159)


def test_cached_results(spark: SparkSession, relation: str) -> None:
    part = spark.sql(f"SELECT count(*) AS n, max(id) AS m FROM {relation} WHERE id < 40").cache()
    whole = spark.table(relation).cache()
    try:
        assert [tuple(r) for r in part.collect()] == [(40, 39)]
        assert part.count() == 1
        assert whole.count() == FILES * ROWS
        assert whole.where("id < 45").count() == 45
        assert answered(whole.where("id < 40").groupBy().count()) == 0  # from the cache
    finally:
        part.unpersist()
        whole.unpersist()


def test_off_means_off(spark: SparkSession, relation: str) -> None:
    query = f"SELECT count(*) FROM {relation}"
    before = spark.sql(query)
    assert read(before) == 0
    with plain(spark):
        assert read(spark.sql(query)) == FILES
        assert "ZOrderAnswers" not in spark.sql(f"EXPLAIN {query}").collect()[0][0]
        planned = spark.sql(query)
        planned.explain()
    assert planned.collect() == before.collect()


def test_explain_shows_it(spark: SparkSession, relation: str) -> None:
    text = spark.sql(f"EXPLAIN SELECT count(*) FROM {relation} WHERE id < 47").collect()[0][0]
    assert "ZOrderAnswers [answered from the index: 2 files, read: 1 files]" in text
    assert "1 of 8 files selected, 5 skipped, 0 unindexed, 2 answered from the index" in text


def test_an_other_time_zone_than_at_indexing(spark: SparkSession, relation: str) -> None:
    with settings(spark, spark__sql__session__timeZone="America/St_Johns"):
        for column in ("ts", "tn", "dt", "id"):
            same(spark, f"SELECT min({column}), max({column}), count({column}) FROM {relation}")
        same(spark, f"SELECT count(*) FROM {relation} WHERE ts < TIMESTAMP'1970-02-01 00:00:00'")


def check_judge(spark: SparkSession, relation: str, predicates: list[str]) -> int:
    """
    The second judge against plain Spark: of a file that count(*) does not open, all rows make the
    predicate TRUE, or none does; and the index answers for just those of which all do. Returns
    for how many files it answered.
    """
    wrong, count = [], 0
    for predicate, files in zip(predicates, truth(spark, relation, predicates), strict=True):
        df = spark.sql(f"SELECT count(*) FROM {relation} WHERE {predicate}")
        scans = explain(df)
        if len(scans) != 1:
            continue  # no row is left, whatever the files hold
        closed = (files["true"] | files["false"] | files["null"]) - opened(df)
        mixed = closed & files["true"] & (files["false"] | files["null"])
        if mixed or len(closed & files["true"]) != scans[0]["answered"]:
            wrong.append(f"{predicate}: {sorted(mixed)}, {scans[0]['answered']} answered")
        count += scans[0]["answered"]
    assert not wrong, "\n".join(wrong)
    return count


def test_the_second_judge(spark: SparkSession, relation: str) -> None:
    predicates = [p for p, _ in PREDICATES]
    both = predicates + [f"NOT ({p})" for p in predicates]
    assert check_judge(spark, relation, both) > 100


@hypothesis_settings(
    max_examples=2, deadline=None, suppress_health_check=list(HealthCheck), derandomize=False
)
@given(st.lists(TREES, min_size=20, max_size=20))
def test_drawn_predicates(spark: SparkSession, relation: str, predicates: list[str]) -> None:
    check_judge(spark, relation, predicates)


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
    check_judge(spark, relation, predicates)
    for predicate in ("true", predicates[0], predicates[1]):
        same(spark, f"SELECT count(*), count(x), min(x), max(x) FROM {relation} WHERE {predicate}")


# Values of one file -> whether the index answers min(x) and max(x) of it.
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
        # Indexed by one who knows the default, and by one who does not; read by both.
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
            except Exception:  # the reader refuses the type
                continue
        same(spark, query)
    with settings(spark, spark__sql__caseSensitive="true"):
        spark.read.schema("A INT, a INT").parquet(str(path)).createOrReplaceTempView("other_cases")
        same(spark, "SELECT count(*), count(A), count(a), max(A), max(a) FROM other_cases")


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """An indexed catalog table with partitions, one of them of null, two files each."""
    path = tmp_path / "t"
    spark.sql("DROP TABLE IF EXISTS answers_parts")
    spark.range(0, 80, 1, 4).selectExpr(
        "id", "if(id % 4 = 3, NULL, CAST(id % 4 AS INT)) AS p", "id * 2 AS a"
    ).repartitionByRange(2, "id").write.partitionBy("p").parquet(str(path))
    spark.sql(f"CREATE TABLE answers_parts USING parquet LOCATION '{path}'")
    if not spark.catalog.tableExists("answers_parts"):
        raise AssertionError
    spark.sql("MSCK REPAIR TABLE answers_parts")
    spark.sql("CREATE SKIPPING INDEX ON answers_parts")
    yield "answers_parts", path
    spark.sql("DROP TABLE answers_parts")


PARTITIONED = [
    ("SELECT count(*), count(p), min(p), max(p), min(id), max(a) FROM {t}", 0),
    ("SELECT count(*), max(p) FROM {t} WHERE p = 1", 0),
    ("SELECT count(*), max(p) FROM {t} WHERE p IS NULL", 0),
    ("SELECT count(*), max(id), max(p) FROM {t} WHERE p > 0 AND id < 40", 0),
    ("SELECT count(*), max(p) FROM {t} WHERE p = 1 OR id < 10", 8),
    ("SELECT count(*) FROM {t} WHERE p = 77", 0),
    ("SELECT max(p) FROM {t} WHERE id < 40", 0),
]


def test_partitions(spark: SparkSession, table: tuple[str, Path]) -> None:
    name, path = table
    for query, most in PARTITIONED:
        assert read(same(spark, query.format(t=name))) <= most, query
    spark.read.parquet(str(path)).createOrReplaceTempView("answers_parts_files")
    for query, most in PARTITIONED:
        assert read(same(spark, query.format(t="answers_parts_files"))) <= most, query


def test_metadata_columns_are_not_in_the_index(
    spark: SparkSession, table: tuple[str, Path]
) -> None:
    name, _ = table
    for query in (
        f"SELECT count(*) FROM {name} WHERE _metadata.file_size > 0",
        f"SELECT max(_metadata.file_size), count(_metadata.file_path) FROM {name}",
        f"SELECT count(*) FROM {name} WHERE input_file_name() LIKE '%part-00000%'",
    ):
        assert answered(same(spark, query)) == 0, query


def test_appends_show_up(spark: SparkSession, table: tuple[str, Path]) -> None:
    name, path = table
    query = f"SELECT count(*), max(id), count(p) FROM {name}"
    assert answered(spark.sql(query)) == 8
    with settings(spark, spark__sql__zorder__write__index="false"):
        spark.sql(f"INSERT INTO {name} VALUES (1000, 1, 7)")  # id, a, p
    assert tuple(spark.sql(query).first() or ()) == (81, 1000, 61)
    assert read(same(spark, query)) == 1
    spark.sql(f"REFRESH SKIPPING INDEX ON {name}")
    assert read(same(spark, query)) == 0
    spark.sql(f"INSERT OVERWRITE {name} VALUES (5, 5, 5)")
    same(spark, query)
    drop(spark, path)
    same(spark, query)


@FORMATS
def test_files_changed_after_planning(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    path, other = tmp_path / "t", tmp_path / "u"
    spark.range(0, 40, 1, 4).write.format(fmt).save(str(path))
    spark.range(100, 150, 1, 1).write.format(fmt).save(str(other))
    (new,) = other.glob(f"part-*.{fmt}")
    build(spark, path, fmt)
    held = view(spark, path, fmt, "held_files")
    query = f"SELECT count(*), max(id) FROM {held}"
    assert answered(spark.sql(query)) == 4

    # Planned and shown, then a file is replaced in place, then run.
    planned = spark.sql(query)
    planned.explain()
    assert answered(planned) == 4
    victim = sorted(path.glob("part-00000-*"))[0]
    for crc in path.glob(".*.crc"):
        crc.unlink()
    shutil.copy(new, victim)
    with plain(spark):
        expected = spark.sql(query).collect()
    assert planned.collect() == expected and expected[0][1] == 149
    assert read(same(spark, query)) == 1

    # Appended by somebody else.
    shutil.copy(new, path / f"part-foreign.{fmt}")
    fresh = view(spark, path, fmt, "fresh_files")
    assert tuple(same(spark, f"SELECT count(*) FROM {fresh}").first() or ())[0] == 130

    # Deleted: an error, as without an index, or left out where the user wants that.
    planned = spark.sql(f"SELECT count(*) FROM {fresh}")
    planned.explain()
    sorted(path.glob("part-00001-*"))[0].unlink()
    with pytest.raises(Exception, match="(?i)not exist|FILE_NOT_EXIST|FAILED_READ"):
        planned.collect()
    with settings(spark, spark__sql__files__ignoreMissingFiles="true"):
        assert same(spark, f"SELECT count(*) FROM {fresh}").collect()[0][0] == 120
    refreshed = view(spark, path, fmt, "refreshed_files")
    assert same(spark, f"SELECT count(*) FROM {refreshed}").collect()[0][0] == 120


def test_a_file_of_which_rows_may_be_left_out(spark: SparkSession, relation: str) -> None:
    with settings(spark, spark__sql__files__ignoreCorruptFiles="true"):
        assert answered(same(spark, f"SELECT count(*) FROM {relation}")) == 0


@FORMATS
def test_empty_tables_and_files(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    path = tmp_path / "t"
    spark.range(0).write.format(fmt).save(str(path))
    build(spark, path, fmt, spark.range(0).schema)
    spark.read.schema("id BIGINT").format(fmt).load(str(path)).createOrReplaceTempView("empty_t")
    assert tuple(same(spark, "SELECT count(*), min(id) FROM empty_t").first() or ()) == (0, None)
    write(spark, path, fmt, "SELECT 7L AS id")
    build(spark, path, fmt, spark.range(0).schema)
    spark.read.schema("id BIGINT").format(fmt).load(str(path)).createOrReplaceTempView("empty_t")
    assert tuple(same(spark, "SELECT count(*), min(id) FROM empty_t").first() or ()) == (1, 7)
    assert read(spark.sql("SELECT count(*), min(id) FROM empty_t")) == 0


def test_a_dataframe_through_an_optimize(spark: SparkSession, table: tuple[str, Path]) -> None:
    name, _ = table
    planned = spark.sql(f"SELECT count(*), max(id) FROM {name}")
    planned.explain()
    spark.sql(f"OPTIMIZE {name} ZORDER BY (id)")
    assert [tuple(r) for r in planned.collect()] == [(80, 79)]
    assert [tuple(r) for r in spark.sql(f"SELECT count(*), max(id) FROM {name}").collect()] == [
        (80, 79)
    ]
    assert read(same(spark, f"SELECT count(*), min(id), max(a) FROM {name} WHERE p > 0")) == 0
