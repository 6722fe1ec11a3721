"""For workloads whose best layout is known, the advisor recommends that layout. It also predicts
the total size of the files that queries open with that layout."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import pyzorder

pytest.importorskip("sqlglot")

from pyzorder.advisor import advise
from pyzorder.advisor.what_if import WhatIf
from tests.support.tables import aim_at, size_of

FILES = 16


def make(spark: SparkSession, folder: Path) -> str:
    """Creates the unordered table `facts`, a dimension table and a view. Returns the name
    `facts`."""
    spark.range(0, 12_000, 1, 2).selectExpr(
        "cast(pmod(xxhash64(id, 1), 5000) as int) customer",
        "date'2020-01-01' + cast(pmod(xxhash64(id, 2), 1000) as int) day",
        "cast(pmod(xxhash64(id, 3), 100) as int) store",
        "concat('item-', pmod(xxhash64(id, 4), 900)) item",
        "id",
    ).write.option("path", str(folder / "facts")).saveAsTable("facts")
    spark.range(0, 100, 1, 1).selectExpr(
        "id AS store_id", "concat('region ', id DIV 5) region"
    ).write.option("path", str(folder / "stores")).saveAsTable("stores")
    spark.sql("CREATE VIEW days AS SELECT id, day AS sold FROM facts")
    return "facts"


@pytest.fixture
def own(spark: SparkSession, database: str, tmp_path: Path) -> str:
    """Creates a separate table `facts` for a test that changes the table."""
    name = make(spark, tmp_path)
    aim_at(spark, tmp_path / "facts", FILES)
    return name


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of `facts`. All tests that do not change the table share this folder."""
    folder = tmp_path_factory.mktemp("advisor")
    make(spark, folder)
    yield folder / "facts"
    spark.sql("DROP VIEW days")
    for name in ("facts", "stores"):
        spark.sql(f"DROP TABLE {name}")


@pytest.fixture
def facts(spark: SparkSession, made: Path) -> str:
    """Sets a target size that makes OPTIMIZE write about 16 files. Returns the name of the shared
    table."""
    aim_at(spark, made, FILES)
    return "facts"


def customers(draw: random.Random) -> str:
    return f"SELECT sum(id) FROM facts s WHERE s.customer = {draw.randrange(5000)}"


def weeks(draw: random.Random) -> str:
    first = f"date'2020-01-01' + {draw.randrange(990)}"
    return f"SELECT count(*) FROM days WHERE sold BETWEEN {first} AND {first} + 6"


def regions(draw: random.Random) -> str:
    return (
        "SELECT count(*) FROM facts JOIN stores ON store = store_id "
        f"WHERE region = 'region {draw.randrange(20)}'"
    )


def items(draw: random.Random) -> str:
    return f"SELECT count(*) FROM facts WHERE item LIKE 'item-{draw.randrange(1, 9)}%'"


#: (how many times each query runs, the columns that the advice must name)
PLANTED = [
    ({customers: 8, weeks: 6, items: 1}, {"customer", "day"}),
    ({regions: 3, weeks: 4}, {"store", "day"}),
]


@pytest.mark.parametrize(("questions", "columns"), PLANTED)
def test_names_the_planted_columns_and_following_it_helps(
    spark: SparkSession,
    own: str,
    tmp_path: Path,
    questions: dict[Any, int],
    columns: set[str],
) -> None:
    seen, held_back = statements(questions, 1), statements(questions, 2)[::3]
    advice = advise(spark, own, seen)
    assert set(advice.recommended) == columns
    assert advice.statement == f"OPTIMIZE facts ZORDER BY ({', '.join(advice.recommended)})"
    assert advice.left_out == ()
    assert advice.present.bytes_opened == size_of(tmp_path / "facts")  # nothing is skipped yet
    spark.sql(advice.statement)
    assert 2.5 * bytes_opened(spark, held_back) <= advice.present.bytes_opened
    best = next(o for o in advice.layouts if o.columns == advice.recommended)
    assert best.bytes_opened == pytest.approx(bytes_opened(spark, seen), rel=0.1)
    assert best.growth * advice.bytes == pytest.approx(size_of(tmp_path / "facts"), rel=0.05)
    again = advise(spark, own, seen, weigh=False)
    assert again.statement is None and "clustered by" in again.reason


def statements(questions: dict[Any, int], seed: int) -> list[str]:
    draw = random.Random(seed)
    return [question(draw) for question, count in questions.items() for _ in range(count)]


def bytes_opened(spark: SparkSession, asked: Sequence[str]) -> float:
    """The total size of the files of `facts` that a statement opens according to `explain`,
    averaged over the statements."""
    total = 0
    for statement in asked:
        df = spark.sql(statement)
        if "JOIN" in statement:
            df.collect()
        total += sum(s.details["selectedBytes"] for s in pyzorder.explain(df) if s.table == "facts")
    return total / len(asked)


