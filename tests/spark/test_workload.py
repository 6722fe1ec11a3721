"""If the recording of the workload is turned on, queries are counted by their filters and join
keys."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyzorder import ZOrderTable, bridge
from pyzorder.advisor import advise
from tests.support.sampled import long
from tests.support.scans import settings
from tests.support.tables import ids

APPLICATION = "0123456789abcdef" * 2


@pytest.fixture
def table(spark: SparkSession, database: str, tmp_path: Path) -> Iterator[Path]:
    """The folder of the partitioned table `seen`, whose workload is recorded."""
    folder = tmp_path / "t"
    spark.sql(
        "CREATE TABLE seen (id BIGINT, day DATE, s STRING, st STRUCT<a: INT>, ssn STRING, p INT)"
        f" USING parquet PARTITIONED BY (p) LOCATION '{folder}' TBLPROPERTIES"
        " ('zorder.workload.record' = 'true', 'zorder.index.denyColumns' = 'ssn')"
    )
    spark.sql(
        "INSERT INTO seen SELECT id, DATE'2024-01-01' + int(id), 'x' || id,"
        " named_struct('a', int(id)), 'secret', int(id % 2) FROM range(20)"
    )
    spark.sql("CREATE TABLE small USING parquet AS SELECT id AS k, id % 3 AS m FROM range(20)")
    spark.sql("CREATE TABLE numbers USING parquet AS SELECT id FROM range(1000)")
    yield folder
    bridge.clear_workload(spark, "seen")


def recorded(spark: SparkSession, table: str = "seen") -> dict[tuple[str, str], int]:
    """The number of queries for each pair of filters and join keys."""
    bridge.flush_workload(spark)
    rows = ZOrderTable.forName(spark, table).workload().collect()
    return {(row.filters, ", ".join(row.join_keys)): row.queries for row in rows}


#: (a query, its filters, its join keys)
QUERIES = [
    ("SELECT * FROM seen WHERE id = 3", "(id = ?)", ""),
    ("SELECT * FROM seen WHERE id IN (1, 2, 3)", "(id IN (?))", ""),
    (f"SELECT * FROM seen WHERE id IN ({', '.join(map(str, range(40)))})", "(id IN (?))", ""),
    ("SELECT * FROM seen WHERE st.a > 3", "(st.`a` > ?)", ""),
    ("SELECT * FROM seen WHERE s LIKE 'x%' AND id = 5", "(id = ?) AND startswith(s, ?)", ""),
    ("SELECT * FROM seen WHERE s IS NOT NULL", "(s IS NOT NULL)", ""),
    ("SELECT * FROM seen WHERE p = 1 AND day > '2024-01-03'", "(day > ?) AND (p = ?)", ""),
    ("SELECT * FROM seen WHERE substring(s, 1, 1) = 'x'", "(substring(s, 1, 1) = ?)", ""),
    ("SELECT x FROM (SELECT id AS x FROM seen) WHERE x = 3", "(id = ?)", ""),
    ("SELECT * FROM seen WHERE rand() < 2 AND id = 9", "(id = ?)", ""),
    ("SELECT * FROM seen WHERE _metadata.file_path LIKE '%x%' AND id = 9", "(id = ?)", ""),
    ("SELECT * FROM seen JOIN small ON id = k WHERE m = 1", "", "id"),
    ("SELECT * FROM small JOIN seen ON id = k WHERE m = 1 AND s = 'x3'", "(s = ?)", "id"),
    ("SELECT * FROM seen WHERE id IN (SELECT k FROM small WHERE m = 1)", "", "id"),
    ("SELECT * FROM small LEFT JOIN seen ON id = k WHERE m = 1", "", "id"),
    ("SELECT k FROM small, (SELECT id FROM seen UNION ALL SELECT -1) WHERE id = k AND m = 1", "", "id"),
    ("SELECT k FROM small WHERE k = (SELECT max(id) FROM seen WHERE s = 'x3')", "(s = ?)", ""),
    ("CREATE TABLE copied USING parquet AS SELECT * FROM seen WHERE id = 11", "(id = ?)", ""),
]  # fmt: skip


@pytest.mark.parametrize(("query", "filters", "join_keys"), QUERIES)
def test_shapes(spark: SparkSession, table: Path, query: str, filters: str, join_keys: str) -> None:
    spark.sql(query).collect()
    assert recorded(spark) == {(filters, join_keys): 1}


#: Queries of which nothing is recorded.
UNRECORDED = [
    "SELECT * FROM seen",
    "SELECT * FROM seen WHERE ssn = 'secret'",
    "SELECT * FROM seen WHERE ssn = 'secret' AND id = 9",
    "SELECT * FROM seen JOIN small ON id = k",
    "SELECT * FROM small LEFT JOIN seen ON id = k",
    "SELECT * FROM seen LEFT JOIN small ON id = k AND m = 1",
    "SELECT * FROM small WHERE m = 1",
    "EXPLAIN SELECT * FROM seen WHERE id = 3",
    "OPTIMIZE seen ZORDER BY (id)",
    "REFRESH SKIPPING INDEX ON seen",
]


@pytest.mark.parametrize("statement", UNRECORDED)
def test_nothing_to_record(spark: SparkSession, table: Path, statement: str) -> None:
    spark.sql("CREATE SKIPPING INDEX ON seen")
    spark.sql(statement).collect()
    assert recorded(spark) == {}


def test_examples_and_counts(spark: SparkSession, table: Path) -> None:
    for number in range(40):
        spark.sql(f"SELECT * FROM seen WHERE id = {number}").collect()
        spark.sql(f"SELECT s FROM seen WHERE id = {-number} AND ssn <> 'secret'").collect()
    bridge.flush_workload(spark)
    [row] = ZOrderTable.forName(spark, "seen").workload().collect()
    assert (row.filters, row.queries, len(row.examples)) == ("(id = ?)", 40, 32)
    assert set(row.examples) <= {f"(id = {number}L)" for number in range(40)}
    [file] = (table / "_zorder" / "_workload").glob("*.json")
    text = file.read_text()
    assert "ssn" not in text and "secret" not in text


def test_off(spark: SparkSession, database: str, tmp_path: Path) -> None:
    spark.range(9).write.parquet(str(tmp_path / "t"))
    spark.sql(f"CREATE TABLE quiet USING parquet LOCATION '{tmp_path / 't'}'")
    spark.sql("SELECT * FROM quiet WHERE id = 3").collect()
    assert recorded(spark, "quiet") == {}
    assert not (tmp_path / "t" / "_zorder").exists()
    with settings(spark, spark__sql__zorder__workload__record="true"):
        spark.sql("SELECT * FROM quiet WHERE id = 3").collect()
        spark.read.parquet(str(tmp_path / "t")).where("id > 3").collect()
    assert recorded(spark, "quiet") == {("(id = ?)", ""): 1, ("(id > ?)", ""): 1}
    bridge.clear_workload(spark, "quiet")


def test_the_property_can_be_overruled(spark: SparkSession, table: Path) -> None:
    with settings(spark, spark__sql__zorder__workload__record="false"):
        spark.sql("SELECT * FROM seen WHERE id = 3").collect()
    assert recorded(spark) == {}


def ranges(*bounds: tuple[int, int]) -> str:
    """A condition that `id` lies in one of the ranges, as Spark writes it."""
    low, high = bounds[-1]
    last = f"(id = {low}L)" if low == high else f"((id >= {low}L) AND (id <= {high}L))"
    return f"({ranges(*bounds[:-1])} OR {last})" if bounds[1:] else last


#: (a query, the example that is recorded)
KEYS = [
    ("SELECT * FROM seen JOIN small ON id = k WHERE m = 1", ["(id IN (1L, 4L, 7L, 10L, 13L, 16L, 19L))"]),
    ("SELECT * FROM small JOIN seen ON id = k WHERE m = 2 AND s = 'x5' AND id < 9",
     ["(id < 9L) AND (s = 'x5') AND (id IN (2L, 5L, 8L))"]),
    ("SELECT * FROM seen WHERE day IN (SELECT DATE'2024-01-01' + int(m) FROM small WHERE k < 2)",
     ["(day IN (DATE '2024-01-01', DATE '2024-01-02'))"]),
    ("SELECT * FROM seen JOIN small ON s = concat('x', k) AND id = k WHERE m = 1 AND length(s) = 3",
     ["(length(s) = 3) AND (s = concat('x', CAST(id AS STRING))) AND"
      " (id IN (1L, 4L, 7L, 10L, 13L, 16L, 19L)) AND (s IN ('x1', 'x10', 'x13', 'x16', 'x19', 'x4', 'x7'))"]),
    ("SELECT * FROM seen JOIN (SELECT /*+ BROADCAST */ a.id * 100 + b.id AS k FROM numbers a, numbers b"
     " WHERE a.id < 4 AND b.id < 10 AND b.id != 5) ON seen.id = k",
     [ranges(*((100 * n + low, 100 * n + high) for n in range(4) for low, high in [(0, 4), (6, 9)]))]),
    ("SELECT * FROM seen JOIN (SELECT /*+ BROADCAST */ id * id AS k FROM numbers WHERE id < 40 AND id % 2 = 0)"
     " ON seen.id = k", [ranges((0, 64), *((n * n, n * n) for n in range(10, 39, 2)))]),
    ("SELECT /*+ MERGE(small) */ * FROM seen JOIN small ON id = k WHERE m = 1", []),
    ("SELECT * FROM seen JOIN small ON id + 0.5D = k + 0.5D WHERE m = 1", []),
    ("SELECT * FROM seen LEFT JOIN small ON id = k AND m = 1 WHERE p = 1", ["(p = 1)"]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "examples"), KEYS)
def test_values_of_join_keys(
    spark: SparkSession, table: Path, query: str, examples: list[str]
) -> None:
    """The keys of a broadcast side are recorded, as at most 16 values or ranges."""
    spark.sql(query).collect()
    bridge.flush_workload(spark)
    [row] = ZOrderTable.forName(spark, "seen").workload().collect()
    assert row.examples == examples


@pytest.mark.parametrize(
    ("multiples", "condition"),
    [("id % 2 = 0", "(id IN (0L, 6L, 12L, 18L))"), ("id = 50", "(id IN (150L))")],
)
def test_values_outside_the_table(
    spark: SparkSession, table: Path, multiples: str, condition: str
) -> None:
    """Keys that no indexed file contains are left out, unless no other keys remain."""
    spark.sql("CREATE SKIPPING INDEX ON seen")
    spark.sql(
        "SELECT * FROM seen JOIN (SELECT /*+ BROADCAST */ id * 3 AS k FROM numbers"
        f" WHERE {multiples}) ON seen.id = k"
    ).collect()
    bridge.flush_workload(spark)
    [row] = ZOrderTable.forName(spark, "seen").workload().collect()
    assert row.examples == [condition]


#: A denied column of the other side of the join, a condition on that side, and whether the query is
#: recorded.
DENIED_KEYS = [("m", "m = 1", False), ("k", "m = 1", False), ("m", "k < 2", True)]


@pytest.mark.parametrize(("column", "condition", "shown"), DENIED_KEYS)
def test_keys_that_could_reveal_denied_columns(
    spark: SparkSession, table: Path, column: str, condition: str, shown: bool
) -> None:
    spark.sql(f"ALTER TABLE small SET TBLPROPERTIES ('zorder.index.denyColumns' = '{column}')")
    spark.sql(f"SELECT seen.* FROM seen JOIN small ON id = k WHERE {condition}").collect()
    bridge.flush_workload(spark)
    examples = [row.examples for row in ZOrderTable.forName(spark, "seen").workload().collect()]
    assert examples == ([["(id < 2L) AND (id IN (0L, 1L))"]] if shown else [])


#: Queries that use the denied column `ssn` only for their result.
PASSING = [
    "SELECT * FROM seen WHERE id = 3",
    "SELECT CAST(ssn AS BINARY) AS x, id FROM seen WHERE id = 3",
    "WITH c AS (SELECT * FROM seen) SELECT * FROM c WHERE id = 3",
    "WITH c AS (SELECT ssn, id FROM seen), d AS (SELECT id AS x, ssn FROM c) SELECT * FROM d WHERE x = 3",
    "SELECT id, ssn FROM seen WHERE id = 3 UNION ALL SELECT k, 'x' FROM small WHERE k < 0",
    "SELECT * FROM seen WHERE id = 3 LIMIT 5 OFFSET 1",
    "SELECT day, p, count(*) FROM seen WHERE id = 3 GROUP BY ROLLUP(day, p)",
    "SELECT /*+ REPARTITION(2) */ * FROM seen WHERE id = 3",
    "SELECT * FROM seen, LATERAL (SELECT seen.id + 1) WHERE id = 3",
    "SELECT DISTINCT * FROM seen WHERE id = 3 ORDER BY day",
    "SELECT *, row_number() OVER (PARTITION BY day ORDER BY p) FROM seen WHERE id = 3",
    "SELECT * FROM padded WHERE id = 3",
]  # fmt: skip


@pytest.mark.variants(4)
@pytest.mark.parametrize("query", PASSING)
def test_results_with_denied_columns(spark: SparkSession, table: Path, query: str) -> None:
    spark.sql(
        "CREATE TABLE padded (id BIGINT, ssn CHAR(9)) USING parquet TBLPROPERTIES"
        " ('zorder.workload.record' = 'true', 'zorder.index.denyColumns' = 'ssn')"
    )
    spark.sql(query).collect()
    spark.sql(query).show()
    read = "padded" if "padded" in query else "seen"
    [(_, queries)] = recorded(spark, read).items()
    assert queries == 2
    bridge.clear_workload(spark, "padded")


def test_settings_of_the_past(spark: SparkSession, table: Path) -> None:
    """The settings count with which a query was planned, not those when it is recorded."""
    wide = spark.table("seen").selectExpr("*", *(f"id + {n} AS x{n}" for n in range(60)))
    for number in range(6):
        with settings(spark, spark__sql__zorder__index__denyColumns="s"):
            wide.where(f"s = '4711{number}'").count()
        with settings(spark, spark__sql__zorder__workload__record="false"):
            wide.where(f"id = 4711{number}").count()
    assert recorded(spark) == {}


def test_another_source(spark: SparkSession, table: Path, tmp_path: Path) -> None:
    """Joins with tables of the second data source API are recorded."""
    spark.table("small").write.json(str(tmp_path / "json"))
    with settings(spark, spark__sql__sources__useV1SourceList="parquet"):
        other = spark.read.json(str(tmp_path / "json")).where("m = 1")
        spark.table("seen").join(other, spark.table("seen").id == other.k).collect()
    assert recorded(spark) == {("", "id"): 1}


#: Queries on the denied column `ssn` from whose conditions Spark derives others.
DERIVED = [
    "SELECT count(*) FROM seen WHERE ssn = s AND ssn = '4711'",
    "SELECT count(*) FROM seen WHERE ssn = s AND ssn IN ('4711', '4712')",
    "SELECT count(*) FROM seen WHERE s = concat(ssn, '') AND ssn = '4711'",
    "SELECT count(*) FROM seen x JOIN seen y ON x.ssn = y.s WHERE x.ssn = '4711'",
    "SELECT count(*) FROM (SELECT ssn AS x, s FROM seen) WHERE x = s AND x = '4711'",
    "SELECT count(*) FROM seen x JOIN seen y ON x.ssn = y.s JOIN seen z ON y.s = z.s"
    " WHERE x.ssn = '4711'",
    "SELECT count(*) FROM (SELECT ssn FROM seen UNION ALL SELECT s FROM seen) u JOIN seen"
    " ON u.ssn = seen.s WHERE u.ssn = '4711'",
    "SELECT count(*) FROM seen WHERE s IN (SELECT ssn FROM seen WHERE ssn = '4711')",
    "WITH c AS (SELECT ssn AS x, s, id FROM seen) SELECT count(*) FROM c JOIN c d ON c.id = d.id"
    " WHERE d.x = d.s AND d.x = '4711' AND c.s = d.x",
    "SELECT count(*) FROM seen x WHERE x.ssn = '4711' AND EXISTS (SELECT * FROM seen y"
    " WHERE y.s = x.ssn AND y.id > 3)",
    "SELECT count(*) FROM seen JOIN (SELECT max(ssn) AS m FROM seen GROUP BY id) ON s = m"
    " WHERE m = '4711'",
    *(f"SELECT count(*) FROM seen WHERE ssn = '4711' AND {condition}" for condition in [
        "s > ssn", "s IN (ssn, 'zz')", "startswith(s, ssn)", "s LIKE concat(ssn, '%')",
        "id < CAST(ssn AS BIGINT)", "concat(s, ssn) > 'y'", "(s > ssn OR id = 3)",
        "CASE WHEN s > ssn THEN id > 3 ELSE id > 4 END"]),
    "SELECT count(*) FROM seen x JOIN seen y ON y.s > x.ssn AND x.id = y.id"
    " WHERE x.ssn = '4711' AND y.id = 7",
    "SELECT count(*) FROM seen WHERE ssn = '4711' AND s = '4711'",
    "WITH c AS (SELECT id, ssn AS x FROM seen) SELECT count(*) FROM c JOIN seen ON s = x WHERE x = '4711'",
    "SELECT count(*) FROM (SELECT s FROM seen UNION ALL SELECT ssn FROM seen) u WHERE u.s = '4711'",
    "SELECT s, count(*) FROM seen GROUP BY ROLLUP(s, ssn) HAVING ssn = '4711' AND s = '4711'",
    "SELECT q FROM (SELECT '4711' AS q, ssn FROM seen) WHERE ssn = q INTERSECT SELECT s FROM seen",
    "SELECT count(*) FROM seen x LEFT JOIN seen y ON y.s > x.ssn AND x.ssn = '4711' AND y.id = x.id",
]  # fmt: skip


@pytest.mark.variants(6)
@pytest.mark.parametrize("query", DERIVED)
def test_constants_of_denied_columns(spark: SparkSession, table: Path, query: str) -> None:
    spark.sql(query).collect()
    bridge.flush_workload(spark)
    files = list((table / "_zorder" / "_workload").glob("*.json"))
    assert not [file for file in files if "4711" in file.read_text()]


#: Joins whose keys are values that another table's denied column selects or contains.
REVEALED = [
    "SELECT count(*) FROM seen JOIN (SELECT k FROM keys WHERE k = (SELECT max(ssn) FROM priv)) ON id = k",
    "SELECT count(*) FROM seen JOIN keys ON id = k WHERE k >= (SELECT max(ssn) FROM priv) AND k < 4800",
    "SELECT count(*) FROM seen WHERE id IN (SELECT k FROM keys WHERE k ="
    " (SELECT max(ssn) FROM priv WHERE g = 1))",
    "SELECT count(*) FROM seen JOIN (SELECT k + (SELECT max(ssn) FROM priv) - k AS kk FROM keys"
    " WHERE m = 1) ON id = kk",
    "SELECT count(*) FROM seen JOIN keys ON id = k WHERE k = (SELECT max(ssn) FROM priv)",
    "SELECT count(*) FROM seen JOIN keys ON id = k WHERE m IN (SELECT g FROM priv WHERE ssn = 4711)",
    "SELECT count(*) FROM seen JOIN cached ON id = n WHERE n >= 0",
    "SELECT /*+ BROADCAST(z) */ count(*) FROM keys x JOIN (SELECT /*+ MERGE(keys) */ keys.k FROM seen"
    " JOIN keys ON id = keys.k JOIN priv ON m = g WHERE priv.ssn = 4711 AND keys.k > 0) z ON x.k = z.k",
    "SELECT count(*) FROM (SELECT TRANSFORM(ssn) USING 'cat' AS (x STRING) FROM priv) JOIN seen"
    " ON s = x WHERE x = '4711'",
    "SELECT count(*) FROM seen WHERE id = secret",
    "WITH RECURSIVE c AS (SELECT g + 4710 AS n FROM priv WHERE ssn > 4000 UNION ALL SELECT n + 1 FROM c"
    " WHERE n < 4711) SELECT count(*) FROM seen JOIN c ON id = n WHERE n > 0",
    "SELECT count(*) FROM seen JOIN (SELECT g + 4710 AS n FROM priv ORDER BY ssn LIMIT 1) ON id = n"
    " WHERE n > 0",
    "SELECT count(*) FROM seen JOIN computed ON id = n WHERE n > 0",
    "WITH c AS (SELECT g + 4710 AS n FROM priv WHERE ssn = 4711 AND rand() >= 0) SELECT count(*)"
    " FROM seen JOIN (SELECT * FROM c WHERE n > 0) ON id = n JOIN c d ON d.n = seen.id",
]  # fmt: skip


@pytest.mark.variants(4)
@pytest.mark.parametrize("query", REVEALED)
def test_keys_that_another_table_selects(spark: SparkSession, table: Path, query: str) -> None:
    spark.sql(
        "CREATE TABLE keys USING parquet AS SELECT 4700 + id AS k, id % 2 AS m FROM range(20)"
    )
    spark.sql("CREATE TABLE priv USING parquet AS SELECT 1L AS g, 4711L AS ssn")
    spark.sql("ALTER TABLE priv SET TBLPROPERTIES ('zorder.index.denyColumns' = 'ssn')")
    spark.sql("CACHE TABLE cached AS SELECT g + 4710 AS n FROM priv WHERE ssn = 4711")
    computed = spark.table("priv").rdd.map(lambda row: (row.ssn,))
    spark.createDataFrame(computed, "n BIGINT").createOrReplaceTempView("computed")
    spark.sql("DECLARE OR REPLACE VARIABLE secret BIGINT")
    spark.sql("SET VARIABLE secret = (SELECT max(ssn) FROM priv)")
    spark.sql(query).collect()
    spark.sql("DROP TEMPORARY VARIABLE secret")
    spark.catalog.uncacheTable("cached")
    spark.catalog.dropTempView("cached")
    spark.catalog.dropTempView("computed")
    bridge.flush_workload(spark)
    files = list((table / "_zorder" / "_workload").glob("*.json"))
    assert not [file for file in files if "4711" in file.read_text()]


def test_a_folder_that_is_named_like_a_partition(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is written above the folder that a query reads, or into a part of a table."""
    part = tmp_path / "t" / "p=1"
    spark.range(9).write.parquet(str(part))
    with settings(spark, spark__sql__zorder__workload__record="true"):
        spark.read.parquet(str(part)).where("id = 3").collect()
        bridge.flush_workload(spark)
    assert not list(tmp_path.rglob("_zorder"))


