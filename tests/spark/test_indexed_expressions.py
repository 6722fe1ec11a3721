"""An index on expressions skips files for predicates on these expressions, and for no others."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

from pyzorder import fallback
from pyzorder import files as files_to_open
from pyzorder.engines.indexing import index_files
from tests.support import scans, sketches
from tests.support.sampled import long

FILES, ROWS = 16, 300

COLUMNS = [
    "id",
    "concat('User', sha2(string(id), 256), '@X.org') AS email",
    "timestamp_seconds(pmod(xxhash64(id), 1000000000)) AS ts",
    "named_struct('a', sha2(string(id), 256), 'b', array(xxhash64(id))) AS s",
    "array(xxhash64(id), 1L) AS arr",
    "concat('{\"a\": \"', sha2(string(id), 256), '\"}') AS j",
    "map('k', sha2(string(id), 256)) AS m",
    "xxhash64(id) AS n",
    "CAST(id % 7 AS INT) AS common",
]

#: The indexed expressions.
INDEXED = [
    "lower(email)", "to_date(ts)", "get_json_object(j, '$.a')", "substring(email, 5, 6)", "arr[0]",
    "upper(s.a)", "s.b[0]", "m['k']", "n % 100000", "CAST(n AS STRING)", "length(email)",
    "CASE WHEN n > 0 THEN n % 10000 ELSE id % 10000 END",
    "replace(email, '@', '')",
]  # fmt: skip

HASH = "sha2('77', 256)"

#: Predicates that match few rows, or none at all. Most of them match the row whose id is 77.
LOOKUPS = [
    f"lower(email) = lower(concat('User', {HASH}, '@X.org'))",
    f"lower(email) IN (lower(concat('User', {HASH}, '@X.org')), 'none')",
    f"lower(email) <=> lower(concat('User', {HASH}, '@X.org'))",
    f"NOT (lower(email) != lower(concat('User', {HASH}, '@X.org')))",
    f"lower(email) LIKE lower(concat('User', {HASH}, '@X.org'))",
    "to_date(ts) = to_date(timestamp_seconds(pmod(xxhash64(77L), 1000000000)))",
    "CAST(ts AS DATE) = to_date(timestamp_seconds(pmod(xxhash64(77L), 1000000000)))",
    f"get_json_object(j, '$.a') = {HASH}",
    f"substring(email, 5, 6) = substring({HASH}, 1, 6)",
    f"substr(email, 5, 6) = substring({HASH}, 1, 6)",
    "arr[0] = xxhash64(77L)",
    "CAST(arr[0] AS DECIMAL(20,0)) = CAST(xxhash64(77L) AS DECIMAL(20,0))",
    f"upper(s.a) = upper({HASH})",
    "s.b[0] = xxhash64(77L)",
    f"m['k'] = {HASH}",
    "n % 100000 = xxhash64(77L) % 100000",
    "CAST(n AS STRING) = string(xxhash64(77L))",
    f"lower(email) = lower(concat('User', {HASH}, '@X.org')) OR arr[0] = xxhash64(78L)",
    "lower(email) = 'none'",
    "length(email) = 5",
    "n % 100000 > 100000",
    "CASE WHEN n > 0 THEN n % 10000 ELSE id % 10000 END = 10000",
    f"replace(email, '@', '') = concat('User', {HASH}, 'X.org')",
]

#: Predicates for which all files are opened. Most of them use expressions that are not indexed.
OTHERS = [
    f"lower(trim(email)) = lower(concat('User', {HASH}, '@X.org'))",
    f"upper(email) = upper(concat('User', {HASH}, '@X.org'))",
    f"get_json_object(j, '$.A') = {HASH}",
    f"get_json_object(j, '$.b') = {HASH}",
    f"substring(email, 5, 7) = substring({HASH}, 1, 7)",
    "arr[1] = 5",
    "n % 100001 = 5",
    "lower(email) != 'none'",
    "length(email) IS NOT NULL",
    f"coalesce(lower(email) = lower(concat('User', {HASH}, '@X.org')), false)",
]


@pytest.fixture(params=long(["parquet", "orc"], "parquet"))
def table(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """A table whose files all span the same range of every column except `id`."""
    spark.conf.set(sketches.BUDGET, "1")
    spark.sql("DROP TABLE IF EXISTS people")
    rows(spark).write.format(request.param).saveAsTable("people")
    yield request.param
    spark.sql("DROP TABLE people")


@pytest.fixture
def people(spark: SparkSession) -> Iterator[None]:
    """A Parquet table with the same rows, and an index on `id` and lower(email)."""
    spark.conf.set(sketches.BUDGET, "1")
    spark.sql("DROP TABLE IF EXISTS people")
    rows(spark).write.saveAsTable("people")
    spark.sql("CREATE SKIPPING INDEX ON people (id, lower(email))")
    yield
    spark.sql("DROP TABLE people")


def rows(spark: SparkSession, start: int = 0, files: int = FILES) -> DataFrame:
    return spark.range(start, start + files * ROWS, 1, files).selectExpr(*COLUMNS)


def opened(spark: SparkSession, condition: str, relation: str = "people") -> int:
    """Returns how many files a query opens, and asserts that its answer is the same as in plain
    Spark."""
    query = f"SELECT id FROM {relation} WHERE {condition}"
    found = sorted(row["id"] for row in spark.sql(query).collect())
    with scans.plain(spark):
        assert found == sorted(row["id"] for row in spark.sql(query).collect())
    return len(scans.opened(spark.sql(query)))


def holding(spark: SparkSession, condition: str) -> int:
    (found,) = scans.truth(spark, "people", [condition])
    return len(found["true"])


def email(number: int) -> str:
    return f"lower(email) = lower(concat('User', sha2('{number}', 256), '@X.org'))"


def reasons(spark: SparkSession, condition: str) -> str:
    (scan,) = scans.explain(spark.sql(f"SELECT id FROM people WHERE {condition}"))
    return " ".join(scan["reasons"])


def test_lookups_open_the_files_with_the_value(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE SKIPPING INDEX ON people (id, {', '.join(INDEXED)})")
    # In ORC files, the values of timestamps depend on the time zone, so dates that are computed
    # from them have no sketches.
    lookups = [p for p in LOOKUPS if table == "parquet" or "ts" not in p]
    found = {p: (opened(spark, p), holding(spark, p)) for p in lookups}
    assert {p: n for p, n in found.items() if n[0] > n[1] + 1} == {}
    assert {p: n for p in OTHERS if (n := opened(spark, p)) != FILES} == {}
    assert scans.check_judged(spark, "people", [*lookups, *OTHERS]) > 0


@pytest.mark.skipif(pyspark.__version__ < "4", reason="Spark 3.5 has no VARIANT")
@pytest.mark.parametrize("push", ["true", "false"])
def test_paths_of_variants(spark: SparkSession, push: str) -> None:
    spark.conf.set(sketches.BUDGET, "1")
    spark.range(0, FILES * ROWS, 1, FILES).selectExpr(
        "id", 'parse_json(concat(\'{"n": 5, "city": "\', sha2(string(id), 256), \'"}\')) AS v'
    ).write.mode("overwrite").saveAsTable("people")
    # Spark 4.0 does not have the short syntax.
    n = "v:n::int" if pyspark.__version__ >= "4.1" else "variant_get(v, '$.n', 'int')"
    spark.sql(f"CREATE SKIPPING INDEX ON people (variant_get(v, '$.city', 'string'), {n})")
    with scans.settings(
        spark,
        spark__sql__variant__pushVariantIntoScan=push,
        spark__sql__codegen__factoryMode="FALLBACK",  # pushed variants need code generation
    ):
        assert opened(spark, f"variant_get(v, '$.city', 'string') = {HASH}") <= 2
        assert opened(spark, f"try_variant_get(v, '$.city', 'string') = {HASH}") == FILES
        assert opened(spark, f"variant_get(v, '$.town', 'string') = {HASH}") == FILES
        assert opened(spark, f"{n} = 6") == 0
    spark.sql("DROP TABLE people")


def test_partitions(spark: SparkSession) -> None:
    spark.conf.set(sketches.BUDGET, "1")
    rows(spark).selectExpr("*", "id DIV 800 AS half").write.mode("overwrite").partitionBy(
        "half"
    ).saveAsTable("people")
    spark.sql("CREATE SKIPPING INDEX ON people (lower(email))")
    assert opened(spark, email(77)) <= 2
    assert opened(spark, f"{email(77)} AND half = 1") <= 1
    with pytest.raises(Exception, match="There is no column half"):
        spark.sql("DROP SKIPPING INDEX ON people")
        spark.sql("CREATE SKIPPING INDEX ON people (half + id)")
    spark.sql("DROP TABLE people")


def test_statements_keep_the_statistics(spark: SparkSession, people: None) -> None:
    rows(spark, 5000, 4).write.insertInto("people")
    assert opened(spark, email(77)) <= 2 and opened(spark, email(5077)) <= 2
    spark.sql("OPTIMIZE people ZORDER BY (n)")
    assert opened(spark, email(77)) <= 2
    with scans.plain(spark), scans.settings(spark, spark__sql__zorder__write__index="false"):
        rows(spark, 9000, 2).write.insertInto("people")
    spark.sql("REFRESH SKIPPING INDEX ON people")
    assert opened(spark, email(9077)) <= 2
    spark.sql("RESTORE people TO BEFORE OPTIMIZE")
    assert opened(spark, email(77)) <= 2 and opened(spark, email(9077)) <= 2
    described = spark.sql("DESCRIBE SKIPPING INDEX ON people").collect()
    assert [row["column"] for row in described] == ["id", "n", "lower(email)"]
    assert described[2]["unknown"] == 0 and described[2]["sketches"] > 0
    spark.sql("DROP SKIPPING INDEX ON people")
    assert opened(spark, email(77)) > 16


SETTINGS = {
    "ansi": ("spark.sql.ansi.enabled", ("true", "false")),
    "case": ("spark.sql.caseSensitive", ("true", "false")),
    "unknown": ("spark.sql.legacy.sizeOfNull", ("false", "true")),
}


@pytest.mark.parametrize("key, values", SETTINGS.values(), ids=SETTINGS)
def test_other_settings(
    spark: SparkSession, people: None, key: str, values: tuple[str, str]
) -> None:
    """The statistics of an expression are used only under the settings under which they were
    computed. REFRESH recomputes them under the current settings."""
    now = str(spark.conf.get(key)).lower()
    other = values[0] if now != values[0] else values[1]
    setting = {key.replace(".", "__"): other}
    with scans.settings(spark, **setting):
        assert opened(spark, email(77)) == FILES
        if key != "spark.sql.caseSensitive":  # with another value, the whole index is unusable
            assert "indexed under other settings: lower(people.email)" in reasons(
                spark, email(77)
            ).replace("spark_catalog.default.", "").replace("lower(email)", "lower(people.email)")
        rows(spark, 5000, 1).write.insertInto("people")
    # A file that was written under other settings is opened until the next REFRESH.
    assert opened(spark, email(77)) <= 3
    spark.sql("REFRESH SKIPPING INDEX ON people")
    assert opened(spark, email(77)) <= 2 and opened(spark, email(5077)) <= 2
    with scans.settings(spark, **setting):
        spark.sql("REFRESH SKIPPING INDEX ON people")
        assert opened(spark, email(77)) <= 2
    assert opened(spark, email(77)) == FILES + 1


def folder_of(spark: SparkSession) -> Path:
    return Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")) / "people"


def indexed_paths(spark: SparkSession) -> list[list[str]]:
    pointer = max((folder_of(spark) / "_zorder/_index").glob("_v*.json"))
    return [column["path"] for column in json.loads(pointer.read_text())["columns"]]


def indexed(spark: SparkSession) -> list[str]:
    return [row["column"] for row in spark.sql("DESCRIBE SKIPPING INDEX ON people").collect()]


def forge(spark: SparkSession, name: int, value: str) -> None:
    """Changes a name in the path of the index's second column, which is an expression."""
    pointer = max((folder_of(spark) / "_zorder/_index").glob("_v*.json"))
    content = json.loads(pointer.read_text())
    content["columns"][1]["path"][name] = value
    pointer.write_text(json.dumps(content))
    for checksum in pointer.parent.glob(f".{pointer.name}*.crc"):
        checksum.unlink()
    spark.catalog.refreshTable("people")


