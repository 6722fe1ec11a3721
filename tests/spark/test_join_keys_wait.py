"""Scans wait for join keys that are cheap to compute, even if the join is above a shuffle or a
broadcast, or if a broadcast is reused.

Three large tables, `sales`, `returns` and `web`, have one file for each of 20 days. `days` assigns
each day to a month. Each month has five days. Spark broadcasts `days` but none of the large tables.
Every file of the large tables contains all values of `spread`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyzorder
from tests.support.joins import (
    FACTS,
    broadcasting_only_days,
    checked,
    counts,
    fact_tables,
    rows,
    scans_of,
)
from tests.support.scans import settings

ALL = 20
MONTH = 5


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = Path(tmp_path_factory.mktemp("waiting"))
    with fact_tables(spark, folder, ["id AS l"], "CAST(id % 20 AS INT) AS spread"):
        yield folder


@pytest.fixture(params=[
    pytest.param("true", id="adaptive"),
    pytest.param("false", id="not adaptive", marks=pytest.mark.long),
])  # fmt: skip
def session(
    request: pytest.FixtureRequest, spark: SparkSession, tables: Path
) -> Iterator[SparkSession]:
    """A session that broadcasts only `days`, with and without adaptive execution."""
    with broadcasting_only_days(spark, request.param):
        yield spark


SOLD = "SELECT s.day, s.pad, r.q FROM sales s JOIN returns r ON s.ticket = r.ticket"
JULY = "(SELECT d, l FROM days WHERE month = 2)"


@dataclass(frozen=True)
class Case:
    """A query, and for each table, how many files each scan opens, in ascending order."""

    name: str
    sql: str
    sales: tuple[int, ...] = (MONTH,)
    returns: tuple[int, ...] = ()
    web: tuple[int, ...] = ()


CASES = [
    Case("a broadcast above a shuffle", f"{SOLD} JOIN {JULY} ON s.day = d", returns=(ALL,)),
    Case("IN above a shuffle", f"{SOLD} WHERE s.day IN (SELECT d FROM {JULY})", returns=(ALL,)),
    Case("EXISTS above a shuffle",
         f"{SOLD} WHERE EXISTS (SELECT 1 FROM {JULY} WHERE d = s.day)", returns=(ALL,)),
    Case("a dimension filtered by a scalar subquery",
         f"{SOLD} JOIN days ON s.day = d WHERE month = (SELECT max(month) - 1 FROM days)", returns=(ALL,)),
    Case("a key widened by a cast", f"{SOLD} JOIN {JULY} ON s.day = l", returns=(ALL,)),
    Case("rows listed in the query", f"{SOLD} JOIN (VALUES (3), (7)) AS v (d) ON s.day = d",
         sales=(2,), returns=(ALL,)),
    Case("below a left outer join", f"""
        SELECT s.day, r.q FROM sales s LEFT JOIN returns r ON s.ticket = r.ticket
        JOIN {JULY} ON s.day = d""", returns=(ALL,)),
    Case("a union below a shuffle", f"""
        SELECT s.day, r.q FROM (SELECT * FROM sales UNION ALL SELECT * FROM web) s
        JOIN returns r ON s.ticket = r.ticket JOIN {JULY} ON s.day = d""", returns=(ALL,), web=(MONTH,)),
    Case("an aggregate by the key below a shuffle", f"""
        SELECT s.day, v, r.pad FROM (SELECT day, ticket, sum(q) AS v FROM sales GROUP BY day, ticket) s
        JOIN returns r ON s.ticket = r.ticket JOIN {JULY} ON s.day = d""", returns=(ALL,)),
    Case("a reused broadcast in a subquery", f"""
        SELECT count(*) FROM sales JOIN {JULY} ON day = d
        WHERE q > (SELECT avg(q) FROM web JOIN {JULY} ON day = d)""", web=(MONTH,)),
    Case("the broadcast side of another join", f"""
        SELECT /*+ BROADCAST(s) */ r.q, s.pad FROM returns r JOIN sales s ON s.ticket = r.ticket
        JOIN {JULY} ON s.day = d""", returns=(ALL,)),
    Case("from one fact to the other", f"""
        SELECT s.ticket, w.pad FROM sales s JOIN web w ON s.day = w.day AND s.ticket = w.ticket
        JOIN {JULY} ON s.day = d""", web=(MONTH,)),
    Case("to the rows that a left outer join adds", f"""
        SELECT s.ticket, w.pad FROM sales s LEFT JOIN web w ON s.day = w.day AND s.ticket = w.ticket
        JOIN {JULY} ON s.day = d""", web=(MONTH,)),
    Case("to the right side of a semi join", f"""
        SELECT s.ticket FROM sales s LEFT SEMI JOIN web w ON s.day = w.day AND s.ticket = w.ticket
        JOIN {JULY} ON s.day = d""", web=(MONTH,)),
    Case("to the right side of an anti join", f"""
        SELECT s.ticket FROM sales s LEFT ANTI JOIN web w ON s.day = w.day AND s.ticket = w.ticket
        JOIN {JULY} ON s.day = d""", web=(MONTH,)),
    Case("to the right side of an existence join", f"""
        SELECT s.ticket FROM sales s JOIN {JULY} ON s.day = d WHERE s.q < 3
        OR EXISTS (SELECT 1 FROM web w WHERE s.day = w.day AND s.ticket = w.ticket)""", web=(MONTH,)),
    # Keys that come from a broadcast on the other side of a join.
    Case("to the broadcast side", f"""
        SELECT /*+ BROADCAST(w) */ s.q, w.pad FROM sales s JOIN {JULY} ON s.day = d
        JOIN web w ON w.day = s.day AND w.ticket = s.ticket""", web=(MONTH,)),
    Case("to the broadcast side of a left outer join", f"""
        SELECT /*+ BROADCAST(w) */ s.q, w.pad FROM sales s JOIN {JULY} ON s.day = d
        LEFT JOIN web w ON w.day = s.day AND w.ticket = s.ticket""", web=(MONTH,)),
    Case("to the broadcast side of an anti join", f"""
        SELECT /*+ BROADCAST(w) */ s.q FROM sales s JOIN {JULY} ON s.day = d
        LEFT ANTI JOIN web w ON w.day = s.day AND w.ticket = s.ticket""", web=(MONTH,)),
    Case("to the other side of a sort-merge join", f"""
        SELECT s.q, w.pad FROM (SELECT s.day, s.ticket, s.q FROM sales s JOIN {JULY} ON s.day = d) s
        JOIN web w ON w.day = s.day AND w.ticket = s.ticket""", web=(MONTH,)),
    Case("from a grouped side", f"""
        SELECT s.t, w.pad FROM (SELECT day, max(ticket) AS t FROM sales JOIN {JULY} ON day = d GROUP BY day) s
        JOIN web w ON w.day = s.day AND w.ticket = s.t""", web=(MONTH,)),
    Case("a function of the key", f"""
        SELECT s.q, w.pad FROM (SELECT d + 1 AS e, s.ticket, s.q FROM sales s JOIN {JULY} ON s.day = d) s
        JOIN web w ON w.day = s.e AND w.ticket = s.ticket""", web=(MONTH,)),
    Case("a key that is null in rows without a match", f"""
        SELECT s.q, w.pad FROM (SELECT d, s.ticket, s.q FROM sales s LEFT JOIN {JULY} ON s.day = d) s
        LEFT JOIN web w ON w.day = s.d AND w.ticket = s.ticket""", sales=(ALL,), web=(MONTH,)),
    Case("not a key that rows without a match keep", f"""
        SELECT s.q, w.pad FROM (SELECT s.day, s.ticket, s.q FROM sales s LEFT JOIN {JULY} ON s.day = d) s
        JOIN web w ON w.day = s.day AND w.ticket = s.ticket""", sales=(ALL,), web=(ALL,)),
    Case("not to a side whose unmatched rows are kept", f"""
        SELECT /*+ BROADCAST(s) */ s.q, w.pad FROM web w
        LEFT JOIN (SELECT s.day, s.ticket, s.q FROM sales s JOIN {JULY} ON s.day = d) s
        ON w.day = s.day AND w.ticket = s.ticket""", web=(ALL,)),
    # Keys that restrict the rows of a broadcast, and thereby the keys that it provides.
    Case("a dimension restricted by another one", """
        SELECT s.q FROM sales s JOIN days ON s.day = d JOIN (VALUES (2), (9)) AS v (m) ON month = m"""),
    Case("a dimension restricted by another one above a shuffle", """
        SELECT s.day, s.v, e.l FROM (SELECT month, day, sum(q) AS v FROM sales JOIN days ON day = d
        GROUP BY month, day) s JOIN (SELECT * FROM days WHERE l = 11) e ON s.month = e.month"""),
    Case("a dimension restricted by a dimension of the other side", """
        SELECT s.q, w.pad FROM sales s JOIN (SELECT * FROM days WHERE month = 2) a ON s.day = a.d
        JOIN web w ON s.ticket = w.ticket JOIN days b ON w.day = b.d AND a.month = b.month""",
         web=(MONTH,)),
    Case("not a dimension whose rows are kept without a match", """
        SELECT s.q FROM sales s LEFT JOIN (SELECT d, month FROM days JOIN (VALUES (2)) AS v (m) ON month = m)
        ON s.day = d""", sales=(ALL,)),
    # Equal exchanges. Only one of them is executed, so it uses the keys of all joins above them.
    Case("the keys of both references to a CTE", f"""
        WITH s AS (SELECT day, sum(q) AS v FROM sales GROUP BY day)
        SELECT a.v, b.v FROM s a JOIN {JULY} ON a.day = d
        JOIN (SELECT s.* FROM s JOIN days ON day = d WHERE month = 3) b ON a.day = b.day - 5""",
         sales=(2 * MONTH,)),
    Case("the keys of both references to a CTE restrict a dimension", """
        WITH s AS (SELECT month, day, sum(q) AS v FROM sales JOIN days ON day = d GROUP BY month, day)
        SELECT a.v, b.v FROM s a JOIN (VALUES (1)) AS x (m) ON a.month = m
        JOIN (SELECT s.* FROM s JOIN (VALUES (3), (9)) AS y (m) ON month = m) b ON a.day = b.day - 10""",
         sales=(2 * MONTH,)),
    # Cases in which all files must be read.
    Case("not to the right side of NOT IN", f"""
        SELECT s.ticket FROM sales s JOIN {JULY} ON s.day = d
        WHERE (s.day, s.ticket) NOT IN (SELECT day, ticket FROM web)""", web=(ALL,)),
    Case("not below a limit", f"""
        SELECT s.day, r.q FROM (SELECT * FROM sales LIMIT 10000) s
        JOIN returns r ON s.ticket = r.ticket JOIN {JULY} ON s.day = d""", sales=(ALL,), returns=(ALL,)),
    Case("not below a window", f"""
        SELECT s.rk, r.q FROM (SELECT day, ticket, rank() OVER (ORDER BY ticket) AS rk FROM sales) s
        JOIN returns r ON s.ticket = r.ticket JOIN {JULY} ON s.day = d""", sales=(ALL,), returns=(ALL,)),
    Case("not where a full outer join keeps all rows", f"""
        SELECT s.day, r.q FROM sales s FULL JOIN returns r ON s.ticket = r.ticket
        LEFT SEMI JOIN {JULY} ON coalesce(s.day, r.day) = d""", sales=(ALL,), returns=(ALL,)),
    Case("not for null-safe keys", f"{SOLD} JOIN {JULY} ON s.day <=> d", sales=(ALL,), returns=(ALL,)),
    # Cases in which waiting for keys does not pay off.
    Case("a dimension without a condition", f"{SOLD} JOIN days ON s.day = d", sales=(ALL,), returns=(ALL,)),
    Case("a dimension that is not repeatable", f"""
        {SOLD} JOIN (SELECT d FROM days WHERE month = 2 LIMIT 3) ON s.day = d""",
         sales=(ALL,), returns=(ALL,)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_opened(session: SparkSession, case: Case) -> None:
    df = checked(session, case.sql)
    assert {t: counts(df, t) for t in FACTS} == {
        "sales": case.sales, "returns": case.returns, "web": case.web
    }  # fmt: skip


def test_equal_exchanges_with_equal_keys_are_executed_once(session: SparkSession) -> None:
    side = f"SELECT s.day, s.ticket FROM sales s JOIN returns r ON s.ticket = r.ticket JOIN {JULY} ON s.day = d"
    df = checked(session, f"SELECT day, count(*) FROM ({side} UNION ALL {side}) GROUP BY day")
    assert (counts(df, "sales"), counts(df, "returns")) == ((MONTH,), (ALL,))


def test_equal_exchanges_with_other_keys_are_still_executed_once(session: SparkSession) -> None:
    side = "SELECT s.day, s.ticket FROM sales s JOIN returns r ON s.ticket = r.ticket"
    df = checked(
        session, f"{side} JOIN {JULY} ON s.day = d UNION ALL {side} WHERE s.day IS NOT NULL"
    )
    assert (counts(df, "sales"), counts(df, "returns")) == ((ALL,), (ALL,))


def test_an_exchange_that_a_subquery_also_needs_is_executed_once(session: SparkSession) -> None:
    """The subquery reads all of `sales`, so keys would only prevent the query from reusing that."""
    both = "(SELECT s.day, r.q FROM sales s JOIN returns r ON s.ticket = r.ticket WHERE s.day IS NOT NULL)"
    df = checked(
        session,
        f"SELECT x.q FROM {both} x JOIN {JULY} ON x.day = d WHERE x.q > (SELECT avg(day) FROM {both})",
    )
    assert counts(df, "sales") == (ALL,)


def test_no_broadcast_is_executed_twice(session: SparkSession) -> None:
    df = checked(session, f"{SOLD} JOIN {JULY} ON s.day = d")
    assert len(scans_of(df, "days")) == 1


def test_many_rows_with_the_same_key(session: SparkSession) -> None:
    """Collecting the values of another column takes time linear in the number of rows."""
    side = "(SELECT concat('x', 7 + id DIV 1000000) AS s, CAST(id % 5 + 10 AS INT) AS d FROM range(200000) WHERE id >= 0)"
    df = session.sql(f"""
        SELECT count(*) FROM (SELECT /*+ BROADCAST(b) */ b.d FROM sales s JOIN {side} b
        ON concat('x', s.ticket) = b.s) q JOIN web w ON w.day = q.d""")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(df.collect)
        try:
            running.result(timeout=90)
        finally:
            session.sparkContext.cancelAllJobs()
    assert counts(df, "web") == (MONTH,)


def test_the_keys_of_a_large_table_without_a_condition_are_not_collected(
    session: SparkSession,
) -> None:
    side = "(SELECT CAST(id AS INT) AS d, uuid() AS u FROM range({0}))"
    sql = f"SELECT /*+ BROADCAST(b) */ s.q FROM sales s JOIN {side} b ON s.day = b.d"
    few, many = (session.sql(sql.format(n)) for n in (MONTH, 20000))
    assert (len(few.collect()), len(many.collect())) == (100, 400)
    assert counts(few, "sales") == (MONTH,) and counts(many, "sales") == (ALL,)
    assert any("too many rows to collect its keys" in reason for reason in reasons(many)), reasons(
        many
    )


def test_many_keys_that_all_files_may_contain_are_not_collected(session: SparkSession) -> None:
    side = "(SELECT CAST(id AS INT) AS d FROM range({0}) WHERE id % 20 < 5)"
    sql = f"SELECT /*+ BROADCAST(b) */ s.q FROM sales s JOIN {side} b ON s.{{1}} = b.d"
    used = {}
    for column, number in [("day", 60000), ("spread", 60000), ("spread", 20)]:
        df = checked(session, sql.format(number, column))
        used[column, number] = bool(scans_of(df, "sales")[0]["joinKeys"])
    assert used == {("day", 60000): True, ("spread", 60000): False, ("spread", 20): True}


def test_keys_of_a_table_whose_index_is_too_large_for_the_driver(session: SparkSession) -> None:
    """Its statistics are not known during planning, but a Spark job finds the files to skip."""
    with settings(session, spark__sql__zorder__index__driverLimit="1"):
        df = checked(session, f"{SOLD} JOIN {JULY} ON s.day = d")
        assert counts(df, "sales") == (MONTH,)


def test_without_reuse_no_keys_are_used(session: SparkSession) -> None:
    with settings(session, spark__sql__exchange__reuse="false"):
        df = checked(session, f"{SOLD} JOIN {JULY} ON s.day = d")
        assert counts(df, "sales") == (ALL,)
        assert "not usable: join key day (spark.sql.exchange.reuse is false)" in reasons(df)


def test_a_plan_from_before_reuse_was_switched_off(session: SparkSession) -> None:
    df = session.sql(f"{SOLD} JOIN {JULY} ON s.day = d")
    df._jdf.queryExecution().executedPlan()
    with settings(session, spark__sql__exchange__reuse="false"):
        found = rows(df)
    assert found == rows(checked(session, f"{SOLD} JOIN {JULY} ON s.day = d"))


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (f"{SOLD} JOIN days ON s.day = d",
         "the scan starts before the key is known, and does not wait for it: the other side is not "
         "cheap, because it has no condition"),
        (f"{SOLD} JOIN (SELECT d FROM days WHERE month = 2 LIMIT 3) ON s.day = d",
         "the scan starts before the key is known, and does not wait for it: the other side is not "
         "cheap, because the rows of its GlobalLimit may differ each time it is executed"),
        (f"{SOLD} JOIN (SELECT d FROM days WHERE month = 2 GROUP BY d) ON s.day = d",
         "the scan starts before the key is known, and does not wait for it: the other side is not "
         "cheap, because it needs a shuffle or waits for keys itself"),
        (f"{SOLD} JOIN {JULY} ON s.spread = d",
         "the scan starts before the key is known, and does not wait for it: almost all files may "
         "contain any of its values"),
        ("SELECT rk FROM (SELECT *, rank() OVER (ORDER BY ticket) AS rk FROM sales) s JOIN days "
         "ON s.day = d WHERE month = 2", "the scan is below Window, which needs all rows"),
        (f"SELECT s.q FROM (SELECT day, q, rand(1) AS r FROM sales) s JOIN {JULY} ON s.day = d WHERE r >= 0",
         "the scan is below rand(1) AS r, which is not deterministic"),
        ("SELECT /*+ MERGE(e) */ s.q FROM sales s JOIN (SELECT d FROM days WHERE rand(1) < 0.9) e ON s.day = d",
         "both sides are read before any key is known, and the other side's key is neither in an index "
         "nor cheap to compute, because the rows of its Filter may differ each time it is executed"),
    ],
)  # fmt: skip
def test_explain_says_why_keys_were_not_used(session: SparkSession, sql: str, reason: str) -> None:
    df = session.sql(sql)
    df.collect()
    key = "spread" if "spread" in sql else "day"
    assert f"not usable: join key {key} ({reason})" in reasons(df)


def test_explain_before_the_query_runs(session: SparkSession) -> None:
    df = session.sql(f"{SOLD} JOIN {JULY} ON s.day = d")
    assert counts(df, "sales") == (ALL,)
    assert len(scans_of(df, "days")) == 1, "the copy below the scan is not listed"
    assert "not usable: join key day (known only after the query has run)" in reasons(df)
    df.collect()
    assert counts(df, "sales") == (MONTH,)
    assert not any("not usable: join key day" in reason for reason in reasons(df))
    ((keys,),) = [scan["joinKeys"] for scan in scans_of(df, "sales")]
    assert re.fullmatch(r"days\.d \(5 values after \d+ ms\)", keys)


def test_explain_names_the_tables_whose_scans_were_removed(session: SparkSession) -> None:
    df = session.sql(f"{SOLD} JOIN (SELECT d FROM days WHERE month = 99) ON s.day = d")
    assert pyzorder.explain(df).removed == ()
    df.collect()
    explanation = pyzorder.explain(df)
    if session.conf.get("spark.sql.adaptive.enabled") == "true":
        assert "sales" in explanation.removed and "sales: no details" in str(explanation)
    else:
        assert explanation.removed == () and counts(df, "sales") == (0,)


@pytest.mark.parametrize("sql", [
    "SELECT count(*), max(day) FROM sales",
    "SELECT DISTINCT day FROM sales",
    "SELECT day, count(*) FROM sales GROUP BY day",
])  # fmt: skip
def test_tables_that_the_index_answers_for_do_not_count_as_removed(
    session: SparkSession, sql: str
) -> None:
    df = session.sql(sql)
    df.collect()
    assert pyzorder.explain(df).removed == ()


def reasons(df: DataFrame) -> list[str]:
    """The reasons why conditions skip no files of `sales`."""
    return [reason for scan in scans_of(df, "sales") for reason in scan["reasons"]]
