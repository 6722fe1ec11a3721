"""An index on the elements of an array skips files for array_contains and arrays_overlap."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from decimal import Decimal
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.fuzz.predicates import literal
from tests.support import scans, sketches
from tests.support.sampled import long
from tests.support.values import arrow

FILES, ROWS = 16, 50

#: Every file has arrays with words from the whole alphabet, and with numbers from the whole range.
COLUMNS = [
    "id",
    "array(sha2(string(id), 256), NULL, sha2(string(-id), 256)) AS tags",
    "named_struct('n', array(id * 7919 % 800, id * 7907 % 800)) AS s",
    "map(sha2(string(id), 256), 1) AS m",
    "IF(id % 2 = 0, NULL, array(id)) AS odd",
    "CAST(NULL AS ARRAY<STRING>) AS nothing",
]

INDEXED = ["tags", "s.n", "map_keys(m)", "odd", "nothing", "concat(tags, map_keys(m))"]

HASH = "sha2('77', 256)"

#: Predicates that match rows of at most this many files.
LOOKUPS = {
    f"array_contains(tags, {HASH})": 1,
    f"array_contains(tags, 'none') OR array_contains(map_keys(m), {HASH})": 1,
    f"array_contains(tags, {HASH}) AND id > 0": 1,
    f"array_contains(tags, {HASH}) AND array_contains(tags, 'none')": 0,
    f"arrays_overlap(tags, array('none', {HASH}))": 1,
    f"arrays_overlap(array({HASH}), tags)": 1,
    "arrays_overlap(tags, array('none', CAST(NULL AS STRING)))": 0,
    f"array_contains(concat(tags, map_keys(m)), {HASH})": 1,
    "array_contains(s.n, 801L)": 0,
    "array_contains(odd, 77L)": 1,
    "array_contains(nothing, 'a')": 0,
    "arrays_overlap(nothing, array('a'))": 0,
}

#: Predicates for which all files are opened.
OTHERS = [
    f"NOT array_contains(tags, {HASH})",
    f"array_contains(tags, {HASH}) IS NULL",
    f"coalesce(array_contains(tags, {HASH}), true)",
    f"array_contains(tags, {HASH}) <=> NULL",
    f"array_contains(reverse(tags), {HASH})",
    f"exists(tags, tag -> tag = {HASH})",
    "array_contains(tags, CAST(id AS STRING))",
    "arrays_overlap(tags, map_keys(m))",
    "array_contains(odd, id)",
    "size(tags) = 4",
    "tags IS NULL",
]


def index(spark: SparkSession, *arrays: str) -> None:
    columns = ", ".join(f"explode({array})" for array in arrays)
    spark.sql(f"CREATE SKIPPING INDEX ON posts ({columns})")


def opened(spark: SparkSession, condition: str) -> int:
    return scans.check_sound(spark, "posts", [condition])[condition]


@pytest.fixture(params=long(["parquet", "orc"], "parquet"))
def posts(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    spark.conf.set(sketches.BUDGET, "1")
    rows = spark.range(0, FILES * ROWS, 1, FILES).selectExpr(*COLUMNS)
    rows.write.format(request.param).mode("overwrite").saveAsTable("posts")
    yield
    spark.sql("DROP TABLE posts")


def test_lookups_open_the_files_with_the_element(spark: SparkSession, posts: None) -> None:
    index(spark, *INDEXED)
    lookups = list(LOOKUPS)
    found = scans.check_sound(spark, "posts", [*lookups, *OTHERS])
    assert {p: n for p, n in found.items() if p in LOOKUPS and n > LOOKUPS[p] + 1} == {}
    assert {p: n for p, n in found.items() if p in OTHERS and n != FILES} == {}
    assert scans.check_judged(spark, "posts", [*lookups, *OTHERS]) > 0


def test_statements_keep_the_statistics(spark: SparkSession, posts: None) -> None:
    index(spark, "tags")
    added = spark.range(5000, 5000 + ROWS, 1, 1).selectExpr(*COLUMNS)
    added.write.insertInto("posts")
    lookups = [f"array_contains(tags, sha2('{n}', 256))" for n in (77, -77, 5001)]
    assert max(scans.check_sound(spark, "posts", lookups).values()) <= 2
    spark.sql("OPTIMIZE posts ZORDER BY (id)")
    assert max(scans.check_sound(spark, "posts", lookups).values()) <= 2
    spark.sql("REFRESH SKIPPING INDEX ON posts")
    assert max(scans.check_sound(spark, "posts", lookups).values()) <= 2
    described = spark.sql("DESCRIBE SKIPPING INDEX ON posts").collect()
    assert [(row["column"], row["unknown"]) for row in described][-1] == ("explode(tags)", 0)


def test_other_settings(spark: SparkSession, posts: None) -> None:
    index(spark, "tags")
    condition = f"array_contains(tags, {HASH})"
    with scans.settings(spark, spark__sql__ansi__enabled="false"):
        assert opened(spark, condition) == FILES
        (scan,) = scans.explain(spark.sql(f"SELECT * FROM posts WHERE {condition}"))
        assert "indexed under other settings: array_contains" in " ".join(scan["reasons"])
    assert opened(spark, condition) <= 2


@pytest.mark.parametrize("change", ["ARRAY<STRUCT<a: INT>>", "ARRAY<BIGINT>"])
def test_another_type_of_the_same_name(spark: SparkSession, tmp_path: Path, change: str) -> None:
    """The statistics are not used after the column's type has changed."""
    table = f"parquet LOCATION '{tmp_path}/t'"
    spark.sql(f"CREATE TABLE posts (id BIGINT, a ARRAY<INT>) USING {table}")
    spark.sql("INSERT INTO posts VALUES (1, array(1, 2))")
    index(spark, "a")
    assert opened(spark, "array_contains(a, 3)") == 0
    spark.sql("DROP TABLE posts")
    spark.sql(f"CREATE TABLE posts (id BIGINT, a {change}) USING {table}")
    condition = "array_contains(a.a, 3)" if "STRUCT" in change else "array_contains(a, 3L)"
    assert len(scans.opened(spark.sql(f"SELECT id FROM posts WHERE {condition}"))) == 1
    spark.sql("DROP TABLE posts")