def test_says_when_there_is_nothing_to_advise(spark: SparkSession, facts: str) -> None:
    cases = [
        (["SELECT * FROM stores"], "never scans"),
        (["SELECT * FROM facts"], "has no filter or join that could skip files"),
        (["SELECT * FROM facts WHERE rand() < 0.5"], "has no filter or join that could skip files"),
        (["SELECT * FROM facts WHERE id >= 10", "SELECT * FROM facts"], "the best layout found"),
    ]
    for queries, reason in cases:
        advice = advise(spark, facts, queries)
        assert advice.statement is None and advice.recommended == ()
        assert advice.reason.startswith("Nothing to recommend") and reason in advice.reason
        assert reason in str(advice) and reason in advice._repr_html_()


def test_an_index_alone_is_advised_where_the_files_lie_well(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    spark.range(0, 20_000, 1, 10).selectExpr("id", "id % 7 AS b").write.saveAsTable("ordered")
    aim_at(spark, tmp_path / "db" / "ordered", 10)
    queries = [f"SELECT * FROM ordered WHERE id = {i * 1999}" for i in range(10)]
    advice = advise(spark, "ordered", queries)
    assert advice.statement == "CREATE SKIPPING INDEX ON ordered" and advice.recommended == ()
    assert advice.present_indexed.share_of_present == pytest.approx(0.1, rel=0.05)
    spark.sql(advice.statement)
    assert advise(spark, "ordered", queries).statement is None
    nowhere = advise(spark, "ordered", ["SELECT * FROM ordered WHERE id = -1 AND b = -1"])
    assert nowhere.statement is None and nowhere.recommended == ()


def test_a_folder_of_partitions(spark: SparkSession, tmp_path: Path) -> None:
    """If filters on partition columns already skip a file, skipping this file does not count as a
    benefit of a layout."""
    path = str(tmp_path / "t.orc")
    spark.range(0, 8_000, 1, 1).selectExpr(
        "cast(pmod(xxhash64(id), 500) as int) a", "cast(id % 4 as int) p"
    ).write.partitionBy("p").orc(path)
    aim_at(spark, tmp_path / "t.orc", 40)
    queries = [f"SELECT a FROM orc.`{path}` WHERE p = {i % 4} AND a = {i * 37}" for i in range(12)]
    advice = advise(spark, path, queries)
    assert advice.statement == f"OPTIMIZE '{path}' ZORDER BY (a)"
    assert advice.present.bytes_opened == pytest.approx(advice.bytes / 4, rel=0.05)
    assert advice.layouts[0].share_of_present == pytest.approx(0.1, rel=0.3)
    assert {use.column: use.rows_left is None for use in advice.columns} == {"a": False, "p": True}


def test_what_has_no_part_in_it_is_counted(spark: SparkSession, facts: str) -> None:
    queries = [
        "SELECT * FROM facts WHERE customer = :c",
        "SELECT * FROM facts JOIN nowhere ON store = k WHERE g = 1",
        "SELECT * FROM facts WHERE customer = 3",
        "VACUUM facts",
        "SELECT (",
    ]
    advice = advise(spark, facts, queries)
    text = "\n".join(f"{item.count} {item.reason}" for item in advice.left_out)
    assert advice.statements == advice.readings == 3
    assert "1 statements other than queries" in text
    assert "1 statements that sqlglot cannot parse" in text
    assert "UNBOUND_SQL_PARAMETER" in text and "TABLE_OR_VIEW_NOT_FOUND" in text
    assert "in only 3 different ways" in str(advice)


def test_it_is_plain_data(spark: SparkSession, facts: str) -> None:
    advice = advise(spark, facts, [customers(random.Random(1))], max_columns=1)
    found = json.loads(json.dumps(advice.to_dict()))
    assert found["recommended"] == ["customer"] and found["columns"][0]["equality"] == 1
    assert str(advice).endswith("Run: OPTIMIZE facts ZORDER BY (customer)")
    assert "<pre>OPTIMIZE facts ZORDER BY (customer)</pre>" in advice._repr_html_()


#: Settings that make Spark write its event log in different formats.
LOGS = [
    {},
    {"compress": "true", "compression.codec": "lz4", "rolling.enabled": "true"},
    {"compress": "true", "compression.codec": "snappy"},
]


def test_event_logs(spark: SparkSession, facts: str, tmp_path: Path) -> None:
    """The advisor uses the text of a query if the event log contains it, and the query's plan
    otherwise."""
    folders = [tmp_path / f"log{i}" for i in range(len(LOGS))]
    with ExitStack() as logs:
        for folder, options in zip(folders, LOGS, strict=True):
            logs.enter_context(logged(spark, folder, options))
        for customer in (17, 17, 4000):
            spark.table("facts").where(f"customer = {customer}").collect()
        spark.sql("SELECT * FROM facts JOIN stores ON store = store_id "
                  "WHERE region = 'region 3' AND (item = 'a, b' OR item LIKE 'x%')").collect()  # fmt: skip
        spark.table("facts").where("year(day) = 2020 AND id % 7 = 3").collect()
        spark.sparkContext.setJobDescription("SELECT id FROM days WHERE sold = date'2020-02-02'")
        spark.sql("SELECT id FROM days WHERE sold = date'2020-02-02'").collect()
        spark.sparkContext.setJobDescription(None)  # type: ignore[arg-type]
        spark.sql("CREATE TABLE copied USING parquet AS SELECT * FROM facts WHERE customer = 5")
        spark.table("stores").collect()
    spark.sql("DROP TABLE copied")
    advice = advise(spark, facts, event_log=folders[0])
    asked = {use.column: use for use in advice.columns}
    assert advice.readings == advice.reading_statements == 7
    assert asked["customer"].equality == 4 and asked["day"].equality == 1
    assert asked["store"].join == 1 and asked["store"].rows_left == pytest.approx(0.05, abs=0.02)
    assert asked["item"].equality == asked["item"].prefix == 1
    assert [item.reason for item in advice.left_out] == ["filters that a plan shows only in part"]
    assert advice.recommended[0] == "customer"
    read = []
    for folder in folders:
        what_if = WhatIf(spark, facts)
        what_if.read(None, str(folder))
        read.append((what_if.workload.readings, what_if.workload.unread))
    assert all(found == read[0] for found in read)


@contextmanager
def logged(spark: SparkSession, folder: Path, options: dict[str, str]) -> Iterator[None]:
    """Writes a Spark event log of everything that runs during the block."""
    sc: Any = spark.sparkContext
    jvm, context = sc._jvm, sc._jsc.sc()
    conf = context.getConf().set("spark.eventLog.rolling.enabled", "false")
    for key, value in options.items():
        conf = conf.set(f"spark.eventLog.{key}", value)
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "app", jvm.scala.Option.empty(), jvm.java.net.URI(folder.as_uri()), conf,
        context.hadoopConfiguration())  # fmt: skip
    folder.mkdir(exist_ok=True)
    listener.start()
    context.addSparkListener(listener)
    try:
        yield
    finally:
        context.listenerBus().waitUntilEmpty()
        context.removeSparkListener(listener)
        listener.stop()


