"""Join keys may pass through operators that change their values.

`sales`, `returns` and `web` have one file for each of 20 days. `days` has one row per day, with the
month, a copy of the day in which some values are null, and a column that contains 'aa' or 'AA'.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.support.joins import broadcasting_only_days, checked, fact_tables, rows
from tests.support.scans import explain, plain, settings

JULY = "(SELECT * FROM days WHERE month = 2)"


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = Path(tmp_path_factory.mktemp("values"))
    days = ["CAST(IF(id % 4 = 1, NULL, id) AS INT) AS gn", "IF(id % 2 = 0, 'aa', 'AA') AS s"]
    nday = "CAST(IF(id % 40 = 3, NULL, id DIV 20) AS INT) AS nday"
    with fact_tables(spark, folder, days, nday):
        spark.sql("DROP SKIPPING INDEX ON sales")
        spark.sql("CREATE SKIPPING INDEX ON sales (day, ticket, q, nday, coalesce(nday, 7))")
        yield folder


@pytest.fixture(params=[
    pytest.param("true", id="adaptive"),
    pytest.param("false", id="not adaptive", marks=pytest.mark.long),
])  # fmt: skip
def session(
    request: pytest.FixtureRequest, spark: SparkSession, tables: Path
) -> Iterator[SparkSession]:
    with broadcasting_only_days(spark, request.param):
        yield spark


#: Keys that are not null in the rows that an outer join adds.
FILLED = [
    "coalesce(d, 7)",
    "CASE WHEN d IS NULL THEN 7 ELSE d END",
    "IF(d > 3, 11, 2)",
    "nvl2(d, d, 7)",
    "coalesce(d + 1, 3)",
]

#: Joins between the result of an outer join, {q}, and the table `web`.
OUTER = [
    "SELECT q.e, w.pad FROM ({q}) q JOIN web w ON w.day = q.e AND w.ticket = q.ticket",
    "SELECT q.e, w.pad FROM ({q}) q LEFT JOIN web w ON w.day = q.e AND w.ticket = q.ticket",
    "SELECT q.e FROM ({q}) q LEFT ANTI JOIN web w ON w.day = q.e",
    "SELECT q.e, w.pad FROM ({q}) q FULL JOIN web w ON w.day = q.e AND w.ticket = q.ticket",
]

LEFT = f"SELECT {{key}} AS e, s.ticket FROM sales s LEFT JOIN {JULY} j ON s.day = j.d"
RIGHT = f"SELECT {{key}} AS e, s.ticket FROM {JULY} j RIGHT JOIN sales s ON s.day = j.d"
FULL = f"SELECT {{key}} AS e, s.ticket FROM sales s FULL JOIN {JULY} j ON s.day = j.d"


@pytest.mark.parametrize("key", FILLED)
@pytest.mark.parametrize(
    "outer",
    [
        pytest.param(LEFT, id="left", marks=pytest.mark.long),
        pytest.param(RIGHT, id="right", marks=pytest.mark.long),
        pytest.param(FULL, id="full"),
    ],
)
def test_expressions_over_the_rows_that_an_outer_join_adds(
    session: SparkSession, key: str, outer: str
) -> None:
    for query in OUTER:
        checked(session, query.format(q=outer.format(key=key)))


def test_a_key_that_is_null_in_added_rows_still_skips_files(session: SparkSession) -> None:
    for key in ("d", "d + 0", "abs(d)"):
        df = checked(session, OUTER[0].format(q=LEFT.format(key=key)))
        [opened] = [len(s["opened"]) for s in explain(df) if s["table"] == "web"]
        assert opened == 5, key


#: Spark compares the columns of these set operations with `<=>`.
SETS = [
    f"SELECT j.d, s.q FROM sales s LEFT JOIN {JULY} j ON s.day = j.d {{}} "
    "SELECT y.gn, r.q FROM returns r JOIN days y ON r.day = y.d",
]


@pytest.mark.parametrize("operation", ["INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
def test_set_operations(session: SparkSession, operation: str) -> None:
    for query in SETS:
        checked(session, query.format(operation))


def test_null_safe_keys(session: SparkSession) -> None:
    checked(
        session,
        f"SELECT q.d, r.pad FROM (SELECT j.d, s.ticket FROM sales s LEFT JOIN {JULY} j ON s.day = j.d)"
        " q JOIN (SELECT y.gn, r.pad, r.ticket FROM returns r JOIN days y ON r.day = y.d) r"
        " ON q.d <=> r.gn AND q.ticket = r.ticket",
    )


@pytest.mark.parametrize("outer", ["LEFT", "FULL"])
@pytest.mark.parametrize("join", ["JOIN", "LEFT ANTI JOIN", "FULL JOIN"])
def test_indexed_expressions_over_added_rows(session: SparkSession, outer: str, join: str) -> None:
    """Rows without a match have the value 7, which is outside the ranges of the selected files."""
    columns = "r.e" if "ANTI" in join else "r.e, w.pad"
    with settings(session, spark__sql__autoBroadcastJoinThreshold="-1"):
        checked(
            session,
            f"SELECT {columns} FROM (SELECT coalesce(s.nday, 7) AS e FROM returns r {outer} JOIN "
            "(SELECT * FROM sales WHERE day IN (11, 13)) s ON r.ticket = s.ticket) r"
            f" {join} web w ON w.day = r.e",
        )


def test_two_keys_of_one_broadcast(session: SparkSession) -> None:
    """The branches of the union use different columns of equal broadcasts as keys."""
    days = "(SELECT * FROM VALUES (10, 13, 19), (11, 14, 0) AS v (d, a, b))"
    branch = (
        "SELECT w.pad, w.ticket, z.a, z.b FROM web w JOIN (SELECT s.ticket, j.a, j.b FROM sales s"
        f" JOIN {days} j ON s.day = j.d) z ON w.day = z.{{}}"
    )
    for first, second in (("a", "b"), ("b", "a")):
        checked(session, f"{branch.format(first)} UNION ALL {branch.format(second)}")


@pytest.mark.skipif(pyspark.__version__ < "4", reason="Spark 3.5 has no collations")
@pytest.mark.parametrize("key", ["aa", "AA"])
def test_groups_of_different_strings(session: SparkSession, key: str) -> None:
    """Grouping by a collated string can put different strings into one group. Either all of a
    group's rows are counted, or none are. Any of its strings may represent the group."""
    sql = (
        "SELECT g.v, g.n FROM (SELECT c, sum(q) AS v, count(*) AS n FROM (SELECT s.q, j.s COLLATE"
        " UTF8_LCASE AS c FROM sales s JOIN days j ON s.day = j.d) GROUP BY c) g"
        f" JOIN (VALUES ('{key}')) AS v (k) ON CAST(c AS STRING COLLATE UTF8_BINARY) = v.k"
    )
    assert {str(row.n) for row in session.sql(sql).collect()} <= {"400"}


def test_many_equal_columns(session: SparkSession) -> None:
    """Planning takes linear time although the number of ways to reach the broadcast doubles with
    each join."""
    joins = " ".join(
        f"JOIN sales t{i} ON t{i - 1}.q = t{i}.q AND t{i - 1}.q = t{i}.nday AND t{i - 1}.nday = t{i}.q"
        for i in range(1, 40)
    )
    sql = (
        f"SELECT t0.pad FROM sales t0 {joins} JOIN {JULY} ON t39.day = d JOIN web w ON w.day = t0.q"
    )
    with settings(session, spark__sql__constraintPropagation__enabled="false"):
        session.sql(sql)._jdf.queryExecution().executedPlan()


def test_plain_queries_agree(session: SparkSession) -> None:
    """In plain Spark, a query from these tests returns rows, so the tests can detect missing
    rows."""
    with plain(session):
        assert rows(session.sql(OUTER[0].format(q=LEFT.format(key=FILLED[0]))))
