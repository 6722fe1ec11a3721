"""Queries with LIMIT n, with or without ORDER BY c, return the right rows and open few files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.spark.test_pruning import COLUMNS, FILES, ROWS, _split
from tests.support.indexes import build
from tests.support.metadata_only import view, write
from tests.support.sampled import long
from tests.support.scans import opened, plain, settings, some

FORMATS = pytest.mark.parametrize("fmt", long(["parquet", "orc"], "parquet"))

# (query on {t}, how many files it may open). {t} has 8 files of 20 rows each, with COLUMNS from
# test_pruning.py. Most columns are null in the last row of each file and in all rows of file 6.
ORDERED = [
    ("SELECT id FROM {t} ORDER BY id LIMIT 5", 1),
    ("SELECT id, i FROM {t} ORDER BY id DESC LIMIT 25", 2),
    ("SELECT id FROM {t} ORDER BY id LIMIT 20", 1),
    ("SELECT id FROM {t} ORDER BY id LIMIT 21", 2),
    ("SELECT id FROM {t} ORDER BY id LIMIT 160", 8),
    ("SELECT id FROM {t} ORDER BY id LIMIT 1000", 8),
    ("SELECT id FROM {t} ORDER BY id, s DESC LIMIT 5", 1),
    ("SELECT s FROM {t} ORDER BY id LIMIT 5", 1),
    ("SELECT a FROM (SELECT id AS a, s FROM {t}) ORDER BY a LIMIT 5", 1),
    ("SELECT id + 1 FROM {t} ORDER BY id LIMIT 5", 1),
    ("SELECT i FROM {t} ORDER BY i NULLS LAST LIMIT 5", 1),
    ("SELECT i FROM {t} ORDER BY i DESC LIMIT 5", 1),
    ("SELECT i FROM {t} ORDER BY i NULLS LAST LIMIT 20", 2),
    ("SELECT i FROM {t} ORDER BY i LIMIT 27", 8),  # the 27 nulls (7 + 20) come first
    ("SELECT i FROM {t} ORDER BY i LIMIT 28", 8),
    ("SELECT i FROM {t} ORDER BY i DESC NULLS FIRST LIMIT 5", 8),
    ("SELECT i FROM {t} ORDER BY i DESC LIMIT 140", 8),
    ("SELECT nothing FROM {t} ORDER BY nothing LIMIT 5", 8),
    ("SELECT st.a FROM {t} ORDER BY st.a DESC LIMIT 3", 1),
    ("SELECT s FROM {t} ORDER BY s DESC LIMIT 5", 1),
    ("SELECT s FROM {t} ORDER BY s NULLS LAST LIMIT 5", 1),
    ("SELECT dt, ts FROM {t} ORDER BY ts DESC LIMIT 5", 1),
    ("SELECT dt FROM {t} ORDER BY dt DESC LIMIT 5", 1),
    ("SELECT n, w FROM {t} ORDER BY w DESC LIMIT 5", 1),
    ("SELECT d FROM {t} ORDER BY d NULLS LAST LIMIT 5", 1),
    ("SELECT d FROM {t} ORDER BY d DESC LIMIT 5", 3),  # two files contain NaN
    ("SELECT f FROM {t} ORDER BY f DESC LIMIT 5", 2),
    ("SELECT id FROM {t} WHERE id >= 40 ORDER BY id LIMIT 5", 1),
    ("SELECT id FROM {t} WHERE id >= 45 ORDER BY id LIMIT 5", 2),  # not all rows of file 2 match
    ("SELECT id FROM {t} WHERE id >= 45 ORDER BY id LIMIT 25", 3),
    ("SELECT id FROM {t} WHERE i IS NOT NULL ORDER BY id LIMIT 5", 7),
    ("SELECT id FROM {t} WHERE length(s) > 1 ORDER BY id LIMIT 5", 8),
    ("SELECT id FROM {t} WHERE id > 1000 ORDER BY id LIMIT 5", 0),
    ("SELECT a.id FROM (SELECT id FROM {t} ORDER BY id LIMIT 5) a JOIN (SELECT id FROM {t} "
     "ORDER BY id DESC LIMIT 158) b ON a.id = b.id", 8),
    ("SELECT (SELECT max(id) FROM (SELECT id FROM {t} ORDER BY id LIMIT 3)), "
     "(SELECT max(id) FROM (SELECT id FROM {t} ORDER BY id LIMIT 30))", 2),
    ("SELECT id FROM {t} ORDER BY -id LIMIT 5", 8),
    ("SELECT id FROM {t} ORDER BY rand() LIMIT 0", 8),
    ("SELECT id FROM {t} ORDER BY id LIMIT 5 OFFSET 30", 8),
    ("SELECT id FROM {t} TABLESAMPLE (100 PERCENT) ORDER BY id LIMIT 5", 8),
    ("SELECT id FROM {t} WHERE id IN (SELECT id + 100 FROM {t}) ORDER BY id LIMIT 5", 8),
]  # fmt: skip

# (query without the limit, limit, how many files it may open)
UNORDERED = [
    ("SELECT id FROM {t}", 5, 1),
    ("SELECT id, s, d FROM {t}", 25, 2),
    ("SELECT id FROM {t} WHERE id >= 40", 5, 1),
    ("SELECT id FROM {t} WHERE id >= 45", 5, 1),
    ("SELECT id FROM {t} WHERE id >= 45 AND id < 60", 5, 1),
    ("SELECT id FROM {t} WHERE length(s) > 1", 5, 8),
    ("SELECT id FROM {t}", 1000, 8),
    ("SELECT id FROM {t} WHERE id > 1000", 5, 0),
    ("SELECT nothing FROM {t} WHERE nothing IS NULL", 5, 1),
]


@pytest.fixture(scope="module", params=long(["parquet", "orc"], "parquet"))
def relation(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> str:
    fmt = str(request.param)
    path = Path(tmp_path_factory.mktemp("top_n")) / fmt
    spark.range(0, FILES * ROWS, 1, FILES).selectExpr(*_split(COLUMNS)).write.format(fmt).save(
        str(path)
    )
    build(spark, path, fmt)
    return view(spark, path, fmt, f"top_n_{fmt}")


def same_order(spark: SparkSession, query: str) -> int:
    """Asserts that the rows and their order are the same as in plain Spark. Returns how many files
    are opened."""
    with plain(spark):
        expected = repr(spark.sql(query).collect())
    assert repr(spark.sql(query).collect()) == expected, query
    return len(opened(spark.sql(query)))


def test_the_first_rows(spark: SparkSession, relation: str) -> None:
    loose = {}
    for query, most in some(ORDERED, relation):
        count = same_order(spark, query.format(t=relation))
        if count > most:
            loose[query] = (count, most)
    assert not loose, f"files opened, and the expected maximum: {loose}"


def test_any_rows(spark: SparkSession, relation: str) -> None:
    loose = {}
    for query, limit, most in UNORDERED:
        limited = spark.sql(f"{query} LIMIT {limit}".format(t=relation))
        with plain(spark):
            everything = [repr(r) for r in spark.sql(query.format(t=relation)).collect()]
        rows = [repr(r) for r in limited.collect()]
        assert len(rows) == min(limit, len(everything)), query
        for row in rows:
            everything.remove(row)
        for df in (limited, limited.groupBy().count()):
            if len(opened(df)) > most:
                loose[query] = (len(opened(df)), most)
        assert limited.count() == len(rows)
    assert not loose, f"files opened, and the expected maximum: {loose}"


def test_limits_below_unions_and_joins(spark: SparkSession, relation: str) -> None:
    for query in (
        "SELECT count(*) FROM (SELECT id FROM {t} UNION ALL SELECT i FROM {t} LIMIT 200)",
        "SELECT count(*) FROM (SELECT a.id FROM {t} a LEFT JOIN {t} b ON a.id = b.id LIMIT 30)",
        "SELECT count(*) FROM (SELECT id FROM {t} LIMIT 30 OFFSET 20)",
        "SELECT count(*) FROM (SELECT id FROM {t} LIMIT 30) WHERE id >= 0",
        "SELECT EXISTS (SELECT 1 FROM {t} WHERE id >= 140)",
        "SELECT EXISTS (SELECT 1 FROM {t} WHERE id >= 1140)",
    ):
        same_order(spark, query.format(t=relation))


def test_off_means_off(spark: SparkSession, relation: str) -> None:
    with plain(spark):
        assert len(opened(spark.sql(f"SELECT id FROM {relation} ORDER BY id LIMIT 5"))) == FILES
        assert len(opened(spark.sql(f"SELECT id FROM {relation} LIMIT 5"))) == FILES


@pytest.mark.parametrize("aqe", ["true", "false"])
def test_equal_scans_of_other_limits(spark: SparkSession, relation: str, aqe: str) -> None:
    with settings(spark, spark__sql__adaptive__enabled=aqe):
        parts = " UNION ALL ".join(
            f"SELECT * FROM (SELECT max(id) FROM (SELECT id FROM {relation} ORDER BY id "
            f"{way} LIMIT {n}))"
            for way in ("ASC", "DESC")
            for n in (1, 30, 100)
        )
        same_order(spark, parts)


def test_a_limit_that_falls_back_to_a_sort(spark: SparkSession, relation: str) -> None:
    with settings(spark, spark__sql__execution__topKSortFallbackThreshold="3"):
        same_order(spark, f"SELECT id FROM {relation} ORDER BY id LIMIT 5")


def test_an_other_time_zone_than_at_indexing(spark: SparkSession, relation: str) -> None:
    with settings(spark, spark__sql__session__timeZone="America/St_Johns"):
        for order in ("ts", "ts DESC", "tn DESC", "dt"):
            same_order(spark, f"SELECT ts, tn, dt FROM {relation} ORDER BY {order} LIMIT 8")


VALUES = st.lists(
    st.sampled_from(["NULL", "-1", "0.0", "-0.0", "1", "2", "3", "double('NaN')"]),
    min_size=1,
    max_size=4,
)
ORDERS = st.tuples(
    st.sampled_from(["x", "y"]),
    st.sampled_from(["ASC", "DESC"]),
    st.sampled_from(["", "NULLS FIRST", "NULLS LAST"]),
    st.integers(1, 9),
    st.sampled_from(["true", "x > 0D", "x IS NOT NULL", "x IS NULL", "x <= 2D", "NOT isnan(x)"]),
)


@FORMATS
@hypothesis_settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(VALUES, min_size=5, max_size=5), st.lists(ORDERS, min_size=12, max_size=12))
def test_drawn_values(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    fmt: str,
    files: list[list[str]],
    orders: list[tuple[str, str, str, int, str]],
) -> None:
    path = Path(tmp_path_factory.mktemp("drawn")) / "t"
    write(spark, path, fmt, *[
        "SELECT CAST(x AS DOUBLE) AS x, CAST(if(isnan(x), 7, x) AS INT) AS y "
        f"FROM VALUES {', '.join(f'({v})' for v in values)} AS t(x)"
        for values in files
    ])  # fmt: skip
    build(spark, path, fmt)
    relation = view(spark, path, fmt, "drawn_orders")
    for column, way, nulls, limit, predicate in orders:
        # The order of -0.0 and 0.0 is not specified.
        same_order(
            spark,
            f"SELECT {column} + 0 AS v FROM (SELECT {column} FROM {relation} WHERE {predicate} "
            f"ORDER BY {column} {way} {nulls} LIMIT {limit}) ORDER BY {column} {way} {nulls}",
        )


@FORMATS
def test_files_changed_after_planning(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    path, other = tmp_path / "t", tmp_path / "u"
    spark.range(0, 40, 1, 4).write.format(fmt).save(str(path))
    spark.range(-50, 0, 1, 1).write.format(fmt).save(str(other))
    (new,) = other.glob(f"part-*.{fmt}")
    build(spark, path, fmt)
    held = view(spark, path, fmt, "held_order")
    query = f"SELECT id FROM {held} ORDER BY id LIMIT 5"
    assert len(opened(spark.sql(query))) == 1
    planned = spark.sql(query)
    planned.explain()
    for crc in path.glob(".*.crc"):
        crc.unlink()
    shutil.copy(new, sorted(path.glob("part-00003-*"))[0])
    assert [r.id for r in planned.collect()] == [-50, -49, -48, -47, -46]
    assert same_order(spark, query) == 2
    shutil.copy(new, sorted(path.glob("part-00000-*"))[0])
    assert [r.id for r in spark.sql(query).collect()] == [-50, -50, -49, -49, -48]
    shutil.copy(new, path / f"part-foreign.{fmt}")
    fresh = view(spark, path, fmt, "fresh_order")
    assert same_order(spark, f"SELECT id FROM {fresh} ORDER BY id LIMIT 5") == 4
    assert spark.sql(f"SELECT id FROM {fresh} LIMIT 500").count() == 170