def look_up(spark: SparkSession) -> None:
    spark.sql("SELECT * FROM seen WHERE id = 3").collect()


def test_several_applications(spark: SparkSession, table: Path) -> None:
    look_up(spark)
    assert recorded(spark) == {("(id = ?)", ""): 1}
    folder = table / "_zorder" / "_workload"
    [own] = folder.glob("*.json")
    shutil.copy(own, folder / f"_{APPLICATION}.7.json")
    (folder / f"_{APPLICATION}.6.json").write_text("{}")  # left by a killed application
    assert recorded(spark) == {("(id = ?)", ""): 2}
    look_up(spark)
    assert recorded(spark) == {("(id = ?)", ""): 3}
    assert sorted(path.name[33:] for path in folder.glob("*.json")) == [".2.json", ".6.json", ".7.json"]  # fmt: skip


#: An application that records three queries, and then ends as the format argument says.
APPLICATION_THAT_ENDS = """
from pyzorder import bridge
from tests.support import sessions
spark = sessions.session(**{{"spark.sql.zorder.workload.record": "true"}})
for number in range(3):
    spark.read.parquet({path!r}).where(f"id = {{number}}").collect()
{ending}
"""

#: How an application ends, and the number of queries that are counted.
ENDINGS = {
    "spark.stop()": 3,
    "bridge.flush_workload(spark); spark._jvm.java.lang.Runtime.getRuntime().halt(1)": 3,
    "spark._jvm.java.lang.Runtime.getRuntime().halt(1)": 0,
}