def test_other_versions_of_spark(spark: SparkSession, people: None) -> None:
    path = indexed_paths(spark)[1]
    assert path[:2] == ["zorder_expression", "lower(email)"] and path[4:] == ["email"]
    forge(spark, 3, path[3].replace(f"spark={pyspark.__version__};", "spark=3.4.0;"))
    assert opened(spark, email(77)) == FILES


#: Expressions whose values depend on the JVM or its time zone data, each with a pattern that
#: matches the version recorded in the index.
VERSIONED = {
    "from_utc_timestamp(ts, 'America/Sao_Paulo')": r" in 20\d\d[a-z]",
    "to_utc_timestamp(ts, 'America/Sao_Paulo')": r" in 20\d\d[a-z]",
    "convert_timezone('UTC', 'America/Sao_Paulo', ntz)": r" in 20\d\d[a-z]",
    "CAST(email AS TIMESTAMP_NTZ)": r" in 20\d\d[a-z]",
    "to_date(ts)": r" in 20\d\d[a-z]",
    "sin(n)": r" on \d+.* \w+",
}


def test_versions_of_the_jvm(spark: SparkSession) -> None:
    rows(spark, files=1).selectExpr("*", "CAST(ts AS TIMESTAMP_NTZ) AS ntz").write.mode(
        "overwrite"
    ).saveAsTable("people")
    spark.sql(f"CREATE SKIPPING INDEX ON people ({', '.join(VERSIONED)}, lower(email), n + 1)")
    forms = {path[1]: path[2] for path in indexed_paths(spark)}
    for expression, version in VERSIONED.items():
        assert re.search(version, forms[expression]), forms[expression]
    for expression in ("lower(email)", "n + 1"):
        assert not re.search(r" (in|on) \d", forms[expression]), forms[expression]
    spark.sql("DROP TABLE people")


