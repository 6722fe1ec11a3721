"""pyzorder.maintain runs the statements that pay off, and one table's failure does not stop it."""

from __future__ import annotations

import json
import math
import re
import shutil
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import pyzorder
from pyzorder import ZOrderError, bridge
from pyzorder.cli.app import app
from pyzorder.maintenance import Outcome
from pyzorder.maintenance.decisions import Task
from pyzorder.maintenance.maintain import Maintenance, plainly
from pyzorder.maintenance.outlook import Outlook, examine
from tests.support import forged_records
from tests.support.processes.command_line import stopped
from tests.support.recorded_workload import record
from tests.support.sampled import long
from tests.support.scans import settings
from tests.support.tables import aim_at, data_files, recorded_runs, rows_of

#: Partition columns: the type and two expressions over `part`, which is 0, 1 or 2. The second one
#: is null in one partition.
PARTITIONS = {
    "INT": "part",
    "STRING": "array('it''s a \\\\ `b`', '${x}', '=ü %2F')[part]",
    "DATE": "date_add(DATE'2024-02-28', cast(part AS INT))",
    "TIMESTAMP": "TIMESTAMP'2024-03-31 01:59:59.5' + make_dt_interval(0, part)",
    "DECIMAL(9,2)": "cast(part - 1.25 AS DECIMAL(9,2))",
    "BOOLEAN": "part = 1",
    "DOUBLE": "array(-0.5D, 1e300, double('NaN'))[part]",
}


def write(spark: SparkSession, folder: Path, first: int = 0, rows: int = 4000) -> None:
    """Appends rows in 4 files, each of which contains all values of `a`."""
    spark.range(first, first + rows, 1, 4).selectExpr("id", "xxhash64(id) % 1000 AS a").write.mode(
        "append"
    ).parquet(str(folder))


def clustered(spark: SparkSession, folder: Path) -> None:
    """Makes a table of 8 clustered files and 4 files that are not clustered."""
    write(spark, folder)
    aim_at(spark, folder, 8)
    spark.sql(f"OPTIMIZE '{folder}' ZORDER BY (a)")
    write(spark, folder, 4000)


def results(outcomes: list[Outcome]) -> list[tuple[str, str | None]]:
    return [(one.result, one.summary() or None) for one in outcomes]


def test_whole_tables(spark: SparkSession, tmp_path: Path) -> None:
    """OPTIMIZE runs where it pays off, and a second run finds nothing to do."""
    tables = [str(tmp_path / name) for name in ("t", "u")]
    for table in tables:
        clustered(spark, Path(table))
    before = [rows_of(spark.read.parquet(table)) for table in tables]
    planned = pyzorder.maintain(spark, *tables, dryRun=True)
    assert results(planned) == [("planned", "OPTIMIZE")] * 2
    assert [recorded_runs(spark, table) for table in tables] == [["OPTIMIZE"]] * 2
    done = pyzorder.maintain(spark, *tables)
    assert results(done) == [("done", "OPTIMIZE")] * 2
    for one in done:
        assert one.reason.startswith("Pays off: ")
        assert one.bytes > 0 and one.saved > 0 and one.seconds
    assert [rows_of(spark.read.parquet(table)) for table in tables] == before
    again = pyzorder.maintain(spark, *tables)
    assert [(one.result, one.reason) for one in again] == [
        ("nothing", "Nothing to do: the files are already clustered by a.")
    ] * 2


#: (a recorded condition, the number of queries, whether they restrict the clustering column)
LOOKUPS: list[tuple[str, int, bool]] = [
    ("a = 5", 1, True),
    ("a = 5", 50, True),
    ("A >= 990", 50, True),
    ("(a = 5 OR a IN (7, 8))", 50, True),
    ("(a = 5 OR id = 5)", 50, False),
    ("a != 5", 50, False),
    ("a IS NOT NULL", 50, False),
    ("id = 5", 50, False),
    ("no SQL", 50, False),
]