#: A program that runs queries in Spark without pyzorder and writes an event log with the default
#: settings.
OF_ITS_OWN = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
folder, log = sys.argv[1:]
spark = builder.config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", log).getOrCreate()
for customer in (17, 17, 4000):
    spark.read.parquet(folder).where(f"customer = {customer}").collect()
spark.stop()
"""


def test_a_quote_that_is_never_closed(spark: SparkSession, facts: str, tmp_path: Path) -> None:
    """Statements before an unclosed quote are counted, and so are statements that begin on a line
    after the quote."""
    statements = tmp_path / "w.sql"
    one, other = "SELECT * FROM facts WHERE customer = 17;", "SELECT 'open FROM facts;"
    statements.write_text("\n".join([*[one] * 3, other, *[one] * 3]))
    advice = advise(spark, facts, queries=statements)
    assert advice.columns[0].equality == 6 and sum(item.count for item in advice.left_out) == 1


def test_the_log_of_another_spark(
    spark: SparkSession, facts: str, made: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.mkdir()
    subprocess.run([sys.executable, "-c", OF_ITS_OWN, str(made), str(log)], check=True, timeout=240)
    if spark.version >= "4":  # Spark 4 writes rolling, compressed logs
        assert [path.suffix for path in log.glob("eventlog_v2_*/events_*")] == [".zstd"]
    advice = advise(spark, facts, event_log=log)
    assert advice.statement == "OPTIMIZE facts ZORDER BY (customer)" and advice.left_out == ()
    assert (advice.readings, advice.columns[0].equality) == (3, 3)


def test_a_log_that_ends_in_the_middle(spark: SparkSession, facts: str, tmp_path: Path) -> None:
    with logged(spark, tmp_path, {"compress": "true", "compression.codec": "lz4"}):
        for _ in range(3):
            spark.table("facts").where("customer = 17").collect()
    log = next(path for path in tmp_path.iterdir() if path.name.startswith("app"))
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    (tmp_path / ".app.lz4.crc").unlink(missing_ok=True)
    advice = advise(spark, facts, event_log=log)
    assert any("could not be read to the end" in item.reason for item in advice.left_out)


ERRORS = [
    ({}, "ZORDER_NO_WORKLOAD"),
    ({"queries": "no such file.sql"}, "ZORDER_UNREADABLE_QUERIES"),
    ({"queries": [], "max_columns": 5}, "ZORDER_INVALID_LIMIT"),
    ({"queries": [], "margin": -0.1}, "ZORDER_INVALID_LIMIT"),
    ({"queries": [], "sample_rows": 0}, "ZORDER_INVALID_LIMIT"),
    ({"event_log": "no such folder"}, "ZORDER_NO_EVENT_LOG"),
]


@pytest.mark.parametrize(("arguments", "condition"), ERRORS)
def test_bad_arguments(
    spark: SparkSession, facts: str, arguments: dict[str, Any], condition: str
) -> None:
    with pytest.raises(pyzorder.ZOrderError) as raised:
        advise(spark, facts, **arguments)
    assert raised.value.condition == condition