def test_collections_of_structs(spark: SparkSession) -> None:
    """Expressions that read an array or a map of structs cannot be indexed. Whether Spark reads
    such a collection as null may depend on which of the structs' fields a query reads."""
    spark.range(8).selectExpr(
        "id", "named_struct('arr', array(named_struct('x', id)), 'm', map('a', named_struct('x', id)), "
        "'deep', named_struct('arrs', array(array(named_struct('x', id)))), 'plain', array(id)) AS st",
        "array(named_struct('x', id)) AS arr",
    ).write.mode("overwrite").saveAsTable("people")  # fmt: skip
    for expression in (
        "st.arr IS NULL", "size(st.arr)", "st.m IS NULL", "size(st.m)", "st.deep.arrs IS NULL",
        "size(st.deep.arrs[0])", "coalesce(size(st.arr), 7)", "st.arr[0].x + 1", "st.m['a'].x + 1",
        "arr IS NULL", "size(arr)", "isnotnull(st.deep)",
    ):  # fmt: skip
        with pytest.raises(Exception, match="NOT_INDEXABLE.*(whole structs)"):
            spark.sql(f"CREATE SKIPPING INDEX ON people ({expression})")
    spark.sql("CREATE SKIPPING INDEX ON people (st.plain IS NULL, size(st.plain))")
    spark.sql("DROP TABLE people")


