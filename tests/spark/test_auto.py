"""OPTIMIZE … ZORDER BY AUTO chooses columns for the recorded queries."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import pyzorder
from pyzorder import ZOrderTable, bridge
from tests.support.recorded_workload import record
from tests.support.scans import explain, opened, settings
from tests.support.tables import aim_at, data_files, metrics

ROWS = 20_000
FILES = 16


@pytest.fixture
def folder(spark: SparkSession, database: str, tmp_path: Path) -> Iterator[Path]:
    """The folder of the table `auto_t`. Its columns `a`, `b` and `c` are independent of each
    other, and each has the values 0 to 19,999. Its workload is recorded."""
    folder = tmp_path / "db" / "auto_t"
    spark.sql(
        "CREATE TABLE auto_t (a BIGINT, b BIGINT, c BIGINT, s STRING, secret BIGINT) USING parquet"
        " TBLPROPERTIES ('zorder.workload.record' = 'true', 'zorder.index.denyColumns' = 'secret')"
    )
    spark.sql(
        f"INSERT INTO auto_t SELECT id * 7919 % {ROWS}, id * 104729 % {ROWS}, id * 1299709 % {ROWS},"
        f" concat('s', id * 15485863 % {ROWS}), id FROM range({ROWS})"
    )
    aim_at(spark, folder, FILES)
    yield folder
    bridge.clear_workload(spark, "auto_t")


def ask(spark: SparkSession, *conditions: str, times: int = 1) -> None:
    """Runs queries with these conditions. {n} becomes a different number in each query."""
    for number in range(times):
        for condition in conditions:
            where = condition.format(n=(number * 997 + 5003) % ROWS)
            spark.sql(f"SELECT count(s) FROM auto_t WHERE {where}").collect()
    bridge.flush_workload(spark)


def run(spark: SparkSession, statement: str = "OPTIMIZE auto_t ZORDER BY AUTO") -> Any:
    """The metrics of an OPTIMIZE."""
    return metrics(spark.sql(statement))


def test_cuts_are_kept(spark: SparkSession, folder: Path) -> None:
    """A cut at a condition is kept by later runs, serves the condition's negation, and is replaced
    when the workload has changed."""
    conditions = ["a < b AND c BETWEEN {n} AND {n} + 4999"]
    ask(spark, *conditions, times=8)
    assert run(spark)["clusteringColumns"] == ["c", "a < b"]
    assert run(spark)["remark"].startswith("AUTO keeps (c, a < b), the best columns for the ")
    for condition in ("b > a AND c < 1000", "a >= b AND c < 1000", "NOT a < b AND c < 1000"):
        assert len(opened(spark.sql(f"SELECT s FROM auto_t WHERE {condition}"))) <= 2, condition
    spark.sql("INSERT INTO auto_t SELECT a, b, c, s, secret FROM auto_t LIMIT 500")
    later = run(spark)
    assert later["clusteringColumns"] == ["c", "a < b"] and later["numFilesRemoved"] < FILES
    bridge.clear_workload(spark, "auto_t")
    ask(spark, "b = {n}", times=40)
    assert run(spark)["clusteringColumns"] == ["b"]


@dataclass(frozen=True)
class Case:
    """Conditions of the recorded queries, and the columns that AUTO chooses for them."""

    conditions: Sequence[str]
    columns: list[str]


CASES = {
    "one column": Case(["b = {n}"], ["b"]),
    "two columns": Case(["a = {n}", "b = {n}"], ["a", "b"]),
    "a range": Case(["c BETWEEN {n} AND {n} + 100"], ["c"]),
    "a list": Case(["b IN ({n}, {n} + 1)"], ["b"]),
    "a prefix": Case(["s LIKE 's{n}%'"], ["s"]),
    "a conjunction": Case(["c = {n} AND s != 'x'"], ["c"]),
    "a disjunction": Case(["(c = {n} OR c = {n} + 5)"], ["c"]),
    "a rare condition": Case(["b = {n}"] * 30 + ["a > 10"], ["b"]),
    "a comparison of columns": Case(["a < b AND c BETWEEN {n} AND {n} + 4999"], ["c", "a < b"]),
    "columns in a disjunction": Case(["(a < 1000 OR b < 1000)"], ["(a < 1000L) OR (b < 1000L)"]),
    "a condition that does not recur": Case(["(a = {n} OR b = {n})"], ["a", "b"]),
}


@pytest.mark.parametrize("name", CASES)
def test_chosen_columns(spark: SparkSession, folder: Path, name: str) -> None:
    case = CASES[name]
    ask(spark, *case.conditions, times=8)
    planned = run(spark, "OPTIMIZE auto_t ZORDER BY AUTO DRY RUN")
    assert planned["clusteringColumns"] == case.columns and planned["numFilesAdded"] == FILES
    done = run(spark)
    assert done["clusteringColumns"] == case.columns
    assert done["remark"].startswith(f"AUTO chose ({', '.join(case.columns)}) for the ")
    assert len(data_files(folder)) == FILES
    query = case.conditions[0].format(n=1000)
    assert len(opened(spark.sql(f"SELECT count(s) FROM auto_t WHERE {query}"))) < FILES / 2


def test_a_single_query(spark: SparkSession, folder: Path) -> None:
    """The constants of one query do not become cuts, because it may never be asked again."""
    ask(spark, "(a < 1000 OR b < 1000)")
    done = run(spark)
    assert not any("<" in column for column in done["clusteringColumns"])
    assert "only recorded query" in done["remark"]


@pytest.mark.parametrize("mode", ["NO_CODEGEN", "FALLBACK"])
def test_join_keys(spark: SparkSession, folder: Path, mode: str) -> None:
    """Queries that restrict the table only through the keys of a join choose its column, with and
    without code generation."""
    spark.sql("CREATE TABLE days USING parquet AS SELECT id AS k, id DIV 40 AS m FROM range(20000)")
    query = "SELECT /*+ BROADCAST(days) */ count(s) FROM auto_t JOIN days ON b = k WHERE m = {n}"
    with settings(spark, spark__sql__codegen__factoryMode=mode):
        for number in range(8):
            spark.sql(query.format(n=number * 61 % 500)).collect()
    bridge.flush_workload(spark)
    done = run(spark)
    assert done["clusteringColumns"] == ["b"], done["remark"]
    df = spark.sql(query.format(n=77))
    assert df.collect()[0][0] == 40
    [scan] = [scan for scan in explain(df) if scan["joinKeys"]]
    assert len(scan["opened"]) <= 2


def test_queries_in_turn(spark: SparkSession, folder: Path) -> None:
    """Two kinds of conditions of one form that take turns both choose and both judge."""
    for number in range(8):
        low = number * 997
        ask(spark, f"a >= {low} AND a <= {low + 9} AND b >= 0 AND b <= 19998")
        ask(spark, f"a >= 0 AND a <= 19998 AND b >= {low} AND b <= {low + 9}")
    assert run(spark)["clusteringColumns"] == ["a", "b"]


def test_same_columns_again(spark: SparkSession, folder: Path) -> None:
    """A second run keeps the columns, and clusters only new files."""
    ask(spark, "b = {n}", times=8)
    run(spark)
    again = run(spark)
    assert again["numFilesAdded"] == 0 and again["clusteringColumns"] == ["b"]
    assert again["remark"].startswith(
        "AUTO keeps (b), the best columns for the 8 recorded queries."
    )


def test_other_queries(spark: SparkSession, folder: Path) -> None:
    """If the queries change, the columns change as soon as that saves more than it costs."""
    ask(spark, "b = {n}", times=4)
    run(spark)
    bridge.clear_workload(spark, "auto_t")
    ask(spark, "c = {n}")
    kept = run(spark)
    assert kept["clusteringColumns"] == ["b"]
    assert "less than a rewrite of the table would read" in kept["remark"]
    ask(spark, "c = {n}", times=4)
    changed = run(spark)
    assert changed["clusteringColumns"] == ["c"] and changed["numFilesRemoved"] == FILES
    assert "of the bytes that they read with (b)." in changed["remark"]


@pytest.mark.parametrize("declared", [False, True])
def test_deleted_files(spark: SparkSession, folder: Path, declared: bool) -> None:
    """If another process deletes files while AUTO reads them, the table is in use."""
    ask(spark, "b = {n}", times=8)
    jobs = spark.sparkContext.statusTracker()

    def delete() -> None:
        seen = set[int]()
        while len(seen) < 2:  # the first job reads only footers
            seen |= {*jobs.getActiveJobsIds()}
            time.sleep(0.001)
        for file in data_files(folder):
            file.unlink()

    other = threading.Thread(target=delete)
    other.start()
    if declared:
        spark.sql("ALTER TABLE auto_t SET TBLPROPERTIES ('zorder.clusterBy' = 'auto')")
        (one,) = pyzorder.maintain(spark, "auto_t")
        assert one.result == "in use", one.reason
    else:
        with pytest.raises(AnalysisException, match="ZORDER_CONFLICT"):
            run(spark)
    other.join()


@pytest.mark.parametrize("condition", ["a % 2 = 0", "a > -1", "secret = {n}"])
def test_queries_that_no_layout_helps(spark: SparkSession, folder: Path, condition: str) -> None:
    """If no clustering would help, files are only merged, and FULL is refused."""
    ask(spark, condition, "b IS NOT NULL", times=3)
    done = run(spark)
    assert not done["clusteringColumns"]
    assert done["remark"].startswith("AUTO only merges small files: ")
    assert run(spark, "OPTIMIZE auto_t FULL ZORDER BY AUTO")["remark"] == done["remark"]


@pytest.mark.parametrize("target", ["auto_t", "'{folder}'"])
def test_nothing_recorded(spark: SparkSession, folder: Path, target: str) -> None:
    statement = f"OPTIMIZE {target.format(folder=folder)} ZORDER BY AUTO"
    with pytest.raises(AnalysisException, match="ZORDER_NOTHING_RECORDED") as refused:
        spark.sql(statement)
    assert "zorder.workload.record" in str(refused.value)


def test_a_declared_table(spark: SparkSession, folder: Path) -> None:
    """With the property, OPTIMIZE without ZORDER BY chooses columns. Before queries have been
    recorded, it keeps the present ones."""
    spark.sql("ALTER TABLE auto_t SET TBLPROPERTIES ('zorder.clusterBy' = 'auto')")
    nothing = run(spark, "OPTIMIZE auto_t")
    assert not nothing["clusteringColumns"]
    assert nothing["remark"].startswith("No queries on ") and "only merges" in nothing["remark"]
    ask(spark, "b = {n}", times=8)
    assert run(spark, "OPTIMIZE auto_t")["clusteringColumns"] == ["b"]
    bridge.clear_workload(spark, "auto_t")
    kept = run(spark, "OPTIMIZE auto_t FULL")
    assert kept["clusteringColumns"] == ["b"] and "AUTO keeps (b)" in kept["remark"]
    described = spark.sql("DESCRIBE SKIPPING INDEX ON auto_t").collect()
    assert {row["column"] for row in described if row["clustered"]} == {"b"}


def test_inserts_into_a_declared_table(spark: SparkSession, folder: Path) -> None:
    """If writes are clustered, they use the columns that the last OPTIMIZE chose."""
    spark.sql(
        "ALTER TABLE auto_t SET TBLPROPERTIES"
        " ('zorder.clusterBy' = 'auto', 'zorder.write.cluster' = 'true')"
    )
    insert = "EXPLAIN INSERT INTO auto_t SELECT id, id, id, 'x', id FROM range(10)"
    assert "ClusteredRows" not in spark.sql(insert).collect()[0][0]
    ask(spark, "b = {n}", times=8)
    run(spark, "OPTIMIZE auto_t")
    assert "ClusteredRows [b#" in spark.sql(insert).collect()[0][0]


def test_a_column_called_auto(spark: SparkSession, database: str) -> None:
    """The word is a column's name if the table has such a column, or if it is in parentheses."""
    spark.sql("CREATE TABLE named USING parquet AS SELECT id AS Auto, id AS other FROM range(10)")
    done = run(spark, "OPTIMIZE named ZORDER BY auto")
    assert done["clusteringColumns"] == ["Auto"]
    assert done["remark"].startswith("AUTO is a column of ")
    spark.sql("ALTER TABLE named SET TBLPROPERTIES ('zorder.clusterBy' = 'auto')")
    assert run(spark, "OPTIMIZE named")["clusteringColumns"] == ["Auto"]
    spark.sql("CREATE TABLE unnamed USING parquet AS SELECT id FROM range(10)")
    with pytest.raises(AnalysisException, match="ZORDER_AUTO_NOT_ALONE"):
        spark.sql("OPTIMIZE unnamed ZORDER BY (auto)")


