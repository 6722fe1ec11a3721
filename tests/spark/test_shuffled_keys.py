"""Scans wait for the keys of a small table that Spark shuffles for a join instead of broadcasting it.

The tables are those of test_join_keys_wait.py, but Spark broadcasts none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.joins import checked, counts, fact_tables, scans_of, stage_rows
from tests.support.scans import settings

ALL = 20
MONTH = 5
JULY = "(SELECT d FROM days WHERE month = 2)"


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = Path(tmp_path_factory.mktemp("shuffled"))
    with fact_tables(spark, folder, ["id AS l"], "id % 20 AS spread"):
        yield folder


@pytest.fixture(params=[
    pytest.param(("true", "true"), id="adaptive"),
    pytest.param(("false", "true"), id="not adaptive"),
    pytest.param(("true", "false"), id="hash join", marks=pytest.mark.long),
])  # fmt: skip
def session(
    request: pytest.FixtureRequest, spark: SparkSession, tables: Path
) -> Iterator[SparkSession]:
    """A session that broadcasts no table."""
    adaptive, prefers_sorting = request.param
    with settings(
        spark,
        spark__sql__adaptive__enabled=adaptive,
        spark__sql__autoBroadcastJoinThreshold="-1",
        spark__sql__join__preferSortMergeJoin=prefers_sorting,
        spark__sql__shuffle__partitions="3",
    ):
        yield spark


@pytest.mark.parametrize(
    ("sql", "sales"),
    [
        (f"SELECT s.q FROM sales s JOIN {JULY} ON s.day = d", MONTH),
        (f"SELECT s.q FROM {JULY} JOIN sales s ON s.day = d", MONTH),
        (f"SELECT s.q FROM sales s WHERE s.day IN {JULY}", MONTH),
        (f"SELECT s.q FROM sales s WHERE EXISTS (SELECT 1 FROM {JULY} WHERE d = s.day)", MONTH),
        (f"SELECT s.q FROM sales s RIGHT JOIN {JULY} ON s.day = d", MONTH),
        (f"SELECT s.q FROM {JULY} LEFT JOIN sales s ON s.day = d", MONTH),
        ("SELECT s.q FROM sales s JOIN days ON s.day = l WHERE month = 2", MONTH),
        (f"SELECT s.q FROM sales s JOIN {JULY} a ON s.day = a.d AND s.q = a.d", 3),
        (f"SELECT d, n FROM (SELECT day, sum(q) AS n FROM sales GROUP BY day) s JOIN {JULY} "
         "ON s.day = d", MONTH),
        # below another join
        (f"SELECT s.q FROM sales s JOIN returns r ON s.ticket = r.ticket JOIN {JULY} ON s.day = d",
         MONTH),
        # the other side's condition is a join
        ("SELECT s.q FROM sales s JOIN (SELECT /*+ BROADCAST(m) */ d FROM days JOIN (VALUES (2)) "
         "AS m (month) ON days.month = m.month) ON s.day = d", MONTH),
        # all rows of `sales` are needed
        (f"SELECT s.q, d FROM sales s LEFT JOIN {JULY} ON s.day = d", ALL),
        (f"SELECT s.q, d FROM sales s FULL JOIN {JULY} ON s.day = d", ALL),
        (f"SELECT s.q FROM sales s LEFT ANTI JOIN {JULY} ON s.day = d", ALL),
        (f"SELECT s.q FROM sales s JOIN {JULY} ON s.day <=> d", ALL),
        # the other side is not cheap
        ("SELECT s.q FROM sales s JOIN days ON s.day = d", ALL),
        ("SELECT s.q FROM sales s JOIN (SELECT d FROM days WHERE month = 2 LIMIT 3) ON s.day = d",
         ALL),
        ("SELECT s.q FROM sales s JOIN (SELECT d FROM days WHERE rand() < 2) ON s.day = d", ALL),
        ("SELECT s.q FROM sales s JOIN (SELECT d FROM days WHERE month = 2 GROUP BY d) ON s.day = d",
         ALL),
        # no key of this column rules out a file
        (f"SELECT s.q FROM sales s JOIN {JULY} ON s.spread = d", ALL),
    ],
)  # fmt: skip
def test_shuffled_sides(session: SparkSession, sql: str, sales: int) -> None:
    assert counts(checked(session, sql), "sales") == (sales,)


def test_explain_names_the_keys(session: SparkSession) -> None:
    df = checked(session, f"SELECT s.q FROM sales s JOIN {JULY} ON s.day = d")
    ((keys,),) = [scan["joinKeys"] for scan in scans_of(df, "sales")]
    assert keys.startswith("days.d (5 values after ")


def test_the_small_side_is_read_once(session: SparkSession) -> None:
    sql = f"SELECT s.q, d FROM sales s JOIN {JULY} ON s.day = d"
    session.sql(sql).collect()
    before = stage_rows(session)
    session.sql(sql).collect()
    more = [read for stage, (read, _) in stage_rows(session).items() if stage not in before]
    assert sum(more) == 20 + 20 * MONTH  # of `days`, and of 5 files of `sales`


def test_a_small_side_that_keys_restrict(session: SparkSession) -> None:
    """Keys of the days restrict `web`, so its rows differ from those whose keys would be broadcast.
    If they were broadcast, `web` would be read twice."""
    sql = f"""
        SELECT w.q, count(*) FROM (SELECT day, q FROM web WHERE q > 3) w
        LEFT SEMI JOIN (SELECT day, pad FROM sales UNION ALL SELECT day, pad FROM sales) s
        ON w.day = s.day JOIN {JULY} ON w.day = d GROUP BY w.q"""
    df = checked(session, sql)
    assert counts(df, "web") == (MONTH,)


def test_a_range_with_many_numbers(session: SparkSession) -> None:
    side = "(SELECT CAST(id AS INT) AS d FROM range({}) WHERE id % 20 = 3)"
    sql = f"SELECT s.q FROM sales s JOIN {side} ON s.day = d"
    assert counts(checked(session, sql.format(20)), "sales") == (1,)
    assert counts(checked(session, sql.format(20_000_000)), "sales") == (ALL,)


def test_a_side_above_sparks_threshold(session: SparkSession) -> None:
    sql = f"SELECT s.q FROM sales s JOIN {JULY} ON s.day = d"
    with settings(
        session, spark__sql__optimizer__runtime__bloomFilter__creationSideThreshold="100b"
    ):
        df = checked(session, sql)
        assert counts(df, "sales") == (ALL,)
        assert len(scans_of(df, "days")) == 1


def test_too_many_keys_are_not_used(session: SparkSession, tmp_path: Path) -> None:
    """With maxKeys = 1, at most 100 rows are used. Spark must not broadcast many more."""
    session.range(0, 100_000, 1, 1).selectExpr("CAST(id AS INT) AS d", "1 AS month").write.parquet(
        str(tmp_path / "many")
    )
    session.read.parquet(str(tmp_path / "many")).createOrReplaceTempView("many")
    few = "SELECT s.q FROM sales s JOIN {} ON s.day = d"
    with settings(session, spark__sql__zorder__join__maxKeys="1"):
        df = checked(session, few.format("(SELECT d FROM many WHERE month = 1)"))
        assert counts(df, "sales") == (ALL,)
        df = checked(session, few.format(f"{JULY} a"))
        assert counts(df, "sales") == (MONTH,)
    session.catalog.dropTempView("many")


def test_a_limit_that_rules_out_broadcasts(session: SparkSession) -> None:
    """Even a broadcast of a few keys takes 64 MiB."""
    with settings(session, spark__sql__maxBroadcastTableSize="1m"):
        df = checked(session, f"SELECT s.q FROM sales s JOIN {JULY} ON s.day = d")
        assert counts(df, "sales") == (ALL,)


def test_explain_says_that_the_keys_rule_out_no_file(session: SparkSession) -> None:
    df = checked(session, f"SELECT s.q FROM sales s JOIN {JULY} ON s.spread = d")
    (scan,) = scans_of(df, "sales")
    if session.conf.get("spark.sql.adaptive.enabled") == "true":
        assert (
            "not usable: join key spread (the scan starts before the key is known, and does not "
            "wait for it: almost all files may contain any of its values)"
        ) in scan["reasons"]