def test_case_of_names(spark: SparkSession) -> None:
    spark.conf.set(sketches.BUDGET, "1")
    rows(spark).selectExpr("id AS Id", "email AS Email", "s AS S").write.mode(
        "overwrite"
    ).saveAsTable("people")
    with scans.settings(spark, spark__sql__caseSensitive="false"):
        spark.sql("CREATE SKIPPING INDEX ON people (lower(email), UPPER(s.A), ID * 2 + 1)")
        assert opened(spark, email(77)) <= 2
        assert opened(spark, email(77).replace("email", "EMAIL")) <= 2
        assert opened(spark, f"upper(S.a) = upper({HASH})") <= 2
        assert opened(spark, "id * 2 + 1 = 155") == 1
        spark.sql("REFRESH SKIPPING INDEX ON people")
        rows(spark, 5000, 1).select("id", "email", "s").write.insertInto("people")
        assert opened(spark, email(77)) <= 2 and opened(spark, email(5077)) <= 2
        with pytest.raises(Exception, match="listed twice"):
            spark.sql("DROP SKIPPING INDEX ON people")
            spark.sql("CREATE SKIPPING INDEX ON people (lower(email), lower(EMAIL))")
    spark.sql("DROP TABLE people")


@pytest.mark.parametrize(
    "expression, key, value",
    [
        ("CAST(CAST(id AS BOOLEAN) AS TIMESTAMP)", "spark.sql.ansi.enabled", "false"),
        ("CAST(to_date(email) AS INT)", "spark.sql.ansi.enabled", "false"),
        ('lower("email")', "spark.sql.ansi.doubleQuotedIdentifiers", "true"),
    ],
)
def test_refresh_that_cannot_evaluate_the_expressions(
    spark: SparkSession, expression: str, key: str, value: str
) -> None:
    """If REFRESH cannot evaluate the indexed expressions, they and their statistics remain in the
    index."""
    spark.conf.set(sketches.BUDGET, "1")
    rows(spark).write.mode("overwrite").saveAsTable("people")
    ansi = {"spark__sql__ansi__enabled": "true"}  # double-quoted identifiers need ANSI mode
    own = {**ansi, key.replace(".", "__"): value}
    with scans.settings(spark, **own):
        spark.sql(f"CREATE SKIPPING INDEX ON people ({expression})")
    created = indexed_paths(spark)
    with scans.settings(spark, **ansi):
        spark.sql("REFRESH SKIPPING INDEX ON people")
        assert indexed_paths(spark) == created and indexed(spark) == [expression]
        rows(spark, 5000, 1).write.insertInto("people")
        spark.sql("REFRESH SKIPPING INDEX ON people")
        assert indexed_paths(spark) == created and indexed(spark) == [expression]
    with scans.settings(spark, **own):
        if "lower" in expression:
            assert opened(spark, email(77).replace("(email)", '("email")')) <= 3
        spark.sql("REFRESH SKIPPING INDEX ON people")
        assert indexed_paths(spark) == created
        (described,) = spark.sql("DESCRIBE SKIPPING INDEX ON people").collect()
        assert described["unindexed"] == 0 and described["unknown"] == 0
    spark.sql("DROP TABLE people")


