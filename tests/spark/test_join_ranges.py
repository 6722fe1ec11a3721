"""The key ranges of files on one side of a join skip files on the other side, without a broadcast.

To add a case, add a query to CASES. Also add how many files each scan opens. See
tests/support/join_ranges.py for the tables. Every answer is compared with the answer without
skipping.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.indexes import build
from tests.support.join_ranges import (
    ALL,
    COLUMNS,
    NAMES,
    SOME,
    without_broadcasts,
    write,
    written,
)
from tests.support.joins import checked, counts, rows, scans_of, select_list
from tests.support.scans import settings
from tests.support.tables import data_files


@dataclass(frozen=True)
class Case:
    """A query, and for each table, how many files each scan opens, in ascending order."""

    name: str
    sql: str
    a: tuple[int, ...] = (3,)
    b: tuple[int, ...] = (3,)
    c: tuple[int, ...] = ()


CASES = [
    # Inner and left semi joins, in which each side can skip files on the other side.
    Case("inner", "SELECT a.k, b.pad FROM a JOIN b ON a.k = b.k WHERE a.part < 3"),
    Case("the left side", "SELECT a.k, b.pad FROM a JOIN b ON a.k = b.k WHERE b.part < 3"),
    Case("both sides at once",
         "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.part < 5 AND b.part > 2", (2,), (2,)),
    Case("files apart from each other",
         "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.part IN (2, 17)", (2,), (2,)),
    Case("no file", "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.part < 3 AND b.part > 9", (0,), (0,)),
    Case("a further condition", f"SELECT q.k FROM {SOME} q JOIN b ON q.k = b.k AND q.m <= b.m"),
    Case("semi, the right side", f"SELECT q.k FROM {SOME} q LEFT SEMI JOIN b ON q.k = b.k"),
    Case("semi, the left side", f"SELECT b.k FROM b LEFT SEMI JOIN {SOME} q ON q.k = b.k"),
    Case("IN", "SELECT k FROM b WHERE k IN (SELECT k FROM a WHERE part < 3)"),
    Case("EXISTS", "SELECT k FROM b WHERE EXISTS (SELECT 1 FROM a WHERE part < 3 AND a.k = b.k)"),
    # Joins in which at most one side can skip files of the other, and operators other than `=`.
    Case("left outer", f"SELECT q.k, b.pad FROM {SOME} q LEFT JOIN b ON q.k = b.k"),
    Case("left outer, preserved", f"SELECT q.m, b.pad FROM b LEFT JOIN {SOME} q ON q.k = b.k", b=(ALL,)),
    Case("right outer", f"SELECT q.k, b.pad FROM b RIGHT JOIN {SOME} q ON q.k = b.k"),
    Case("right outer, preserved", f"SELECT q.m, b.pad FROM {SOME} q RIGHT JOIN b ON q.k = b.k", b=(ALL,)),
    Case("full outer", f"SELECT q.m, b.pad FROM {SOME} q FULL JOIN b ON q.k = b.k", b=(ALL,)),
    Case("anti, the right side", f"SELECT q.k FROM {SOME} q LEFT ANTI JOIN b ON q.k = b.k AND q.m < b.m"),
    Case("anti, the left side", f"SELECT b.k FROM b LEFT ANTI JOIN {SOME} q ON q.k = b.k", b=(ALL,)),
    Case("NOT EXISTS", f"SELECT q.k FROM {SOME} q WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = q.k AND b.m < 3)"),
    Case("NOT IN", f"SELECT q.k FROM {SOME} q WHERE q.n NOT IN (SELECT k FROM b WHERE m < 3)", b=(ALL,)),
    Case("existence", f"SELECT q.k FROM {SOME} q WHERE m = 1 OR EXISTS (SELECT 1 FROM b WHERE b.k = q.k)"),
    Case("existence, the left side",
         f"SELECT k FROM b WHERE m = 1 OR EXISTS (SELECT 1 FROM {SOME} q WHERE b.k = q.k)", b=(ALL,)),
    Case("no equality", f"SELECT q.k FROM {SOME} q JOIN b ON q.k < b.k AND b.part > 17 AND q.m < 4", b=(2,)),
    Case("null-safe", f"SELECT q.k FROM {SOME} q JOIN b ON q.n <=> b.n", b=(ALL,)),
    Case("null-safe beside =", f"SELECT q.k FROM {SOME} q JOIN b ON q.n <=> b.n AND q.k = b.k"),
    # Several joins.
    Case("a star", "SELECT a.k FROM a JOIN b ON a.k = b.k JOIN c ON a.l = c.l WHERE a.part < 3", c=(3,)),
    Case("a snowflake", "SELECT a.k FROM a JOIN b ON a.k = b.k JOIN c ON b.l = c.l WHERE a.part < 3", c=(3,)),
    Case("a snowflake from its end",
         "SELECT c.pad FROM c JOIN b ON b.s = c.s JOIN a ON a.l = b.l WHERE a.part < 3", c=(3,)),
    Case("below another join",
         f"SELECT q.k FROM {SOME} q JOIN (SELECT b.k, c.m FROM b JOIN c ON b.l = c.l) r ON q.k = r.k", c=(3,)),
    Case("below an outer join",
         f"SELECT q.k FROM {SOME} q JOIN (SELECT b.k, c.m FROM b LEFT JOIN c ON b.l = c.l) r ON q.k = r.k", c=(3,)),
    Case("from below an outer join",
         f"SELECT q.k FROM b JOIN (SELECT q.k, c.m FROM c LEFT JOIN {SOME} q ON q.l = c.l) q ON q.k = b.k"
         " AND b.m = q.m", c=(3,)),
    Case("a table twice", "SELECT x.k FROM a x JOIN a y ON x.k = y.k WHERE x.part < 3", (3, 3), ()),
    # Operators between the scans and the join.
    Case("from a union", "SELECT b.k FROM (SELECT k FROM a WHERE part = 2 UNION ALL SELECT CAST(l AS INT) "
         "FROM c WHERE part = 7) u JOIN b ON u.k = b.k", (1,), (ALL,), (1,)),
    Case("from a union of columns", "SELECT b.k FROM (SELECT k FROM a WHERE part = 2 UNION ALL SELECT st.k "
         "FROM c WHERE part = 7) u JOIN b ON u.k = b.k", (1,), (2,), (1,)),
    Case("to a union", f"SELECT u.k FROM {SOME} q JOIN (SELECT k FROM b UNION ALL SELECT st.k FROM c) u ON q.k = u.k",
         c=(3,)),
    Case("from groups", f"SELECT b.k, v FROM (SELECT k, sum(m) v FROM {SOME} GROUP BY k) q JOIN b ON q.k = b.k"),
    Case("to groups", f"SELECT r.k, v FROM {SOME} q JOIN (SELECT k, sum(m) v FROM b GROUP BY k) r ON q.k = r.k"),
    Case("from an aggregate", f"SELECT b.k FROM (SELECT max(k % 100) k FROM {SOME}) q JOIN b ON q.k = b.k", b=(ALL,)),
    Case("from renamed columns", f"SELECT b.k FROM (SELECT k AS z, m AS k FROM {SOME}) q JOIN b ON q.z = b.k"),
    Case("not to a random sample",
         f"SELECT r.k FROM {SOME} q JOIN (SELECT * FROM b WHERE rand(3) < 0.9) r ON q.k = r.k", b=(ALL,)),
    Case("not to a limit", f"SELECT r.k FROM {SOME} q JOIN (SELECT * FROM b LIMIT 1000) r ON q.k = r.k", b=(ALL,)),
    Case("not to a window",
         f"SELECT r.k, r.i FROM {SOME} q JOIN (SELECT k, rank() OVER (ORDER BY k) i FROM b) r ON q.k = r.k",
         b=(ALL,)),
    Case("not to a sample", f"SELECT r.k FROM {SOME} q JOIN (SELECT * FROM b TABLESAMPLE (50 PERCENT) REPEATABLE (1)) "
         "r ON q.k = r.k", b=(ALL,)),
    Case("not below a random value beside the groups", f"""
        SELECT q.k, r.v > 1 FROM {SOME} q
        JOIN (SELECT k, count(*) + rand(3) AS v FROM b GROUP BY k) r ON q.k = r.k""", b=(ALL,)),
    Case("not below numbers of the groups", f"""
        SELECT q.k, r.v FROM {SOME} q
        JOIN (SELECT k, monotonically_increasing_id() AS v FROM b GROUP BY k) r ON q.k = r.k""", b=(ALL,)),
    Case("a subquery of another table",
         f"SELECT q.k FROM {SOME} q JOIN b ON q.k = b.k WHERE b.m > (SELECT avg(m) FROM c)", c=(ALL,)),
    # Keys.
    Case("a widening cast", f"SELECT q.k FROM {SOME} q JOIN b ON q.k = b.l"),
    Case("a widening cast of the other key", f"SELECT q.k FROM {SOME} q JOIN b ON q.l = b.k"),
    Case("a narrowing cast", f"SELECT q.k FROM {SOME} q JOIN b ON CAST(q.l AS INT) = b.k", b=(ALL,)),
    Case("an expression", f"SELECT q.k FROM {SOME} q JOIN b ON q.k + 1 = b.k", b=(ALL,)),
    Case("several keys", f"SELECT q.k FROM {SOME} q JOIN b ON q.m = b.m AND q.d = b.d AND q.k = b.k"),
    Case("strings", f"SELECT q.k FROM {SOME} q JOIN b ON q.s = b.s"),
    Case("dates", f"SELECT q.k FROM {SOME} q JOIN b ON q.d = b.d"),
    Case("decimals", f"SELECT q.k FROM {SOME} q JOIN b ON q.dec = b.dec"),
    Case("struct fields", f"SELECT q.k FROM {SOME} q JOIN b ON q.st.k = b.st.k"),
    Case("nulls", "SELECT a.k FROM a JOIN b ON a.n = b.n WHERE a.part BETWEEN 5 AND 7", (2,), (2,)),
    Case("only nulls", "SELECT a.k FROM a JOIN b ON a.n = b.n WHERE a.part = 6", (0,), (0,)),
    # Files 3 and 5 contain zeros, so their ranges begin at 0. Files 2 and 19 contain NaN.
    Case("no NaN and no zero", "SELECT a.k FROM a JOIN b ON a.x = b.x WHERE a.part = 4", (1,), (2,)),
    Case("NaN and numbers", "SELECT a.k FROM a JOIN b ON a.x = b.x WHERE a.part = 2", (1,), (4,)),
    Case("only NaN", "SELECT a.k FROM a JOIN b ON a.x = b.x WHERE a.part = 19", (1,), (2,)),
    Case("-0.0 and 0.0", "SELECT a.k FROM a JOIN b ON a.x = b.x WHERE a.part = 0 AND a.x = 0", (1,), (3,)),
    Case("every file", "SELECT a.k FROM a JOIN b ON a.k = b.k", (ALL,), (ALL,)),
    Case("a broadcast", f"SELECT /*+ BROADCAST(b) */ q.k FROM {SOME} q JOIN b ON q.k = b.k"),
]  # fmt: skip


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = Path(tmp_path_factory.mktemp("ranges"))
    with written(spark, folder):
        yield folder


@pytest.fixture(params=[
    pytest.param("true", id="adaptive"),
    pytest.param("false", id="not adaptive", marks=pytest.mark.long),
])  # fmt: skip
def session(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """A session without broadcasts, with and without adaptive execution."""
    with without_broadcasts(spark, request.param):
        yield spark


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_opened(session: SparkSession, tables: Path, case: Case) -> None:
    df = checked(session, case.sql)
    expected = {"a": case.a, "b": case.b, "c": case.c}
    found = {t: counts(df, t) for t in NAMES}
    if not df.collect():  # adaptive execution removes scans from a plan without rows
        found = {t: found[t] or expected[t] for t in NAMES}
    assert found == expected


INNER = "SELECT a.k, b.pad FROM a JOIN b ON a.k = b.k WHERE a.part < 3"


def test_explain_before_the_query_runs(session: SparkSession, tables: Path) -> None:
    df = session.sql(INNER)
    (scan,) = scans_of(df, "b")
    assert (scan["selected"], scan["skippedByJoins"]) == (3, 17)
    assert scan["joinKeys"] == ["a.k (3 files)"]
    assert not any("join key" in reason for reason in scan["reasons"])
    plan = df._jdf.queryExecution().executedPlan().toString()
    assert "17 skipped by join keys of a.k (3 files)" in plan


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (f"SELECT q.k FROM b LEFT JOIN {SOME} q ON q.k = b.k", "LEFT OUTER JOIN also needs unmatched rows"),
        ("SELECT a.k FROM a JOIN b ON a.k = b.k",
         "both sides are read before any key is known, and the key ranges on the other side do not "
         "rule out any files; its keys are not cheap to compute, because it has no condition"),
        (f"SELECT q.k FROM {SOME} q JOIN b ON q.k % 9 = b.k",
         "both sides are read before any key is known, and the other side's key is neither in an index nor cheap to compute, because it reads a large table with a skipping index"),
    ],
)  # fmt: skip
def test_explain_says_why_no_file_is_skipped(
    session: SparkSession, tables: Path, sql: str, reason: str
) -> None:
    df = session.sql(sql)
    df.collect()
    (scan,) = scans_of(df, "b")
    assert f"not usable: join key k ({reason})" in scan["reasons"]


@pytest.mark.parametrize("limit", ["0", "1", "2"])
def test_a_limited_number_of_ranges(session: SparkSession, tables: Path, limit: str) -> None:
    """If there are too many ranges, adjacent ranges are merged."""
    with settings(session, spark__sql__zorder__join__maxKeys=limit):
        df = checked(session, INNER.replace("a.part < 3", "a.part IN (2, 4, 8, 9)"))
        assert counts(df, "b") == {"0": (ALL,), "1": (8,), "2": (5,)}[limit]


@pytest.mark.parametrize("switched", ["spark.sql.zorder.skipping.enabled", "a", "b"])
def test_skipping_that_is_off(session: SparkSession, tables: Path, switched: str) -> None:
    """If skipping is turned off for either table or in the session, ranges skip no files of `b`."""
    if switched in NAMES:
        session.sql(
            f"ALTER TABLE {switched} SET TBLPROPERTIES ('zorder.skipping.enabled' = 'false')"
        )
        try:
            df = checked(session, INNER)
            assert counts(df, "b") == (ALL,)
        finally:
            session.sql(f"ALTER TABLE {switched} UNSET TBLPROPERTIES ('zorder.skipping.enabled')")
    else:
        df = session.sql(INNER)
        df._jdf.queryExecution().executedPlan()
        with settings(session, spark__sql__zorder__skipping__enabled="false"):
            df.collect()
            assert (counts(df, "a"), counts(df, "b")) == ((ALL,), (ALL,))


def test_a_plan_that_runs_twice_gives_the_same(session: SparkSession, tables: Path) -> None:
    df = checked(session, INNER)
    assert rows(df) == rows(df)
    assert counts(df, "b") == (3,)


#: Each row of `left_side` has exactly one match in `right_side`, so both counts are equal.
MATCHES = """
    SELECT count(*), count(r.k) FROM right_side r
    RIGHT JOIN (SELECT * FROM left_side WHERE part < 3 {}) l ON l.k = r.k"""


@pytest.fixture(params=["no journal", "journal"])
def pair(
    request: pytest.FixtureRequest, session: SparkSession, tmp_path: Path
) -> Iterator[dict[str, Path]]:
    """The folders of two tables, `left_side` and `right_side`, which a test may change. In one of
    the two cases, the tables have been optimized and therefore have a journal."""
    folders = {name: tmp_path / name for name in ("left_side", "right_side")}
    for name, folder in folders.items():
        write(session, folder)
        build(session, folder, "parquet")
        session.sql(f"CREATE TABLE {name} USING parquet LOCATION '{folder}'")
        if request.param == "journal":
            with settings(session, spark__sql__zorder__optimize__targetFileSize="8k"):
                session.sql(f"OPTIMIZE {name} ZORDER BY (k)").collect()
    yield folders
    for name in folders:
        session.sql(f"DROP TABLE {name}")


def few(df: DataFrame) -> bool:
    """Whether most files of `right_side` are skipped."""
    (scan,) = scans_of(df, "right_side")
    return bool(0 < scan["selected"] < scan["total"] / 2)


def moved(spark: SparkSession) -> DataFrame:
    """Rows that the condition in MATCHES selects, although their keys are far from the keys of all
    other rows."""
    columns = select_list(COLUMNS)
    return spark.range(300, 320, 1, 1).selectExpr(
        *[c if c.split()[-1] != "part" else "CAST(0 AS INT) AS part" for c in columns]
    )


def test_a_file_that_the_index_does_not_know(session, pair) -> None:
    assert few(checked(session, MATCHES.format("")))
    with settings(session, spark__sql__zorder__write__index="false"):
        moved(session).write.insertInto("left_side")
    df = checked(session, MATCHES.format(""))
    assert df.first() == (80, 80)
    (scan,) = scans_of(df, "right_side")
    assert scan["selected"] == scan["total"]


def test_a_file_without_an_entry_is_read(session, pair) -> None:
    with settings(session, spark__sql__zorder__write__index="false"):
        moved(session).write.insertInto("right_side")
    df = checked(session, MATCHES.format(""))
    assert few(df)
    assert scans_of(df, "right_side")[0]["unindexed"] == 1


def test_rows_added_after_planning(session, pair) -> None:
    df = session.sql(MATCHES.format(""))
    df._jdf.queryExecution().executedPlan()
    assert few(df)
    moved(session.newSession()).write.mode("append").parquet(str(pair["left_side"]))
    df.collect()
    assert df.first() in [(60, 60), (80, 80)]


def test_a_file_replaced_after_planning(session, pair) -> None:
    df = session.sql(MATCHES.format(""))
    df._jdf.queryExecution().executedPlan()
    assert few(df)
    file = next(
        f for f in data_files(pair["left_side"])
        if pc.any(pc.equal(pq.read_table(f, columns=["part"])["part"], 0)).as_py()
    )  # fmt: skip
    rows_of = pq.read_table(file)
    keys = pc.add(rows_of["k"], pa.scalar(300, pa.int32()))
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    pq.write_table(rows_of.set_column(0, "k", keys), file)
    assert df.first() == (60, 60)


def test_rows_that_a_refresh_adds_while_the_query_runs(session, pair, held) -> None:
    """The scan of `right_side` lists its files first, because the scan of `left_side` waits for a
    subquery."""
    df = session.sql(MATCHES.format("AND m >= (SELECT min(slow(id)) FROM range(0, 1))"))

    def meanwhile() -> None:
        moved(session.newSession()).write.mode("append").parquet(str(pair["left_side"]))
        session.sql("REFRESH TABLE left_side")

    ((every, matched),) = held(df.collect, meanwhile)
    assert every == matched


def test_an_optimize_while_the_query_runs(session, pair, held) -> None:
    df = session.sql(MATCHES.format("AND m >= (SELECT min(slow(id)) FROM range(0, 1))"))
    other = session.newSession()

    def meanwhile() -> None:
        moved(other).write.mode("append").parquet(str(pair["left_side"]))
        for name in pair:
            other.sql(f"OPTIMIZE {name} FULL ZORDER BY (k)").collect()

    ((every, matched),) = held(df.collect, meanwhile)
    assert every == matched


@pytest.mark.parametrize("fmt", ["parquet", "orc"])
def test_partitioned_tables(session: SparkSession, tmp_path: Path, fmt: str) -> None:
    """If a condition selects a partition of one table, the ranges of this partition's files rule
    out files of the other table."""
    for name in ("one", "other"):
        frame = session.range(0, 200, 1, 10).selectExpr(
            "id AS k", "CAST(id DIV 20 % 5 AS INT) AS p"
        )
        frame.write.partitionBy("p").format(fmt).save(str(tmp_path / name))
        build(session, tmp_path / name, fmt)
    one, other = (f"{fmt}.`{tmp_path / name}`" for name in ("one", "other"))
    df = checked(session, f"SELECT a.k FROM {one} a JOIN {other} b ON a.k = b.k WHERE a.p = 2")
    assert (counts(df, "one"), counts(df, "other")) == ((2,), (2,))
    df = checked(session, f"SELECT a.k FROM {one} a JOIN {other} b ON a.p = b.p WHERE a.k = 7")
    assert counts(df, "one") == (1,)