@pytest.mark.parametrize("ending", long(ENDINGS, "spark.stop()"))
def test_the_end_of_an_application(spark: SparkSession, tmp_path: Path, ending: str) -> None:
    """An application whose JVM is killed loses only what has not been written yet."""
    path = str(tmp_path / "t")
    spark.range(9).write.parquet(path)
    script = APPLICATION_THAT_ENDS.format(path=path, ending=ending)
    folder = Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, "-c", script], cwd=folder, stderr=subprocess.DEVNULL, timeout=120
    )
    rows = ZOrderTable.forPath(spark, path).workload().collect()
    assert sum(row.queries for row in rows) == ENDINGS[ending]


def test_the_oldest_applications_are_forgotten(spark: SparkSession, table: Path) -> None:
    folder = table / "_zorder" / "_workload"
    folder.mkdir(parents=True)
    for number in range(70):
        file = folder / f"_{number:032x}.1.json"
        file.write_text("{}")
        os.utime(file, (1_000_000 + number, 1_000_000 + number))
    look_up(spark)
    assert recorded(spark) == {("(id = ?)", ""): 1}
    kept = {path.name[1:33] for path in folder.glob("*.json")}
    assert len(kept) == 64
    assert kept > {f"{number:032x}" for number in range(7, 70)}


def test_clear(spark: SparkSession, table: Path) -> None:
    look_up(spark)
    assert recorded(spark) != {}
    bridge.clear_workload(spark, "seen")
    assert recorded(spark) == {}
    assert not (table / "_zorder").exists()
    look_up(spark)
    assert recorded(spark) == {("(id = ?)", ""): 1}