#: Expression texts in a forged index. Most of them would take a long time to parse, analyze or
#: evaluate, or would read files or run code.
FORGED = [
    "(" * 20000 + "email" + ")" * 20000,
    "(" * 450 + "email" + ")" * 450,
    "(" * 30 + "id + 1" + ")" * 30,
    "~" * 900 + "id",
    "id + 1e100000000BD",
    "NOT " * 240 + "(id = 1)",
    "case " * 60 + "id" + " when 1 then 2 end" * 60,
    "case " * 20 + "id" + " when 1 then 2 when 2 then 3 end" * 20,
    "right(" * 25 + "email" + ", 1)" * 25,
    "hex(" * 25 + "email" + ")" * 25,
    "hex(" * 25 + "if(email IS NULL, 'a', 'b')" + ")" * 25,
    "concat(email, " + "replace(" * 6 + "'a'" + f", 'a', '{'a' * 90}')" * 6 + ")",
    f"concat(email, '{'a' * 40}!' RLIKE '^(a+)+$')",
    f"if(email IS NULL, '{'a' * 40}!', 'b') RLIKE '^(a+)+$'",
    f"array(email, '{'a' * 40}!')[0 + 1] RLIKE '^(a+)+$'",
    f"nvl2(1 = 1, '{'a' * 40}!', email) RLIKE '^(a+)+$'",
    "id + aggregate(sequence(1, 9999), 0L, (a, x) -> aggregate(sequence(1, 9999), a, "
    "(b, y) -> aggregate(sequence(1, 9999), b, (c, z) -> c + z)))",
    "date_part(repeat('a', 2000000000), ts)",
    "length(lpad('a', 2000000000, 'b')) + id",
    "reflect('java.lang.System', 'setProperty', 'd34.hacked', email)",
    "concat(email, reflect('java.lang.System', 'setProperty', 'd34.hacked', 'yes'))",
    "IDENTIFIER('lower')(email)",
    "plus_one(id)",
    "lower(email) || (SELECT max(value) FROM text.`/no/such/folder`)",
    "email IN (SELECT value FROM text.`/no/such/folder`)",
    "lower(email) || '",
    "",
]


def test_forged_texts(spark: SparkSession, people: None) -> None:
    """An expression text that pyzorder would never write to a pointer is not evaluated, and does
    not slow statements down."""
    spark.udf.register("plus_one", lambda n: n + 1, "bigint")
    for number, text in enumerate(FORGED):
        forge(spark, 1, text)
        start = time.monotonic()
        rows(spark, 5000 + ROWS * number, 1).write.insertInto("people")
        spark.sql("REFRESH SKIPPING INDEX ON people")
        assert time.monotonic() - start < 60, text[:80]
        assert [path[1] for path in indexed_paths(spark)[1:]] == [text]
    assert opened(spark, "id = 77") == 1
    spark.sql("OPTIMIZE people ZORDER BY (n)")
    assert spark.sql("SELECT count(*) FROM people").first() == (ROWS * (FILES + len(FORGED)),)
    assert spark._jvm.System.getProperty("d34.hacked") is None


