"""COUNT, MIN and MAX return the right answers. Queries that use the index open few files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.spark.test_pruning import COLUMNS, FILES, PREDICATES, ROWS, TREES, _split
from tests.support.indexes import build
from tests.support.metadata_only import answered, check_strict, read, same, view
from tests.support.sampled import long
from tests.support.scans import plain, settings, some

# (query on {t}, how many files it may read). {t} has 8 files of 20 rows each, with COLUMNS from
# test_pruning.py.
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
    ("SELECT min(f), max(f) FROM {t}", 1),  # a file with NaN and a zero
    ("SELECT min(d), max(d) FROM {t}", 2),
    ("SELECT count(f), count(d), count(s), count(x), count(st.b.z) FROM {t}", 0),
    ("SELECT min(s), max(s) FROM {t}", 7),  # bounds are exact in files with one value
    ("SELECT min(x) FROM {t}", 7),
    ("SELECT count(*) FROM {t} WHERE id < 40", 0),
    ("SELECT count(*) FROM {t} WHERE id < 47", 1),
    ("SELECT count(*), min(id), max(id), min(l) FROM {t} WHERE id >= 15 AND id < 100", 1),
    ("SELECT count(*) FROM {t} WHERE id NOT BETWEEN 40 AND 59", 0),
    ("SELECT count(*) FROM {t} WHERE id < 40 OR id >= 140", 0),
    ("SELECT count(*) FROM {t} WHERE NOT (id < 40 OR id >= 140)", 0),
    ("SELECT count(*) FROM {t} WHERE id = 1000", 0),
    ("SELECT count(*), max(i) FROM {t} WHERE i < 1000", 7),  # each file has a null
    ("SELECT count(*) FROM {t} WHERE i IS NULL", 7),
    ("SELECT count(*), min(id), max(i) FROM {t} WHERE nothing IS NULL", 0),
    ("SELECT count(*) FROM {t} WHERE nothing <=> NULL AND id > 79", 0),
    ("SELECT count(*) FROM {t} WHERE id > 0.5D", 1),
    ("SELECT count(*) FROM {t} WHERE id < 40 AND length(s) >= 0", 2),
    ("SELECT count(*) FROM {t} WHERE try_divide(1, id - 8) > -5 AND id < 40", 2),  # NULL if id is 8
    ("SELECT count(*) FROM {t} WHERE try_cast(s AS INT) <=> NULL AND id < 40", 2),
    ("SELECT count(*) FROM {t} WHERE NOT (try_divide(1, id - 8) <= -5) AND id < 40", 2),
    ("SELECT count(*) FROM (SELECT id AS a, i FROM {t} WHERE id > 19) WHERE a < 60", 0),
    ("SELECT max(a) FROM (SELECT id AS a, i FROM {t}) WHERE a < 60", 0),
    ("SELECT * FROM (SELECT max(id) AS m FROM {t}) JOIN (SELECT count(i) AS c FROM {t})", 0),
    ("SELECT count(*) FROM {t} UNION ALL SELECT max(id) FROM {t} WHERE id < 40", 16),  # merged
    ("SELECT (SELECT min(id) FROM {t}), (SELECT max(id) FROM {t})", 0),
    ("WITH c AS (SELECT count(*) AS n FROM {t}) SELECT a.n, b.n FROM c a JOIN c b", 0),
]  # fmt: skip

# Queries that do not use the index.
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


@pytest.fixture(scope="module", params=long(["parquet", "orc"], "parquet"))
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
    assert not loose, f"files read, and the expected maximum: {loose}"


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
        assert answered(whole.where("id < 40").groupBy().count()) == 0  # read from the cache
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
    assert "ZOrderAnswers [2 files answered from the index, 1 opened]" in text
    assert "1 of 8 files selected, 5 skipped, 0 unindexed, 2 answered from the index" in text


def test_an_other_time_zone_than_at_indexing(spark: SparkSession, relation: str) -> None:
    with settings(spark, spark__sql__session__timeZone="America/St_Johns"):
        for column in ("ts", "tn", "dt", "id"):
            same(spark, f"SELECT min({column}), max({column}), count({column}) FROM {relation}")
        same(spark, f"SELECT count(*) FROM {relation} WHERE ts < TIMESTAMP'1970-02-01 00:00:00'")


def test_the_strict_filter(spark: SparkSession, relation: str) -> None:
    predicates = [p for p, _ in PREDICATES]
    both = predicates + [f"NOT ({p})" for p in predicates]
    assert check_strict(spark, relation, both) > 100


@hypothesis_settings(
    max_examples=2, deadline=None, suppress_health_check=list(HealthCheck), derandomize=False
)
@given(st.lists(TREES, min_size=20, max_size=20))
def test_drawn_predicates(spark: SparkSession, relation: str, predicates: list[str]) -> None:
    check_strict(spark, relation, predicates)


def test_a_file_of_which_rows_may_be_left_out(spark: SparkSession, relation: str) -> None:
    with settings(spark, spark__sql__files__ignoreCorruptFiles="true"):
        assert answered(same(spark, f"SELECT count(*) FROM {relation}")) == 0