#: What happens to the table's folder, and the number of queries that are counted afterwards.
CHANGES: dict[str, tuple[Callable[[SparkSession, Path], object], int]] = {
    "its counts are deleted": (
        lambda spark, table: shutil.rmtree(table / "_zorder" / "_workload"), 1
    ),
    "its metadata is deleted": (lambda spark, table: shutil.rmtree(table / "_zorder"), 1),
    "it is optimized": (
        lambda spark, table: spark.sql("OPTIMIZE seen ZORDER BY (id)").collect(), 2
    ),
    "it is vacuumed": (lambda spark, table: spark.sql("VACUUM seen").collect(), 2),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_the_folder(spark: SparkSession, table: Path, change: str) -> None:
    look_up(spark)
    recorded(spark)
    do, queries = CHANGES[change]
    do(spark, table)
    look_up(spark)
    assert recorded(spark) == {("(id = ?)", ""): queries}
    assert ids(spark.table("seen")) == list(range(20))


def test_a_deleted_table_is_not_created_again(spark: SparkSession, table: Path) -> None:
    look_up(spark)
    shutil.rmtree(table)
    bridge.flush_workload(spark)
    assert not table.exists()


GOOD = {"filters": ["(id = ?)"], "joinKeys": [], "days": {"2026-01-31": 5}, "last": 1, "examples": [["(id = 3L)"]]}  # fmt: skip

#: Contents of a file that nobody but an attacker would write.
FORGED = {
    "empty": "",
    "no JSON": "{",
    "a list": "[]",
    "null": "null",
    "another version": json.dumps({"formatVersion": 1, "shapes": [GOOD]}),
    "no shapes": json.dumps({"formatVersion": 3}),
    "deep": '{"formatVersion": 3, "shapes": ' + "[" * 100_000,
    "long": json.dumps({"formatVersion": 3, "shapes": [GOOD], "x": "x" * (5 << 20)}),
    "many shapes": json.dumps({"formatVersion": 3, "shapes": [GOOD] * 201}),
    **{
        f"{key} is {value!r:.20}": json.dumps({"formatVersion": 3, "shapes": [{**GOOD, key: value}]})
        for key, value in [
            ("filters", "x"), ("filters", [1]), ("filters", ["x" * 1001]), ("filters", None),
            ("joinKeys", {}), ("joinKeys", ["k"] * 17), ("days", {}), ("days", 5),
            ("days", {"2026-01-31": 0}), ("days", {"2026-01-31": -1}), ("days", {"today": 5}),
            ("days", {"2026-01-31": "x"}), ("days", {"2026-01-31": 2**63 - 1}),
            ("days", {f"20{year}-01-01": 1 for year in range(50, 81)}),
            ("days", {"0000-01-01": 5}), ("days", {"+10000-01-01": 5}),
            ("days", {"-999999999-01-01": 5}),
            ("last", -1), ("last", 253402300799999), ("last", 2**62), ("last", 2**63 - 1),
            ("examples", [["a", "b"]]), ("examples", [["a"]] * 33), ("examples", "x"),
            ("examples", [["a"] * 33]),
        ]
    },
}  # fmt: skip


@pytest.mark.parametrize("case", FORGED)
def test_forged_files(spark: SparkSession, table: Path, case: str) -> None:
    folder = table / "_zorder" / "_workload"
    folder.mkdir(parents=True)
    (folder / f"_{APPLICATION}.1.json").write_text(FORGED[case])
    spark.sql("SELECT * FROM zorder_workload('seen')").collect()
    look_up(spark)
    assert recorded(spark) == {("(id = ?)", ""): 1}


def test_days(spark: SparkSession, table: Path) -> None:
    """The last 30 days with queries are kept, and days in the future are ignored."""
    today = datetime.datetime.now(datetime.timezone.utc).date()
    folder = table / "_zorder" / "_workload"
    folder.mkdir(parents=True)
    for application, first, step in [("1" * 32, 1, 2), ("2" * 32, 21, 2), ("3" * 32, -400, 9)]:
        days = [today - datetime.timedelta(first + step * number) for number in range(30)]
        shapes = [{**GOOD, "days": {str(day): 1 for day in days}}]
        text = json.dumps({"formatVersion": 3, "shapes": shapes})
        (folder / f"_{application}.1.json").write_text(text)
    look_up(spark)
    [row] = ZOrderTable.forName(spark, "seen").workload().collect()
    kept = {today - datetime.timedelta(number): 1 for number in range(1, 58, 2)}
    twice = {day: 2 for day in kept if (today - day).days >= 21}
    assert row.days == {today: 1, **kept, **twice}
    assert row.queries == sum(row.days.values())


def test_strange_entries(spark: SparkSession, table: Path, tmp_path: Path) -> None:
    """Links, folders and pipes are not read, and a count behind a link is not deleted."""
    folder, good = (
        table / "_zorder" / "_workload",
        json.dumps({"formatVersion": 3, "shapes": [GOOD]}),
    )
    folder.mkdir(parents=True)
    (tmp_path / "victim.json").write_text(good)
    (folder / f"_{APPLICATION}.1.json").symlink_to(tmp_path / "victim.json")
    os.mkfifo(folder / f"_{'1' * 32}.1.json")
    (folder / f"_{'2' * 32}.1.json").mkdir()
    (folder / f"_{'3' * 32}.99999999999999999999.json").write_text(good)
    assert recorded(spark) == {}
    bridge.clear_workload(spark, "seen")
    assert (tmp_path / "victim.json").read_text() == good


@pytest.mark.parametrize("linked", ["_zorder", "_zorder/_workload"])
def test_a_linked_folder(spark: SparkSession, table: Path, tmp_path: Path, linked: str) -> None:
    """Nothing is written or deleted through a link."""
    victim = tmp_path / "victim"
    (victim / "_workload").mkdir(parents=True)
    (victim / f"_{APPLICATION}.1.json").write_text("{}")
    (table / linked).parent.mkdir(exist_ok=True)
    (table / linked).symlink_to(victim)
    look_up(spark)
    assert recorded(spark) == {}
    bridge.clear_workload(spark, "seen")
    assert sorted(path.name for path in victim.rglob("*")) == [
        f"_{APPLICATION}.1.json",
        "_workload",
    ]


def test_advice(spark: SparkSession, table: Path) -> None:
    for number in range(5):
        spark.sql(f"SELECT * FROM seen WHERE id = {number} AND st.a = 3").collect()
    bridge.flush_workload(spark)
    advice = advise(spark, "seen")
    assert (advice.statements, advice.readings) == (5, 5)
    assert [(use.column, use.equality) for use in advice.columns] == [("id", 5), ("st.a", 5)]