def test_statements_do_not_read_the_tables_of_subqueries(spark: SparkSession) -> None:
    rows(spark, files=1).write.mode("overwrite").saveAsTable("people")
    for text in FORGED[-4:-2]:
        with pytest.raises(Exception, match="NOT_INDEXABLE.*a subquery"):
            spark.sql(f"CREATE SKIPPING INDEX ON people ({text})")
    spark.sql("DROP TABLE people")


def test_time_zones(spark: SparkSession) -> None:
    """If the session time zone changes, only the statistics of expressions that depend on it become
    unusable."""
    spark.conf.set(sketches.BUDGET, "1")
    rows(spark).write.mode("overwrite").saveAsTable("people")
    spark.sql("CREATE SKIPPING INDEX ON people (lower(email), to_date(ts), hour(ts))")
    day = "to_date(ts) = to_date(timestamp_seconds(pmod(xxhash64(77L), 1000000000)))"
    for zone, expected in [("America/Los_Angeles", FILES), ("Asia/Kathmandu", FILES)]:
        assert opened(spark, day) <= holding(spark, day) + 1
        with scans.settings(spark, spark__sql__session__timeZone=zone):
            assert opened(spark, day) == expected
            assert opened(spark, "hour(ts) = 25") == expected
            assert opened(spark, email(77)) <= 2
    assert opened(spark, "hour(ts) = 25") == 0
    spark.sql("DROP TABLE people")


def test_rows_for_which_the_expression_fails(spark: SparkSession) -> None:
    """A file with a row for which an indexed expression fails is always opened, so the query fails
    as in plain Spark."""
    spark.range(0, 400, 1, 4).selectExpr(
        "id", "if(id = 150, array(), array(id)) AS arr", "string(if(id < 300, id, NULL)) AS text"
    ).write.mode("overwrite").saveAsTable("people")
    with scans.settings(spark, spark__sql__ansi__enabled="true"):
        spark.sql("CREATE SKIPPING INDEX ON people (arr[0], CAST(text AS INT))")
        for _ in range(2):
            found = scans.opened(spark.sql("SELECT id FROM people WHERE arr[0] = 7"))
            assert len(found) == 2
            with pytest.raises(Exception, match="INVALID_ARRAY_INDEX"):
                spark.sql("SELECT id FROM people WHERE arr[0] = 7").collect()
            spark.sql("REFRESH SKIPPING INDEX ON people")
        assert opened(spark, "CAST(text AS INT) = 7") == 1
        assert opened(spark, "CAST(text AS INT) IS NULL") == 1
    spark.sql("DROP TABLE people")