@pytest.mark.parametrize(("condition", "queries", "counts"), LOOKUPS)
def test_recorded_lookups(
    spark: SparkSession, tmp_path: Path, condition: str, queries: int, counts: bool
) -> None:
    """If queries are recorded, a rewrite pays off if those on the clustering columns are worth
    it."""
    clustered(spark, tmp_path)
    record(tmp_path, {condition: {"2026-01-31": queries}})
    (planned,) = pyzorder.maintain(spark, str(tmp_path), dryRun=True)
    lookups = queries if counts else 0
    said = {
        0: "but none of the recent recorded queries restricts a clustering column",
        1: "and 1 lookup was recorded lately",
    }.get(lookups, f"and {lookups} lookups were recorded lately")
    assert planned.reason.endswith(f" of the table, {said}.")
    assert (planned.result == "planned") == (lookups > 1)


@pytest.mark.parametrize(("lookups", "pays"), [(1, False), (2, True)])
def test_few_lookups_of_small_files(
    spark: SparkSession, database: str, tmp_path: Path, lookups: int, pays: bool
) -> None:
    """The decision agrees with the verdict, also if opening the files costs more than reading
    them."""
    folder = tmp_path / "db" / "small"
    spark.sql(
        "CREATE TABLE small USING parquet TBLPROPERTIES ('zorder.clusterBy' = 'a') AS SELECT "
        "/*+ REPARTITION(12) */ id * 7919 % 40000 AS a, sha(string(id)) AS b FROM range(40000)"
    )
    aim_at(spark, folder, 32)
    spark.sql("CREATE SKIPPING INDEX ON small")
    record(folder, {"a = 5": {"2026-01-31": lookups}})
    (planned,) = pyzorder.maintain(spark, "small", dryRun=True)
    assert planned.result == ("planned" if pays else "nothing")
    assert planned.reason.startswith("Pays off:" if pays else "Does not pay off:")
    assert planned.columns == (("a",) if pays else ())


