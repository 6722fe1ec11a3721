"""An index on the elements of an array skips files for array_contains and arrays_overlap."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
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

from tests.support import scans, sketches
from tests.support.sampled import long

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
    "OPTIMIZE posts ZORDER BY (explode(tags))": "type array<string>",
}


def test_messages(spark: SparkSession, posts: None) -> None:
    for statement, message in REFUSED.items():
        with pytest.raises(Exception, match=message):
            spark.sql(statement)


#: For each type of elements: a PyArrow type, some values, and how SQL writes them.
ELEMENTS: dict[str, tuple[pa.DataType, list[tuple[Any, str]]]] = {
    "int": (pa.int32(), [(n, str(n)) for n in (-(2**31), -1, 0, 1, 2**31 - 1)]),
    "double": (
        pa.float64(),
        [
            (float(text), f"double('{name}')")
            for text, name in [
                ("nan", "NaN"),
                ("-0.0", "-0.0"),
                ("0.0", "0.0"),
                ("inf", "Infinity"),
                ("1.5", "1.5"),
            ]
        ],
    ),
    "string": (pa.string(), [(t, f"'{t}'") for t in ("", "a", "A", "a ", "ä", "\U0001f600")]),
    "binary": (pa.binary(), [(b, f"X'{b.hex()}'") for b in (b"", b"\0", b"\xff", b"ab")]),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[list[list[Any] | None]]]:
    """A type, and for each file the arrays in its rows."""
    data_type = draw(st.sampled_from(sorted(ELEMENTS)))
    values = [value for value, _ in ELEMENTS[data_type][1]]
    array = st.none() | st.lists(st.none() | st.sampled_from(values), max_size=3)
    files = st.lists(st.lists(array, min_size=1, max_size=3), min_size=1, max_size=6)
    return data_type, draw(files)


@pytest.mark.parametrize("fmt", ["parquet", "orc"])
def test_random_arrays(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    spark.conf.set(sketches.BUDGET, "1")
    skipped = 0

    @given(tables())
    @hypothesis_settings(
        max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    def check(table: tuple[str, list[list[list[Any] | None]]]) -> None:
        nonlocal skipped
        data_type, files = table
        kind, values = ELEMENTS[data_type]
        folder = tmp_path / "t"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for number, rows in enumerate(files):
            written = pa.table({"a": pa.array(rows, pa.list_(kind))})
            write = po.write_table if fmt == "orc" else pq.write_table
            write(written, str(folder / f"{number}.{fmt}"))
        spark.sql("DROP TABLE IF EXISTS posts")
        spark.sql(f"CREATE TABLE posts (a ARRAY<{data_type}>) USING {fmt} LOCATION '{folder}'")
        index(spark, "a")
        predicates = [f"array_contains(a, {text})" for _, text in values]
        predicates += [
            f"arrays_overlap(a, array({one}, {other}))"
            for (_, one), (_, other) in zip(values, values[1:], strict=False)
        ]
        found = scans.check_sound(spark, "posts", predicates)
        scans.check_judged(spark, "posts", predicates)
        skipped += sum(len(files) - opened for opened in found.values())

    check()
    assert skipped > 0
    spark.sql("DROP TABLE posts")