ERRORS = [
    ("rand()", "NOT_INDEXABLE", "may differ from one query to the next"),
    ("current_date()", "NOT_INDEXABLE", "may differ from one query to the next"),
    ("datediff(current_date(), to_date(ts))", "NOT_INDEXABLE", "from one query to the next"),
    ("input_file_name()", "NOT_INDEXABLE", "may differ from one query to the next"),
    ("sum(id)", "NOT_INDEXABLE", "an aggregate"),
    ("row_number() OVER (ORDER BY id)", "NOT_INDEXABLE", "a window function"),
    ("explode_outer(arr)", "NOT_INDEXABLE", "a generator"),
    ("(SELECT 1)", "NOT_INDEXABLE", "a subquery"),
    ("plus_one(id)", "NOT_INDEXABLE", "a user-defined function"),
    ("exists(arr, x -> x > 1)", "NOT_INDEXABLE", "lambda functions"),
    ("date_format(ts, 'yyyy')", "NOT_INDEXABLE", "date formats"),
    ("lower('A')", "NOT_INDEXABLE", "it is a column or a constant"),
    ("to_json(s)", "NOT_INDEXABLE", "whole structs"),
    ("concat(email, upper('a'))", "NOT_INDEXABLE", "functions of constants"),
    ("monthname(to_date(ts))", "NOT_INDEXABLE", ""),
    ("format_number(n, 2)", "NOT_INDEXABLE", "produce long strings"),
    ("replace(email, 'a', 'aa')", "NOT_INDEXABLE", "produce long strings"),
    ("replace(email, 'a', j)", "NOT_INDEXABLE", "produce long strings"),
    ("regexp_replace(email, 'a', '')", "NOT_INDEXABLE", "regular expressions"),
    ("regexp_extract(email, 'a(.)')", "NOT_INDEXABLE", "regular expressions"),
    ("email RLIKE '^(.+)+(.+)+#$'", "NOT_INDEXABLE", "regular expressions"),
    ("split(email, '@')[0]", "NOT_INDEXABLE", "regular expressions"),
    ("round(n, 100000000)", "NOT_INDEXABLE", "may be slow to compute"),
    ("bround(n, -100000000)", "NOT_INDEXABLE", "may be slow to compute"),
    ("ceil(n, 100000000)", "NOT_INDEXABLE", "may be slow to compute"),
    ("floor(n, -100000000)", "NOT_INDEXABLE", "may be slow to compute"),
    ("size(str_to_map(email, '(a+)+b'))", "NOT_INDEXABLE", "regular expressions"),
    ("regexp_count(email, '(a+)+b')", "NOT_INDEXABLE", "regular expressions"),
    ("levenshtein(email, j)", "NOT_INDEXABLE", "may be slow to compute"),
    ("email LIKE 'a%b%c%'", "NOT_INDEXABLE", "LIKE"),
    ("lower(" * 9 + "email" + ")" * 9, "NOT_INDEXABLE", "8 nested functions"),
    ("(" * 31 + "n" + ")" * 31 + " + 1", "NOT_INDEXABLE", "30 opening brackets"),
    ("s IS NULL", "NOT_INDEXABLE", "whole structs"),
    (" + ".join(["id * 2"] * 120), "NOT_INDEXABLE", "it has more than 1,000 characters"),
    (" + ".join(["id * 2"] * 110), "NOT_INDEXABLE", "it has more than 1,000 characters"),
    ("repeat(email, 1000000)", "NOT_INDEXABLE", "produce long strings"),
    ("hex(" * 7 + "email" + ")" * 7, "NOT_INDEXABLE", "produce long strings"),
    (f"hex(concat({', '.join(['email'] * 40)}))", "NOT_INDEXABLE", "produce long strings"),
    ("concat_ws(email, email, email)", "NOT_INDEXABLE", "produce long strings"),
    ("array_join(arr, email)", "NOT_INDEXABLE", "produce long strings"),
    ("position(j, email)", "NOT_INDEXABLE", "may be slow to compute"),
    ("instr(email, j)", "NOT_INDEXABLE", "may be slow to compute"),
    ("contains(email, j)", "NOT_INDEXABLE", "may be slow to compute"),
    ("contains(CAST(email AS BINARY), CAST(j AS BINARY))", "NOT_INDEXABLE", "may be slow"),
    ("find_in_set(j, email)", "NOT_INDEXABLE", "may be slow to compute"),
    ("substring_index(email, j, 1)", "NOT_INDEXABLE", "may be slow to compute"),
    ("trim(BOTH j FROM email)", "NOT_INDEXABLE", "may be slow to compute"),
    ("size(array_distinct(arr))", "NOT_INDEXABLE", "may be slow to compute"),
    (", ".join(f"id * {i}" for i in range(2, 103)), "NOT_INDEXABLE", "after 100 other"),
    ("array(id)", "NOT_INDEXABLE", "type array<bigint>, which has no order"),
    ("(email)", "NOT_INDEXABLE", "it is a column or a constant"),
    ("CAST(id AS BIGINT)", "NOT_INDEXABLE", "it is a column or a constant"),
    ("no_such(id)", "NOT_INDEXABLE", "no_such"),
    ("lower(emial)", "UNKNOWN_COLUMN", "There is no column emial in"),
    ("_metadata.file_size + 1", "UNKNOWN_COLUMN", "There is no column _metadata.file_size"),
    ("lower(email) + ", "NOT_INDEXABLE", "Syntax error at or near end of input"),
    ("lower(email", "SYNTAX_ERROR", "expected"),
    ("lower(email), LOWER ( email )", "DUPLICATE_COLUMN", "lower(email) is listed twice"),
]


