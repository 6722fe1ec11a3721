"""Join keys that leave only some files of one large table also skip files of the tables that it is
joined with.

The large tables have one file for each of 20 days. `basket` and `parcel` grow with the day, so each
file has its own range of them. `ticket` does not: every file has all kinds of tickets. Only `days`
is broadcast. To add a case, add a query, and how many files each scan of a table opens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.joins import (
    FACTS,
    broadcasting_only_days,
    checked,
    counts,
    fact_tables,
    scans_of,
)

ALL = 20
MONTH = 5
JULY = "(SELECT d FROM days WHERE month = 2)"


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = Path(tmp_path_factory.mktemp("restricted"))
    with fact_tables(spark, folder, [], "id DIV 4 AS basket", "id DIV 2 AS parcel"):
        yield folder


@pytest.fixture(params=["true", "false"], ids=["adaptive", "not adaptive"])
def session(
    request: pytest.FixtureRequest, spark: SparkSession, tables: Path
) -> Iterator[SparkSession]:
    """A session that broadcasts only `days`, with and without adaptive execution."""
    with broadcasting_only_days(spark, request.param):
        yield spark


@dataclass(frozen=True)
class Case:
    name: str
    sql: str
    sales: tuple[int, ...] = (MONTH,)
    returns: tuple[int, ...] = (MONTH,)
    web: tuple[int, ...] = ()


SOLD = "SELECT s.pad, r.q FROM sales s JOIN returns r ON s.basket = r.basket"
MONTHS = f"(SELECT s.* FROM sales s JOIN {JULY} ON s.day = d)"
CASES = [
    Case("keys above the join", f"{SOLD} JOIN {JULY} ON s.day = d"),
    Case("keys below the join", f"SELECT s.pad, r.q FROM {MONTHS} s JOIN returns r ON s.basket = r.basket"),
    Case("IN", f"{SOLD} WHERE s.day IN {JULY}"),
    Case("a semi join", f"SELECT q FROM returns r WHERE EXISTS (SELECT 1 FROM {MONTHS} s WHERE s.basket = r.basket)"),
    Case("the right side of a semi join", f"""
        SELECT q FROM {MONTHS} s WHERE EXISTS (SELECT 1 FROM returns r WHERE s.basket = r.basket)"""),
    Case("the right side of a left outer join", f"""
        SELECT s.pad, r.q FROM sales s LEFT JOIN returns r ON s.basket = r.basket JOIN {JULY} ON s.day = d"""),
    Case("the right side of an anti join", f"""
        SELECT s.pad FROM {MONTHS} s WHERE NOT EXISTS (SELECT 1 FROM returns r WHERE s.basket = r.basket)"""),
    Case("the right side of an existence join", f"""
        SELECT s.pad FROM {MONTHS} s
        WHERE s.q < 3 OR EXISTS (SELECT 1 FROM returns r WHERE s.basket = r.basket)"""),
    Case("two joins in a row", f"""
        {SOLD} JOIN web w ON r.parcel = w.parcel JOIN {JULY} ON s.day = d""", web=(MONTH,)),
    Case("keys from both ends", f"""
        {SOLD} JOIN web w ON r.parcel = w.parcel JOIN {JULY} ON s.day = d
        JOIN (SELECT d AS e FROM days WHERE month IN (1, 2)) ON w.day = e""", web=(MONTH,)),
    Case("back to the first table", f"""
        {SOLD} JOIN sales z ON r.parcel = z.parcel JOIN {JULY} ON s.day = d""", sales=(MONTH, MONTH)),
    Case("equal exchanges", f"""
        WITH r AS (SELECT basket, sum(q) AS v FROM returns GROUP BY basket)
        SELECT x.v, y.v FROM {MONTHS} s JOIN r x ON s.basket = x.basket JOIN r y ON s.basket = y.basket"""),
    Case("below a union", f"""
        SELECT s.pad, r.q FROM {MONTHS} s
        JOIN (SELECT basket, q FROM returns UNION ALL SELECT basket, q FROM web) r ON s.basket = r.basket""",
         web=(MONTH,)),
    Case("the files of a union", f"""
        SELECT s.pad, r.q FROM ({MONTHS} UNION ALL SELECT w.* FROM web w JOIN {JULY} ON w.day = d) s
        JOIN returns r ON s.basket = r.basket""", web=(MONTH,)),
    Case("a union of which one branch is whole", f"""
        SELECT s.pad, r.q FROM ({MONTHS} UNION ALL SELECT * FROM web) s
        JOIN returns r ON s.basket = r.basket""", returns=(ALL,), web=(ALL,)),
    Case("through groups", f"""
        SELECT s.v, r.q FROM (SELECT basket, sum(q) AS v FROM {MONTHS} s GROUP BY basket) s
        JOIN returns r ON s.basket = r.basket"""),
    Case("a key widened by a cast", f"""
        SELECT s.pad, r.q FROM (SELECT CAST(basket AS DECIMAL(20, 0)) AS b, s.pad FROM {MONTHS} s) s
        JOIN returns r ON s.b = r.basket"""),
    Case("the broadcast side", f"""
        SELECT /*+ BROADCAST(r) */ s.pad, r.q FROM {MONTHS} s JOIN returns r ON s.basket = r.basket"""),
    Case("values from a broadcast side", f"""
        SELECT /*+ BROADCAST(s) */ s.pad, r.q FROM {MONTHS} s JOIN returns r ON s.basket = r.basket"""),
    # Cases in which all files must be read.
    Case("the left side of a left outer join", f"""
        SELECT s.pad, r.q FROM returns r LEFT JOIN {MONTHS} s ON s.basket = r.basket""", returns=(ALL,)),
    Case("the left side of an anti join", f"""
        SELECT r.q FROM returns r WHERE NOT EXISTS (SELECT 1 FROM {MONTHS} s WHERE s.basket = r.basket)""",
         returns=(ALL,)),
    Case("NOT IN", f"SELECT s.q FROM {MONTHS} s WHERE s.basket NOT IN (SELECT basket FROM returns)",
         returns=(ALL,)),
    Case("a full outer join",
         f"SELECT s.pad, r.q FROM {MONTHS} s FULL JOIN returns r ON s.basket = r.basket", returns=(ALL,)),
    Case("a null-safe key",
         f"SELECT s.pad, r.q FROM {MONTHS} s JOIN returns r ON s.basket <=> r.basket", returns=(ALL,)),
    Case("below a limit", f"""
        SELECT s.pad, r.q FROM {MONTHS} s JOIN (SELECT * FROM returns LIMIT 1000) r
        ON s.basket = r.basket""", returns=(ALL,)),
    Case("a random condition between", f"""
        SELECT s.pad, r.q FROM {MONTHS} s JOIN (SELECT * FROM returns WHERE q + rand() >= 0) r
        ON s.basket = r.basket""", returns=(ALL,)),
    Case("a key that every file has", f"""
        SELECT s.pad, r.q FROM {MONTHS} s JOIN returns r ON s.ticket = r.ticket""", returns=(ALL,)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_opened(session: SparkSession, case: Case) -> None:
    df = checked(session, case.sql)
    assert {t: counts(df, t) for t in FACTS} == {
        "sales": case.sales, "returns": case.returns, "web": case.web
    }  # fmt: skip


def join_keys(df: DataFrame, table: str) -> list[str]:
    (scan,) = scans_of(df, table)
    return list(scan["joinKeys"])


def test_explain_names_the_files(session: SparkSession) -> None:
    df = checked(session, f"{SOLD} JOIN {JULY} ON s.day = d")
    (keys,) = join_keys(df, "returns")
    assert re.fullmatch(
        r"sales\.basket \(5 files left by days\.d \(5 values after \d+ ms\)\)", keys
    )
    assert len(join_keys(df, "sales")) == 1, "no ranges are derived from the scan's own files"


def test_no_broadcast_is_executed_twice(session: SparkSession) -> None:
    df = checked(session, f"{SOLD} JOIN {JULY} ON s.day = d")
    assert len(scans_of(df, "days")) == 1
