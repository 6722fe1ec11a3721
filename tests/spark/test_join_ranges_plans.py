"""Ranges of join keys add little work to a plan: equal exchanges stay equal, and each scan in a
plan is evaluated only once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from tests.support.join_ranges import ALL, NAMES, SOME, without_broadcasts, written
from tests.support.joins import checked, counts, scans_of


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = Path(tmp_path_factory.mktemp("ranges"))
    with written(spark, folder):
        yield folder


@pytest.fixture(params=["true", "false"], ids=["adaptive", "not adaptive"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """A session without broadcasts, with and without adaptive execution."""
    with without_broadcasts(spark, request.param):
        yield spark


def test_equal_exchanges_are_still_executed_once(session: SparkSession, tables: Path) -> None:
    """A range is not used if it would make two equal exchanges differ."""
    side = "(SELECT k, m, s FROM b DISTRIBUTE BY k)"
    df = checked(
        session,
        f"SELECT q.k, x.m FROM {SOME} q JOIN {side} x ON q.k = x.k"
        f" UNION ALL SELECT q.k, x.m FROM {SOME} q JOIN {side} x ON q.m = x.k",
    )
    assert len(counts(df, "b")) <= 2


#: The rows of `b` whose key is not null, grouped by the key.
GROUPS = "(SELECT k, sum(m) AS v FROM b WHERE k IS NOT NULL GROUP BY k)"


def test_a_subquery_of_the_same_table(session: SparkSession, tables: Path) -> None:
    """Spark executes the subquery GROUPS only once. If ranges were used, it would execute
    GROUPS twice."""
    sql = f"SELECT q.k FROM {SOME} q JOIN {GROUPS} r ON q.k = r.k WHERE v > (SELECT avg(v) FROM {GROUPS})"
    df = checked(session, sql)
    assert set(counts(df, "b")) == {ALL}


def test_a_subquery_that_prunes_partitions(session: SparkSession, tables: Path) -> None:
    """Spark plans a broadcast twice: once for the join, and once to prune the partitions of the
    other side. If the two plans had different ranges, Spark would either not prune partitions or
    execute the join twice."""
    session.range(0, 400, 1, 2).selectExpr("id AS l", "CAST(id DIV 20 AS INT) AS p").write.mode(
        "overwrite"
    ).partitionBy("p").saveAsTable("parted")
    side = "(SELECT /*+ MERGE(x) */ x.k, x.part FROM a x JOIN b y ON x.k = y.k WHERE x.l < 19)"
    df = checked(
        session,
        f"SELECT /*+ BROADCAST(d), MERGE(z) */ f.l FROM parted f JOIN {side} d ON f.p = d.part"
        " LEFT JOIN (SELECT k, m FROM b WHERE k IS NOT NULL) z ON z.k = f.l",
    )
    plan = df._jdf.queryExecution().executedPlan().toString()
    assert "dynamicpruning" in plan and "dynamicpruningexpression(true)" not in plan
    assert set(counts(df, "b")) == {ALL}
    session.sql("DROP TABLE parted")


def test_explain_says_that_a_subquery_reads_the_table(session: SparkSession, tables: Path) -> None:
    df = checked(
        session,
        f"SELECT q.k FROM {SOME} q JOIN b ON q.k = b.k WHERE b.m > (SELECT avg(m) FROM b)",
    )
    assert counts(df, "b") == (ALL, ALL)
    reasons = [reason for scan in scans_of(df, "b") for reason in scan["reasons"]]
    assert any(
        "a subquery of the query or of Spark may read the same table" in reason
        for reason in reasons
    )


@pytest.mark.parametrize(
    "sql",
    [
        f"""
        WITH q AS (SELECT b.k, random_value(b.k) AS r FROM b JOIN {SOME} a ON a.k = b.k)
        SELECT q.k FROM q LEFT JOIN (SELECT k FROM b) z ON z.k = q.k
        WHERE q.r = (SELECT max(r) FROM q)""",
        f"""
        WITH q AS (SELECT b.k, c.r FROM b JOIN (SELECT k, random_value(k) AS r FROM c) c ON b.k = c.k)
        SELECT q.k FROM {SOME} a JOIN q ON a.k = q.k
        WHERE q.r = (SELECT max(r) FROM q WHERE k < 60)""",
    ],
    ids=["beside a scan of the same table", "below another join"],
)  # fmt: skip
def test_random_rows_are_the_same_in_a_subquery(
    session: SparkSession, tables: Path, sql: str
) -> None:
    """The query and its subquery share one execution of the CTE."""
    value = udf(lambda _: random.random(), "double").asNondeterministic()
    session.udf.register("random_value", value)
    assert len(session.sql(sql).collect()) == 1


def evaluations(df: DataFrame) -> int:
    """How many times scans have been evaluated against the index to find ranges of keys."""
    plan = df._jdf.queryExecution().executedPlan()
    if plan.nodeName() == "AdaptiveSparkPlan":
        plan = plan.initialPlan()
    index = plan.collectLeaves().apply(0).relation().location()
    return int(index.plan().files().evaluations())


@pytest.mark.parametrize("of", ["t0", "t{before}"], ids=["star", "chain"])
def test_each_scan_is_evaluated_once(session: SparkSession, tables: Path, of: str) -> None:
    """The number of evaluations grows with the number of tables, not with the number of pairs of
    tables."""
    for joins in (2, 4, 8):
        others = " ".join(
            f"JOIN {NAMES[i % 3]} t{i} ON {of.format(before=i - 1)}.k = t{i}.k AND t{i}.part <> {i}"
            for i in range(1, joins + 1)
        )
        df = session.sql(f"SELECT t0.k FROM a t0 {others} WHERE t0.part <> 0")
        assert evaluations(df) == joins + 1


def test_many_pairs_of_equal_keys(session: SparkSession, tables: Path) -> None:
    """A key is passed down only once, although it equals other keys in several ways. Otherwise,
    planning would take hours."""
    keys = " AND ".join(f"t{{}}.{a} = t{{}}.{b}" for a in "kl" for b in "kl")
    others = " ".join(
        f"JOIN {NAMES[i % 3]} t{i} ON {keys.format(*[i - 1, i] * 4)}" for i in range(1, 24)
    )
    df = session.sql(f"SELECT t0.k FROM {SOME} t0 {others}")
    planned = Thread(target=lambda: evaluations(df), daemon=True)
    planned.start()
    planned.join(timeout=240)
    assert not planned.is_alive()


def test_evaluations_while_the_query_runs(session: SparkSession, tables: Path) -> None:
    """When adaptive execution replans the rest of a query, scans are not evaluated again. However,
    they are evaluated again after their files have been pinned."""
    others = " ".join(f"JOIN b t{i} ON t0.k = t{i}.k AND t{i}.part <> {i}" for i in range(1, 6))
    df = session.sql(f"SELECT t0.k FROM a t0 {others} WHERE t0.part <> 0")
    df.collect()
    assert 6 < evaluations(df) <= 3 * 6