#: Texts that are not comparisons of the table's columns with constants.
FORGED = [
    f"s LIKE '{'%s' * 30}%x'",
    "CAST(b AS ARRAY<ARRAY<INT>>) = array()",
    "b = (SELECT max(b) FROM auto_t)",
    "b IN (SELECT b FROM auto_t)",
    "java_method('java.lang.System', 'setProperty', 'forged', 'yes') = 'x' OR b = 1",
    "raise_error('forged') = b",
    "b = rand()",
    "other.b = 1",
    "b = 1; DROP TABLE auto_t",
    "b = 1 UNION SELECT 1",
    "(" * 400 + "b = 1 + b" + ")" * 400,
    "b = 1e100000000BD",
    r"b = r'\' OR b = 1E100000000BD OR b = '",
    "b = 'x",
    "",
]


@pytest.mark.variants(4)
@pytest.mark.parametrize("text", FORGED, ids=range(len(FORGED)))
def test_forged_conditions(spark: SparkSession, folder: Path, text: str) -> None:
    """A forged condition has no effect, and is not evaluated."""
    record(folder, {text: {"2026-01-31": 5}})
    done = run(spark, "OPTIMIZE auto_t ZORDER BY AUTO DRY RUN")
    assert "no filter of the 5 recorded queries lets clustering skip files" in done["remark"]
    assert spark._jvm.java.lang.System.getProperty("forged") is None


