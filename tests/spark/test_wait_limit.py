"""How long scans wait for the keys of a join in a later stage.

See `test_join_keys_wait.py` for the tables. The condition in SLOW takes seconds for 20 rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from time import sleep

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import ArithmeticException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.support.joins import broadcasting_only_days, checked, counts, fact_tables, scans_of
from tests.support.scans import settings

ALL = 20
MONTH = 5


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = Path(tmp_path_factory.mktemp("limits"))
    with fact_tables(spark, folder, ["id AS l"]):
        yield folder


@pytest.fixture
def session(spark: SparkSession, tables: Path) -> Iterator[SparkSession]:
    with broadcasting_only_days(spark, "true"):
        yield spark


@pytest.fixture
def static(spark: SparkSession, tables: Path) -> Iterator[SparkSession]:
    """A session without adaptive execution."""
    with broadcasting_only_days(spark, "false"):
        yield spark


def limit(session: SparkSession, time: str) -> AbstractContextManager[None]:
    return settings(session, spark__sql__zorder__join__maxWait=time)


SOLD = "SELECT s.day, s.pad, r.q FROM sales s JOIN returns r ON s.ticket = r.ticket"
JULY = "(SELECT d FROM days WHERE month = 2)"
SUM = "aggregate(sequence(1, 1000 + l), 0L, (s, x) -> s + aggregate(sequence(1, 1000), 0L, (t, y) -> t + x * y))"
SLOW = f"(SELECT d FROM days WHERE month = 2 AND {SUM} > 0)"
SLOW_EVEN = f"(SELECT d FROM days WHERE l % 2 = 0 AND {SUM} > 0)"


@dataclass(frozen=True)
class Case:
    """A query, and how many files of `sales` it opens if scans wait for 100 ms or a minute.

    Without adaptive execution, a join waits for its broadcast before the scan starts. It then opens
    `soon_static` files if scans wait for 100 ms.
    """

    name: str
    sql: str
    soon: int
    late: int = MONTH
    soon_static: int = MONTH


CASES = [
    Case("a broadcast", f"{SOLD} JOIN {SLOW} ON s.day = d", soon=ALL),
    Case("a shuffled side", f"SELECT /*+ MERGE(x) */ s.q FROM sales s JOIN {SLOW} x ON s.day = d",
         soon=ALL, soon_static=ALL),
    Case("from one fact to the other", f"""
        SELECT s.ticket, w.pad FROM web w JOIN {SLOW} ON w.day = d
        JOIN sales s ON s.day = w.day AND s.ticket = w.ticket""", soon=ALL),
    Case("below a union", f"""
        SELECT s.day, r.q FROM (SELECT * FROM sales UNION ALL SELECT * FROM web) s
        JOIN returns r ON s.ticket = r.ticket JOIN {SLOW} ON s.day = d""", soon=ALL),
    Case("another key of the scan's own stage", f"""
        SELECT s.pad, r.q FROM (SELECT day, ticket, pad FROM sales JOIN {JULY} ON day = d) s
        JOIN returns r ON s.ticket = r.ticket JOIN {SLOW_EVEN} e ON s.day = e.d""", soon=MONTH, late=3, soon_static=3),
    Case("a key of the scan's own stage that another key restricts", f"""
        SELECT s.day, s.v, e.l FROM (SELECT month, day, sum(q) AS v FROM sales
        JOIN (SELECT * FROM days WHERE month < 3) ON day = d GROUP BY month, day) s
        JOIN (SELECT * FROM days WHERE l = 11 AND {SUM} > 0) e ON s.month = e.month""", soon=15),
    Case("the scan's own stage, which needs the broadcast",
         f"SELECT s.q FROM sales s JOIN {SLOW} ON s.day = d", soon=MONTH),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_opened(session: SparkSession, case: Case) -> None:
    with limit(session, "100ms"):
        assert counts(checked(session, case.sql), "sales") == (case.soon,)
    assert counts(checked(session, case.sql), "sales") == (case.late,)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_opened_without_adaptive_execution(static: SparkSession, case: Case) -> None:
    with limit(static, "100ms"):
        assert counts(checked(static, case.sql), "sales") == (case.soon_static,)
    assert counts(checked(static, case.sql), "sales") == (case.late,)


def test_generated_code_without_adaptive_execution(static: SparkSession) -> None:
    shuffled = f"SELECT /*+ MERGE(x) */ s.q FROM sales s JOIN {SLOW} x ON s.day = d"
    broadcast = f"SELECT /*+ BROADCAST(s) */ r.q, s.pad FROM returns r JOIN sales s ON s.ticket < r.ticket JOIN {SLOW} ON s.day = d"
    with limit(static, "100ms"), settings(static, spark__sql__codegen__factoryMode="FALLBACK"):
        for sql in (shuffled, broadcast):
            assert counts(checked(static, sql), "sales") == (ALL,)


@pytest.mark.parametrize(
    ("time", "reason"),
    [
        ("100ms", "the key is not known within 100 ms, the limit set by spark.sql.zorder.join.maxWait"),
        ("0s", "the scan starts before the key is known, and does not wait for it: "
               "spark.sql.zorder.join.maxWait is 0s"),
    ],
)  # fmt: skip
def test_explain_says_that_the_keys_were_late(
    session: SparkSession, time: str, reason: str
) -> None:
    with limit(session, time):
        for sql in (
            f"{SOLD} JOIN {SLOW} ON s.day = d",
            f"SELECT /*+ MERGE(x) */ s.q FROM sales s JOIN {SLOW} x ON s.day = d",
        ):
            df = checked(session, sql)
            assert f"not usable: join key day ({reason})" in reasons(df)


@pytest.mark.long
def test_a_query_that_is_run_long_after_it_was_explained(session: SparkSession) -> None:
    """The time begins when the scan begins to wait."""
    df = session.sql(f"{SOLD} JOIN {JULY} ON s.day = d")
    with limit(session, "10s"):
        df.explain()
        sleep(11)
        df.collect()
    assert counts(df, "sales") == (MONTH,)


def test_without_keys_the_scan_is_an_ordinary_one(session: SparkSession) -> None:
    """Spark can therefore reuse an exchange above it."""
    read = "SELECT s.day, r.q FROM sales s JOIN returns r ON s.ticket = r.ticket WHERE s.day IS NOT NULL"
    with limit(session, "0s"):
        df = checked(
            session,
            f"SELECT day, q FROM ({read}) JOIN {JULY} ON day = d UNION ALL SELECT day, q FROM ({read})",
        )
    assert "ZOrderJoinKeys" not in df._jdf.queryExecution().executedPlan().toString()
    assert counts(df, "sales") == (ALL,)


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(f"{SOLD} JOIN {JULY} ON s.day = d", id="a broadcast"),
        pytest.param(
            f"SELECT /*+ MERGE(x) */ s.q FROM sales s JOIN {JULY} x ON s.day = d",
            id="a shuffled side",
        ),
        pytest.param(
            f"SELECT count(*) FROM sales JOIN {JULY} ON day = d JOIN returns USING (ticket) "
            f"WHERE sales.q > (SELECT avg(q) FROM web JOIN {JULY} ON day = d)",
            id="a reused broadcast",
        ),
    ],
)
def test_a_scan_waits_no_longer_than_necessary(session: SparkSession, sql: str) -> None:
    with limit(session, "150s"), ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: counts(checked(session, sql), "sales"))
        try:
            assert running.result(timeout=90) == (MONTH,)
        finally:
            session.sparkContext.cancelAllJobs()


def test_a_broadcast_that_fails(session: SparkSession) -> None:
    failing = "(SELECT d FROM days WHERE month = 2 AND raise_error(concat('day ', d)) IS NULL)"
    with pytest.raises((Py4JJavaError, PySparkException), match="day 1"):
        session.sql(f"{SOLD} JOIN {failing} ON s.day = d").collect()


def test_a_failure_is_reported_once(session: SparkSession) -> None:
    """Spark would hide the cause if the scan and the join each had a broadcast that fails."""
    failing = "(SELECT d FROM days WHERE month = 2 AND 1 / (l - 12) > -9)"
    for _ in range(3):
        with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
            session.sql(f"SELECT s.q FROM sales s JOIN {failing} ON s.day = d").collect()


def reasons(df: DataFrame) -> list[str]:
    """The reasons why conditions skip no files of `sales`."""
    return [reason for scan in scans_of(df, "sales") for reason in scan["reasons"]]