def test_partitions_of_a_table_without_an_index(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    """If OPTIMIZE creates the index for some partitions, REFRESH adds the others."""
    folder = tmp_path / "db" / "parts"
    spark.sql(
        "CREATE TABLE parts (a BIGINT, b STRING, p INT) USING parquet PARTITIONED BY (p) "
        "TBLPROPERTIES ('zorder.clusterBy' = 'auto')"
    )
    spark.sql(
        "INSERT INTO parts SELECT /*+ REPARTITION(4) */ id * 7919 % 40000, sha(string(id)), id % 3 "
        "FROM range(40000)"
    )
    shutil.rmtree(folder / "_zorder", ignore_errors=True)
    aim_at(spark, folder, 24)
    with settings(spark, spark__sql__zorder__workload__record="true"):
        for number in range(30):
            spark.sql(f"SELECT b FROM parts WHERE p = 1 AND a = {number}").collect()
    bridge.flush_workload(spark)
    planned = pyzorder.maintain(spark, "parts", dryRun=True)

    def fails(work: Callable[[], Any], title: str, deadline: float) -> Any:
        if title.startswith("OPTIMIZE"):
            raise OSError("no space")
        return work()

    maintenance = Maintenance(spark, math.inf, math.inf, False, fails)
    (failed,) = maintenance.run(["parts"], named=True)  # there is no index to refresh
    assert failed.result == "failed"
    done = pyzorder.maintain(spark, "parts")
    assert results(done) == [("done", "OPTIMIZE, 1 of 3 partitions"), ("done", "REFRESH")]
    assert [one.statement for one in planned] == [one.statement for one in done]
    assert "AUTO chose (a) for the 30 recorded queries" in done[0].reason
    (again,) = pyzorder.maintain(spark, "parts")
    bridge.clear_workload(spark, "parts")
    assert again.result == "nothing"


@pytest.mark.parametrize("data_type", long(PARTITIONS, "STRING", "TIMESTAMP", "DOUBLE"))
@pytest.mark.parametrize("by_path", long([False, True], False))
def test_partitions(
    spark: SparkSession, database: str, tmp_path: Path, data_type: str, by_path: bool
) -> None:
    """If the budget does not suffice for all partitions, some are rewritten, whatever their values
    are. The next run rewrites the others."""
    folder = tmp_path / "t"
    spark.sql(
        f"CREATE TABLE t (id BIGINT, a BIGINT, `p q` {data_type}, r STRING) USING parquet "
        f"PARTITIONED BY (`p q`, r) LOCATION '{folder}'"
    )

    def insert(first: int, parts: str) -> None:
        value = f"cast({PARTITIONS[data_type]} AS {data_type})"
        with settings(spark, spark__sql__variable__substitute="false"):
            spark.sql(
                f"INSERT INTO t SELECT /*+ REPARTITION(4) */ id, xxhash64(id) % 100, {value}, "
                "if(part = 0, NULL, 'r') FROM (SELECT id, id % 3 AS part FROM "
                f"range({first}, {first + 600})) WHERE part IN ({parts})"
            )

    insert(0, "0, 1, 2")
    aim_at(spark, folder, 12)
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    insert(1000, "0, 2")
    table = spark.table("t")
    before = rows_of(table)
    target = str(folder) if by_path else "t"
    parts = bridge.outlook(spark, target)["parts"]
    with settings(spark, spark__sql__variable__substitute="false"):
        assert [table.where(part["where"]).count() for part in parts] == [400, 400]
    (planned,) = pyzorder.maintain(spark, target, dryRun=True)
    done, postponed = pyzorder.maintain(spark, target, budget=int(planned.bytes * 0.7))
    assert (done.result, done.partitions) == ("done", (1, 2)), done
    assert (postponed.result, postponed.partitions) == ("postponed", (1, 2))
    assert done.bytes + postponed.bytes == planned.bytes
    assert rows_of(spark.table("t")) == before
    (rest,) = pyzorder.maintain(spark, target)
    assert (rest.result, rest.bytes) == ("done", postponed.bytes)
    assert rows_of(spark.table("t")) == before


def test_an_overspent_budget(spark: SparkSession, tmp_path: Path) -> None:
    """OPTIMIZE waits for the next run if it exceeds the budget. REFRESH does not count."""
    folder = tmp_path / "t"
    clustered(spark, folder)
    with settings(spark, spark__sql__zorder__write__index="false"):
        write(spark, folder, 8000)
    refreshed, postponed = pyzorder.maintain(spark, str(folder), budget="1k")
    assert (refreshed.result, refreshed.summary()) == ("done", "REFRESH")
    assert refreshed.reason == "Every query opens 4 unindexed files."
    assert (postponed.result, postponed.summary()) == ("postponed", "OPTIMIZE")
    assert postponed.reason.endswith("but only 1.0 KiB of the budget is left.")
    (enough,) = pyzorder.maintain(spark, str(folder), budget=postponed.bytes)
    assert enough.result == "done" and enough.bytes <= postponed.bytes


def test_expired_files(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    clustered(spark, folder)
    pyzorder.maintain(spark, str(folder))
    spark.conf.set("spark.sql.zorder.vacuum.retentionHours", "0")
    spark.conf.set("spark.sql.zorder.vacuum.retentionCheck", "false")
    (one,) = pyzorder.maintain(spark, str(folder))
    assert (one.result, one.summary()) == ("done", "VACUUM")
    assert pyzorder.maintain(spark, str(folder))[0].result == "nothing"


def test_a_database(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """All tables in a database are examined. Tables that cannot be maintained are explained."""
    for name in ("good", "gone", "select"):
        clustered(spark, tmp_path / name)
        spark.sql(f"CREATE TABLE `{name}` USING parquet LOCATION '{tmp_path / name}'")
    shutil.rmtree(tmp_path / "gone")
    (tmp_path / "gone").touch()
    spark.sql("CREATE TABLE text (a STRING) USING csv")
    spark.sql("CREATE TABLE plain (a INT) USING parquet")
    spark.sql("CREATE VIEW seen AS SELECT 1")
    spark.range(1).createOrReplaceTempView("temporary")
    found = {one.table: one for one in pyzorder.maintain(spark, database=database)}
    said = {name.split(".")[-1].strip("`"): one.result for name, one in found.items()}
    assert said == {
        "good": "done", "select": "done", "gone": "failed", "text": "nothing",
        "plain": "nothing",
    }  # fmt: skip
    assert "only Parquet and ORC" in found["test_database.text"].reason
    assert "Run OPTIMIZE … ZORDER BY once" in found["test_database.plain"].reason
    assert "ZORDER_PATH_IS_FILE" in found["test_database.gone"].reason


def test_a_folder_of_tables(spark: SparkSession, tmp_path: Path) -> None:
    """Tables are found up to three levels deep, but not through links, and not inside tables."""
    for name in ("a", "x/b", "x/y/c", "x/y/z/d", "_hidden/e", "x/day=1/f"):
        clustered(spark, tmp_path / "data" / name)
    clustered(spark, tmp_path / "data" / "a" / "inner")
    clustered(spark, tmp_path / "elsewhere")
    (tmp_path / "data" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data" / "deleted" / "_zorder").mkdir(parents=True)
    found = pyzorder.maintain(spark, path=str(tmp_path / "data"), dryRun=True)
    said = {one.table.split("/data/")[-1].rstrip("'"): one.result for one in found}
    planned = dict.fromkeys(("a", "x/b", "x/y/c"), "planned")
    assert said == {**planned, "deleted": "nothing"}
    (one,) = pyzorder.maintain(spark, path=str(tmp_path / "elsewhere"), dryRun=True)
    assert one.result == "planned"


def test_a_table_that_is_named_twice(spark: SparkSession, database: str, tmp_path: Path) -> None:
    clustered(spark, tmp_path / "t")
    spark.sql(f"CREATE TABLE twice USING parquet LOCATION '{tmp_path / 't'}'")
    (one,) = pyzorder.maintain(spark, "twice", f"{database}.twice", "TWICE", dryRun=True)
    assert one.result == "planned"


def test_a_table_in_use(spark: SparkSession, tmp_path: Path) -> None:
    """A table that another writer has locked is left for the next run."""
    busy, free = tmp_path / "busy", tmp_path / "free"
    for folder in (busy, free):
        clustered(spark, folder)
    forged_records.lock(busy)
    found = {one.table: one for one in pyzorder.maintain(spark, str(busy), str(free))}
    assert [one.result for one in found.values()].count("done") == 1
    (left,) = (one for one in found.values() if one.result == "in use")
    assert "ZORDER_CONCURRENT_OPTIMIZE" in left.reason
    done = invoke(spark, "maintain", str(busy))
    assert done.exit_code == 4, done.output


@pytest.mark.parametrize("window", ["0s", timedelta()])
def test_a_window_that_has_ended(spark: SparkSession, tmp_path: Path, window: Any) -> None:
    clustered(spark, tmp_path / "t")
    (one,) = pyzorder.maintain(spark, str(tmp_path / "t"), window=window)
    assert (one.result, one.reason) == ("postponed", "The window has ended.")


def test_the_end_of_the_window_while_a_table_is_examined(
    spark: SparkSession, tmp_path: Path
) -> None:
    clustered(spark, tmp_path)
    (one,) = pyzorder.maintain(spark, str(tmp_path), window=timedelta(milliseconds=1))
    assert (one.result, one.reason) == ("postponed", "The window has ended.")


#: A condition, and for how many of the partitions 0 and 1 a rewrite of new files pays off.
IN_PARTITIONS = [
    ("p = 1 AND a = 5", 1), ("a = 5", 2), ("p IN (0, 1) AND a = 5", 2), ("p > 1 AND a = 5", 0),
    ("(p = 0 OR a = 5) AND a < 9", 2), ("p = 1", 0),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "paying"), IN_PARTITIONS)
def test_lookups_in_partitions(
    spark: SparkSession, database: str, tmp_path: Path, condition: str, paying: int
) -> None:
    """Only the recorded lookups that read a partition count there."""
    folder = tmp_path / "db" / "parts"
    spark.sql("CREATE TABLE parts (id BIGINT, a BIGINT, p INT) USING parquet PARTITIONED BY (p)")
    insert = "INSERT INTO parts SELECT /*+ REPARTITION(4) */ id, xxhash64(id) % 100, id % 2 FROM"
    spark.sql(f"{insert} range(8000)")
    aim_at(spark, folder, 8)
    spark.sql("OPTIMIZE parts ZORDER BY (a)")
    spark.sql(f"{insert} range(4000)")
    with settings(spark, spark__sql__zorder__workload__record="true"):
        for _ in range(20):
            spark.sql(f"SELECT id FROM parts WHERE {condition}").collect()
    bridge.flush_workload(spark)
    found = examine(spark, "parts")
    bridge.clear_workload(spark, "parts")
    pays = {part.where: part.pays for part in found.parts}
    assert pays == {"`p` <=> 0": paying > 1, "`p` <=> 1": paying > 0}


def test_a_table_whose_folder_is_missing(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    spark.sql("CREATE TABLE gone USING parquet AS SELECT id FROM range(9)")
    spark.sql("ALTER TABLE gone SET TBLPROPERTIES ('zorder.clusterBy' = 'id')")
    shutil.rmtree(tmp_path / "db" / "gone")
    (one,) = pyzorder.maintain(spark, "gone")
    assert one.result == "nothing" and one.reason.endswith("/gone does not exist.")


def test_auto_without_queries(spark: SparkSession, database: str) -> None:
    spark.sql(
        "CREATE TABLE auto_none USING parquet TBLPROPERTIES ('zorder.clusterBy' = 'auto')"
        " AS SELECT /*+ COALESCE(1) */ id FROM range(9)"
    )
    (one,) = pyzorder.maintain(spark, "auto_none")
    assert one.result == "nothing"
    assert one.reason.startswith("No queries on ") and "'zorder.workload.record'" in one.reason


def test_a_window_that_is_too_short(spark: SparkSession, tmp_path: Path) -> None:
    """A statement is not started if, at the speed of the last one, it would not finish in time."""
    clustered(spark, tmp_path / "t")
    run = plainly(spark)
    maintenance = Maintenance(spark, math.inf, time.monotonic() + 60, False, run)
    outlook = maintenance._examined(f"'{tmp_path / 't'}'")
    assert isinstance(outlook, Outlook) and outlook.speed
    task = Task("OPTIMIZE t", "", bytes=int(outlook.speed * 120))
    one = maintenance._outcome(outlook, task)
    assert one.result == "postponed"
    assert re.fullmatch("It would take about 2 min; (5\\d|60) s are left.", one.reason)


def test_the_end_of_the_window(spark: SparkSession, tmp_path: Path) -> None:
    """A statement that is still running at the end of the window is stopped, and its work undone."""
    folder = tmp_path / "t"
    clustered(spark, folder)
    write(spark, folder, 10_000, 200_000)
    before = rows_of(spark.read.parquet(str(folder)))
    run = plainly(spark)

    def ends_early(work: Callable[[], Any], title: str, deadline: float) -> Any:
        if title.startswith("OPTIMIZE"):
            maintenance._deadline = time.monotonic()
        return run(work, title, maintenance._deadline)

    maintenance = Maintenance(spark, math.inf, math.inf, False, ends_early)
    (one,) = maintenance.run([f"'{folder}'"], named=True)
    assert (one.result, one.reason) == (
        "postponed", "It was stopped at the end of the window, and its work was undone."
    )  # fmt: skip
    assert rows_of(spark.read.parquet(str(folder))) == before
    assert pyzorder.maintain(spark, str(folder))[0].result == "done"
    assert rows_of(spark.read.parquet(str(folder))) == before


# (arguments of maintain, condition)
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "ZORDER_MAINTAIN_WHAT"),
    ({"database": "default", "path": "/x"}, "ZORDER_MAINTAIN_WHAT"),
    ({"database": "default", "budget": "much"}, "ZORDER_NOT_A_BUDGET"),
    ({"database": "default", "window": "soon"}, "ZORDER_NOT_A_DURATION"),
]


@pytest.mark.parametrize(("arguments", "condition"), REFUSED)
def test_refused(spark: SparkSession, arguments: dict[str, Any], condition: str) -> None:
    with pytest.raises(ZOrderError) as raised:
        pyzorder.maintain(spark, **arguments)
    assert raised.value.condition == condition


def test_no_such_place(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="ZORDER_PATH_NOT_FOUND"):
        pyzorder.maintain(spark, path="/no/where")
    with pytest.raises(Exception, match="(?i)schema_not_found|no_where"):
        pyzorder.maintain(spark, database="no_where")
    (one,) = pyzorder.maintain(spark, "no_where")
    assert one.result == "failed" and "no_where" in one.reason


# ---- the command line ---------------------------------------------------------------------------


def invoke(spark: SparkSession, *arguments: str) -> Result:
    """Runs a command in the shared session and returns its output."""
    return CliRunner().invoke(app, arguments, obj=spark, prog_name="pyzorder")


def test_command_line(spark: SparkSession, tmp_path: Path) -> None:
    clustered(spark, tmp_path / "t")
    page = tmp_path / "page.html"
    planned = invoke(spark, "maintain", "--path", str(tmp_path), "--dry-run")
    assert planned.exit_code == 0, planned.output
    assert "planned" in planned.stdout and "would be replaced." in planned.stdout
    done = invoke(
        spark, "maintain", str(tmp_path / "t"), "--budget", "1g", "--window", "2h", "--json",
        "--report", str(page),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    (one,) = said["outcomes"]
    assert (one["result"], one["partitions"], said["dryRun"]) == ("done", None, False)
    assert one["bytes"] == said["replacedBytes"] > 0
    html = page.read_text()
    assert "Maintenance of 1 table" in html and "Outcomes: 1 done." in html
    assert "1.0 GiB" in html
    both = invoke(spark, "maintain", str(tmp_path / "t"), "no_where", "--report", str(page))
    assert both.exit_code == 1, both.output
    assert "Maintenance of 2 tables" in page.read_text()
    nothing = invoke(spark, "maintain", str(tmp_path / "t"))
    assert (nothing.exit_code, "Nothing to do: " in nothing.stdout) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "Pass either TARGETs, or --database, or --path."),
        (("t", "--database", "default"), 2, "Pass either TARGETs"),
        (("t", "--budget", "much"), 2, "not an amount of data"),
        (("t", "--window", "soon"), 2, "is not a duration"),
        (("t", "--report", "/proc/x.html"), 2, "cannot be written"),
        (("--path", "/no/where"), 1, "[ZORDER_PATH_NOT_FOUND]"),
        (("no_where",), 1, "[ZORDER_TABLE_NOT_FOUND]"),
    ],
)
def test_refused_on_the_command_line(
    spark: SparkSession, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = invoke(spark, "maintain", *arguments)
    assert done.exit_code == code, done.output
    assert says in done.output and "Traceback" not in done.output


@pytest.mark.crash
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_by_a_signal(
    spark: SparkSession, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """A signal undoes the running OPTIMIZE. The tables after it remain as they are."""
    for name in ("a", "b"):
        clustered(spark, tmp_path / name)
    before = data_files(tmp_path)
    page = tmp_path / "report.html"
    done = stopped(
        number, "lay out the new files …", tmp_path, "maintain", "--path", str(tmp_path), "--json",
        "--report", str(page),
    )  # fmt: skip
    assert done.code == code, done
    left = json.loads(done.output)["outcomes"]
    assert [one["result"] for one in left] == ["postponed"] * 2
    assert {one["reason"] for one in left} == {"The maintenance was interrupted."}
    assert "2 postponed" in page.read_text(encoding="utf-8")
    assert "was undone, and no rows were lost." in done.after and "Traceback" not in done.after
    assert data_files(tmp_path) == before
    again = pyzorder.maintain(spark, path=str(tmp_path))
    assert [one.result for one in again] == ["done", "done"]