def test_long_conditions(spark: SparkSession, folder: Path) -> None:
    """The conditions of the most frequent queries are used, up to a limit for their text."""
    lists = [
        f"a IN ({', '.join(str(number * 100 + i) for i in range(120))})" for number in range(190)
    ]
    record(folder, {"b = 5": {"2026-01-31": 1}, **{text: {"2026-01-31": 9} for text in lists}})
    assert run(spark, "OPTIMIZE auto_t ZORDER BY AUTO DRY RUN")["clusteringColumns"] == ["a"]
    record(folder, {"b = 5": {"2026-01-31": 10000}, **{text: {"2026-01-31": 9} for text in lists}})
    assert "b" in run(spark, "OPTIMIZE auto_t ZORDER BY AUTO DRY RUN")["clusteringColumns"]


def test_huge_counts(spark: SparkSession, folder: Path) -> None:
    """Forged counts do not overflow."""
    spark.sql("OPTIMIZE auto_t ZORDER BY (b)")
    every = dict.fromkeys(days(*range(1, 8), queries=1), (1 << 48) - 1)
    record(folder, {f"b = {number}": every for number in range(200)})
    spark.sql("INSERT INTO auto_t SELECT * FROM auto_t LIMIT 300")
    (planned,) = pyzorder.maintain(spark, "auto_t", dryRun=True)
    assert ", and 200,000,000,000 lookups were recorded lately" in planned.reason