def test_errors_occur_as_without_an_index(spark: SparkSession, tmp_path: Path) -> None:
    """A file for whose rows the array cannot be computed is always opened."""
    spark.sql(f"CREATE TABLE posts (a ARRAY<STRING>) USING parquet LOCATION '{tmp_path}/t'")
    for words in ("'1', '2'", "'3', 'x'"):
        spark.sql(f"INSERT INTO posts VALUES (array({words}))")
    index(spark, "CAST(a AS ARRAY<INT>)")
    query = "SELECT * FROM posts WHERE array_contains(CAST(a AS ARRAY<INT>), 7)"
    assert len(scans.opened(spark.sql(query))) == 1
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        spark.sql(query).collect()
    spark.sql("DROP TABLE posts")


def test_other_uses_of_the_condition(spark: SparkSession, posts: None) -> None:
    """Metadata-only answers and compound conditions are as without the index."""
    index(spark, "tags")
    for found in (f"array_contains(tags, {HASH})", "array_contains(tags, 'none')"):
        for query in (
            f"SELECT count(*), min(id), max(id) FROM posts WHERE {found}",
            f"SELECT count(*) FROM posts WHERE NOT {found}",
            f"SELECT count(CASE WHEN {found} THEN 1 END), count_if({found}) FROM posts",
            f"SELECT id FROM posts WHERE IF({found}, id > 0, id = 5)",
            f"SELECT id FROM posts WHERE {found} ORDER BY id LIMIT 1",
            f"SELECT id FROM posts LEFT ANTI JOIN (SELECT 77L AS k) ON id = k AND {found}",
        ):
            answer = sorted(spark.sql(query).collect())
            with scans.plain(spark):
                assert answer == sorted(spark.sql(query).collect()), query


@pytest.mark.parametrize(
    "declared, plain, stored, indexed, condition",
    [
        ("ARRAY<CHAR(3)>", "ARRAY<STRING>", ["ab"], "explode(c)", "array_contains(c, 'ab')"),
        ("ARRAY<CHAR(3)>", "ARRAY<STRING>", ["ab"], "c[0]", "c[0] = 'ab'"),
        ("STRUCT<f: CHAR(3)>", "STRUCT<f: STRING>", {"f": "ab"}, "c.f", "c.f = 'ab'"),
    ],
)
def test_padded_values_in_nested_columns(
    spark: SparkSession,
    tmp_path: Path,
    declared: str,
    plain: str,
    stored: Any,
    indexed: str,
    condition: str,
) -> None:
    """Another table with the same files may declare them without CHAR, and is not padded."""
    spark.conf.set(sketches.BUDGET, "1")
    (tmp_path / "t").mkdir()
    rows = [stored] * 40
    for number in range(10):
        pq.write_table(pa.table({"c": pa.array(rows)}), str(tmp_path / "t" / f"{number}.parquet"))
    for name, columns in (("padded", declared), ("posts", plain)):
        spark.sql(f"CREATE TABLE {name} (c {columns}) USING parquet LOCATION '{tmp_path}/t'")
    spark.sql(f"CREATE SKIPPING INDEX ON padded ({indexed})")
    padded = condition.replace("'ab'", "'ab '")
    assert opened(spark, condition) == 10 and opened(spark, padded) == 0
    scans.check_sound(spark, "padded", [condition, padded])
    spark.sql("DROP TABLE posts")
    spark.sql("DROP TABLE padded")