def test_expressions_that_cannot_be_indexed(spark: SparkSession) -> None:
    spark.udf.register("plus_one", lambda n: n + 1, "bigint")
    rows(spark, files=1).write.mode("overwrite").saveAsTable("people")
    for expression, condition, message in ERRORS:
        with pytest.raises(Exception, match="ZORDER_") as raised:
            spark.sql(f"CREATE SKIPPING INDEX ON people (id, {expression})")
        text = str(raised.value)
        assert f"[ZORDER_{condition}]" in text and message in text, expression
    with (
        scans.settings(spark, spark__sql__zorder__index__denyColumns="EMAIL"),
        pytest.raises(Exception, match="excluded from indexing"),
    ):
        spark.sql("CREATE SKIPPING INDEX ON people (lower(email))")
    spark.sql("DROP TABLE people")


def test_denied_inputs(spark: SparkSession, people: None) -> None:
    """If a column is excluded from indexing, REFRESH removes the expressions that read it."""
    with scans.settings(spark, spark__sql__zorder__index__denyColumns="email"):
        spark.sql("REFRESH SKIPPING INDEX ON people")
        described = spark.sql("DESCRIBE SKIPPING INDEX ON people").collect()
        assert [row["column"] for row in described] == ["id"]
        assert opened(spark, email(77)) == FILES


def test_join_keys(spark: SparkSession, people: None) -> None:
    spark.range(0, 1600, 800).selectExpr(
        "concat('user', sha2(string(id), 256), '@x.org') AS k"
    ).createOrReplaceTempView("keys")
    query = "SELECT /*+ BROADCAST(keys) */ id FROM people JOIN keys ON lower(email) = k"
    frame = spark.sql(query)
    assert sorted(row["id"] for row in frame.collect()) == [0, 800]
    (scan,) = [s for s in scans.explain(frame) if s["table"] == "people"]
    assert len(scan["opened"]) <= 3
    spark.catalog.dropTempView("keys")


def test_counts(spark: SparkSession, people: None) -> None:
    """A query that counts the rows without a given value opens only the files that may contain the
    value. In all other files, every row is counted."""
    spark.sql("DROP SKIPPING INDEX ON people")
    spark.sql("CREATE SKIPPING INDEX ON people (email, lower(email))")
    query = f"SELECT count(*) FROM people WHERE NOT ({email(77)})"
    assert spark.sql(query).first() == (FILES * ROWS - 1,)
    assert len(scans.opened(spark.sql(query))) <= 2


def test_explain(spark: SparkSession, people: None) -> None:
    (scan,) = scans.explain(spark.sql(f"SELECT id FROM people WHERE {email(77)}"))
    assert "lower(email)_minValue <= 'user" in scan["indexFilter"]


def test_large_indexes(spark: SparkSession, people: None) -> None:
    """An index that is too large for the driver is queried by a Spark job."""
    spark.sql("DROP SKIPPING INDEX ON people")
    spark.sql("CREATE SKIPPING INDEX ON people (id * 2 + 1)")
    with scans.settings(spark, spark__sql__zorder__index__driverLimit="1"):
        assert opened(spark, "id * 2 + 1 = 155") == 1
        assert opened(spark, "id * 2 + 1 > 155") == FILES
    assert len(spark.sql("SELECT * FROM skipping_index('people')").collect()) == FILES


def test_readers_without_the_jar(spark: SparkSession, people: None) -> None:
    """Readers without the jar use the statistics of columns and ignore the statistics of
    expressions. When they index a file, its entry has no statistics of expressions."""
    folder = folder_of(spark)
    assert len(files_to_open(folder, "id = 77")) == 1
    assert (
        len(fallback.sql(spark, f"SELECT id FROM people WHERE id = 77 AND {email(77)}").collect())
        == 1
    )
    with scans.settings(spark, spark__sql__zorder__write__index="false"):
        rows(spark, 5000, 1).write.insertInto("people")
    assert len(index_files(folder).indexed) == 1
    spark.catalog.refreshTable("people")
    assert opened(spark, email(77)) <= 3 and opened(spark, email(5077)) <= 2
    spark.sql("REFRESH SKIPPING INDEX ON people")
    assert opened(spark, email(77)) <= 2
    with scans.settings(spark, spark__sql__zorder__write__index="false"):
        rows(spark, 9000, 1).write.insertInto("people")
    fallback.refresh_index(spark, "people")
    spark.catalog.refreshTable("people")
    assert opened(spark, email(9077)) <= 2