def days(*numbers: int, queries: int) -> dict[str, int]:
    """The same number of queries on each of these days of January 2026."""
    return {f"2026-01-{number:02}": queries for number in numbers}


#: (the recorded queries, the columns that AUTO chooses)
DRIFTS: list[tuple[dict[str, dict[str, int]], list[str]]] = [
    ({"a = 5": days(*range(1, 11), queries=900), "b = 5": days(*range(11, 18), queries=30)}, ["b"]),
    ({"a = 5": days(1, 2, queries=900), "b = 5": days(3, 7, 8, 9, 10, 11, queries=9)}, ["a", "b"]),
    ({"a = 5": days(1, 3, 5, queries=9), "b = 5": days(*range(10, 21), queries=9)}, ["b"]),
    ({"a = 5": days(*range(1, 21), queries=9), "b = 5": days(20, queries=9)}, ["a", "b"]),
]


@pytest.mark.parametrize(("queries", "columns"), DRIFTS)
def test_drift(
    spark: SparkSession, folder: Path, queries: dict[str, dict[str, int]], columns: list[str]
) -> None:
    """Only the queries of the last seven days with queries count."""
    record(folder, queries)
    done = run(spark, "OPTIMIZE auto_t ZORDER BY AUTO DRY RUN")
    assert done["clusteringColumns"] == columns
    every_day = {day for of in queries.values() for day in of}
    assert ("of the last 7 days with queries" in done["remark"]) == (len(every_day) > 7)


def test_python(spark: SparkSession, folder: Path) -> None:
    ask(spark, "b = {n}", times=8)
    done = ZOrderTable.forName(spark, "auto_t").optimize().executeZOrderByAuto()
    assert metrics(done)["clusteringColumns"] == ["b"]


def test_maintain(spark: SparkSession, folder: Path) -> None:
    """`maintain` plans and runs the same OPTIMIZE, so it stays within its budget."""
    spark.sql("ALTER TABLE auto_t SET TBLPROPERTIES ('zorder.clusterBy' = 'auto')")
    spark.sql("CREATE SKIPPING INDEX ON auto_t")
    ask(spark, "b = {n}", times=8)
    (planned,) = pyzorder.maintain(spark, "auto_t", dryRun=True)
    assert planned.statement is not None and planned.statement.endswith(" ZORDER BY (b)")
    pyzorder.maintain(spark, "auto_t")
    assert run(spark, "OPTIMIZE auto_t DRY RUN")["numFilesAdded"] == 0