REFUSED = {
    "CREATE SKIPPING INDEX ON posts (explode(id))": "Spark rejects it",
    "CREATE SKIPPING INDEX ON posts (explode(m))": "type map<string,int>, which has no order",
    "CREATE SKIPPING INDEX ON posts (explode(array(tags)))": "type array<string>, which has no",
    "CREATE SKIPPING INDEX ON posts (tags)": "explode",
    "CREATE SKIPPING INDEX ON posts (id, concat(tags, tags))": "explode",
    "CREATE SKIPPING INDEX ON posts (explode(explode(array(tags))))": "a generator",
    "CREATE SKIPPING INDEX ON posts (upper(explode(tags)))": "Spark rejects it",
    "CREATE SKIPPING INDEX ON posts (explode(array(1, 2)))": "column or a constant",
    "CREATE SKIPPING INDEX ON posts (explode(tags), EXPLODE(tags))": "twice",
    "CREATE SKIPPING INDEX ON posts (m)": "type map<string,int>, which has no order",
    "OPTIMIZE posts ZORDER BY (explode(tags))": "type array<string>",
}


def test_messages(spark: SparkSession, posts: None) -> None:
    for statement, message in REFUSED.items():
        with pytest.raises(Exception, match=message):
            spark.sql(statement)


#: Some values of each type of elements. `literal` writes them in SQL.
ELEMENTS: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int": [-(2**31), -1, 0, 1, 2**31 - 1],
    "float": [float("nan"), -0.0, 0.0, float("inf"), 1.5],
    "double": [float("nan"), -0.0, 0.0, float("-inf"), 1.5],
    "decimal(7,2)": [Decimal("-1.50"), Decimal("0.00"), Decimal("99999.99")],
    "decimal(38,10)": [Decimal("0.0000000001"), Decimal("1" + 27 * "0" + ".0000000000")],
    "date": [-1, 0, 20_000],
    "timestamp": [0, 1, 1_700_000_000_000_000],
    "string": ["", "a", "A", "a ", "ä", "y" * 300, "y" * 300 + "z", "\U0001f600"],
    "binary": [b"", b"\0", b"\xff", b"ab"],
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[list[list[Any] | None]]]:
    """A type, and for each file the arrays in its rows."""
    data_type = draw(st.sampled_from(sorted(ELEMENTS)))
    value = st.none() | st.sampled_from(ELEMENTS[data_type])
    array = st.none() | st.lists(value, max_size=3)
    files = st.lists(st.lists(array, min_size=1, max_size=3), min_size=1, max_size=6)
    return data_type, draw(files)


@pytest.mark.parametrize("fmt", ["parquet", "orc"])
def test_random_arrays(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    spark.conf.set(sketches.BUDGET, "1")
    skipped = 0

    @given(tables())
    @hypothesis_settings(
        max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    def check(table: tuple[str, list[list[list[Any] | None]]]) -> None:
        nonlocal skipped
        data_type, files = table
        values = [literal(value, data_type) for value in ELEMENTS[data_type]]
        folder = tmp_path / "t"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for number, rows in enumerate(files):
            elements = arrow([value for row in rows for value in row or []], data_type)
            ends = list(accumulate((len(row or []) for row in rows), initial=0))
            nulls = pa.array([row is None for row in rows])
            written = pa.table({"a": pa.ListArray.from_arrays(ends, elements, mask=nulls)})
            write = po.write_table if fmt == "orc" else pq.write_table
            write(written, str(folder / f"{number}.{fmt}"))
        spark.sql("DROP TABLE IF EXISTS posts")
        spark.sql(f"CREATE TABLE posts (a ARRAY<{data_type}>) USING {fmt} LOCATION '{folder}'")
        index(spark, "a")
        predicates = [f"array_contains(a, {value})" for value in values]
        predicates += [f"arrays_overlap(a, array({a}, {b}))" for a, b in pairwise(values)]
        found = scans.check_sound(spark, "posts", predicates)
        scans.check_judged(spark, "posts", predicates)
        skipped += sum(len(files) - opened for opened in found.values())

    check()
    assert skipped > 0
    spark.sql("DROP TABLE posts")
