"""All scans of a table in one plan see the same state of the table, even if the table changes while
the query runs.

The function `slow` in a query blocks one scan while another session changes the table. The result
contains two numbers, which are equal only if both scans see the same state, either before or after
the change.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.sampled import long
from tests.support.scans import FAILURES, settings
from tests.support.tables import data_files

#: Queries on the table {t}. The table has 20 rows with an `id`. `p` is 0 in ten rows and 1 in the
#: other ten. Ten more rows are added while the query runs.
PAIRS = {
    "a join": "SELECT count(*), max(c) FROM {t} JOIN (SELECT count(slow(id)) c FROM {t}) ON true",
    "an outer join": "SELECT count(*), count(k) FROM {t} LEFT JOIN (SELECT slow(id) k FROM {t}) ON id = k",
    "a union": "SELECT count(if(s, 1, null)), count(if(s, null, 1)) FROM (SELECT false s FROM {t} UNION ALL"
    " SELECT slow(id) >= 0 FROM {t})",
    "scalar subqueries": "SELECT (SELECT count(slow(id)) FROM {t}), (SELECT sum(1) FROM {t} WHERE id >= 0)",
    "a subquery beside a scan": "SELECT sum(1), (SELECT count(slow(id)) FROM {t}) FROM {t}",
    "NOT IN": "SELECT count(*), 0 FROM {t} WHERE id NOT IN (SELECT slow(id) FROM {t})",
    "NOT EXISTS": "SELECT count(*), 0 FROM {t} a WHERE NOT EXISTS (SELECT 1 FROM {t} b WHERE slow(b.id) = a.id)",
    "an answer from the index": "SELECT n, m FROM (SELECT count(*) n FROM {t})"
    " JOIN (SELECT count(slow(id)) m FROM {t}) ON true",
    "the first row in an order": "SELECT x, y FROM (SELECT max(id) x FROM (SELECT id FROM {t} ORDER BY id DESC LIMIT 1))"
    " JOIN (SELECT max(slow(id)) y FROM {t}) ON true",
    "stages far apart": "SELECT a.n, b.n FROM (SELECT count(*) n, max(c) FROM {t} JOIN (SELECT count(slow(id)) c"
    " FROM {t}) ON id < c + 100) a JOIN (SELECT count(*) n FROM {t} WHERE id >= 0) b ON true",
}

#: A query that scans two different partitions.
ACROSS = (
    "SELECT n, m FROM (SELECT sum(1) n FROM {t} WHERE p = 0)"
    " JOIN (SELECT count(slow(id)) m FROM {t} WHERE p = 1) ON true"
)


@dataclass(frozen=True)
class Table:
    """A table: its name in queries, and its folder."""

    name: str
    path: Path
    columns: str

    def append(self, spark: SparkSession) -> None:
        """Appends ten rows in another session of the same application."""
        self.write(spark.newSession(), 20, 30)

    def write(self, spark: SparkSession, first: int, end: int) -> None:
        rows = spark.range(first, end, 1, 1).selectExpr("id", "cast(id % 2 as int) p")
        if self.name.startswith("parquet."):
            writer = rows.write.mode("append")
            (writer.partitionBy("p") if self.columns else writer).parquet(str(self.path))
        else:
            rows.write.insertInto(self.name)


#: The kinds of tables that most tests use.
TABLES = ["table", "partitioned table", "partitioned path"]


@pytest.fixture(params=long(TABLES, *TABLES[:2]))
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Table]:
    """An optimized and indexed table of 20 rows. A single task reads all rows."""
    folder = tmp_path / "t"
    by = "PARTITIONED BY (p)" if "partitioned" in request.param else ""
    named = "table" in request.param
    made = Table("one_state" if named else f"parquet.`{folder}`", folder, by)
    if named:
        spark.sql(
            f"CREATE TABLE one_state (id BIGINT, p INT) USING parquet {by} LOCATION '{folder}'"
        )
    made.write(spark, 0, 20)
    spark.sql(f"OPTIMIZE {made.name} ZORDER BY (id)").collect()
    with settings(spark, spark__sql__files__minPartitionNum="1"):
        yield made
    if named:
        spark.sql("DROP TABLE one_state")


def assert_one_state(rows: list) -> None:
    ((first, second),) = rows
    assert first == second


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("adaptive", long(["true", "false"], "true"))
def test_rows_appended_meanwhile(spark, table, held, pair, adaptive) -> None:
    with settings(spark, spark__sql__adaptive__enabled=adaptive):
        df = spark.sql(PAIRS[pair].format(t=table.name))
        assert_one_state(held(df.collect, lambda: table.append(spark)))
    assert spark.sql(f"SELECT count(*) FROM {table.name}").first()[0] == 30


@pytest.mark.parametrize("pair", ["a join", "NOT IN", "stages far apart"])
def test_another_query_notices_new_rows(spark, tmp_path, held, pair) -> None:
    """The table has an index but no journal. Two queries of one session share Spark's listing."""
    noticed = []
    table = Table("one_state", tmp_path / "t", "")
    spark.sql(f"CREATE TABLE one_state (id BIGINT, p INT) USING parquet LOCATION '{table.path}'")
    try:
        table.write(spark, 0, 20)
        spark.sql("CREATE SKIPPING INDEX ON one_state")

        def append() -> None:
            table.append(spark)
            noticed.extend(spark.sql("SELECT sum(1) FROM one_state WHERE id >= 0").collect())

        with settings(spark, spark__sql__files__minPartitionNum="1"):
            df = spark.sql(PAIRS[pair].format(t="one_state"))
            assert_one_state(held(df.collect, append))
        assert noticed == [(30,)]
    finally:
        spark.sql("DROP TABLE one_state")


@pytest.mark.parametrize("pair", ["a join", "an answer from the index", "scalar subqueries"])
def test_without_skipping(spark, table, held, pair) -> None:
    with settings(spark, spark__sql__zorder__skipping__enabled="false"):
        df = spark.sql(PAIRS[pair].format(t=table.name))
        assert_one_state(held(df.collect, lambda: table.append(spark)))


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_scans_of_different_partitions(spark, table, held, adaptive) -> None:
    if not table.columns:
        pytest.skip("the table has no partitions")
    with settings(spark, spark__sql__adaptive__enabled=adaptive):
        df = spark.sql(ACROSS.format(t=table.name))
        assert_one_state(held(df.collect, lambda: table.append(spark)))


@pytest.mark.parametrize("pair", PAIRS)
def test_an_optimize_meanwhile(spark, table, held, pair) -> None:
    df = spark.sql(PAIRS[pair].format(t=table.name))
    other = spark.newSession()

    def meanwhile() -> None:
        table.append(spark)
        other.sql(f"OPTIMIZE {table.name} FULL ZORDER BY (id)").collect()

    assert_one_state(held(df.collect, meanwhile))


def test_an_overwrite_meanwhile_fails_or_shows_one_state(spark, table, held) -> None:
    df = spark.sql(PAIRS["a join"].format(t=table.name))
    rows = spark.newSession().range(0, 7, 1, 1).selectExpr("id", "cast(id % 2 as int) p")

    def overwrite() -> None:
        if table.name == "one_state":
            rows.write.insertInto(table.name, overwrite=True)
        else:
            writer = rows.write.mode("overwrite")
            (writer.partitionBy("p") if table.columns else writer).parquet(str(table.path))

    try:
        found = held(df.collect, overwrite)
    except FAILURES:
        return  # plain Spark also fails, because the files are deleted
    assert_one_state(found)


def test_a_dataframe_executed_twice(spark, table) -> None:
    spark.udf.register("slow", lambda value: value, "bigint")
    df = spark.sql(PAIRS["a join"].format(t=table.name))
    assert_one_state(df.collect())
    table.append(spark)
    assert_one_state(df.collect())
    assert spark.sql(PAIRS["a join"].format(t=table.name)).first() == (30, 30)


#: Queries on the views `old` and `new`, whose DataFrames were created before and after ten rows
#: were added. Each query has two answers. The first is the answer without a journal, as in plain
#: Spark. The second is the answer with a journal.
READS = {
    "SELECT count(*) FROM (SELECT id FROM new EXCEPT ALL SELECT id FROM old)": (10, 0),
    "SELECT count(*) FROM new LEFT ANTI JOIN old USING (id)": (10, 0),
    "SELECT sum(1) FROM (SELECT * FROM old UNION ALL SELECT * FROM new)": (50, 60),
}


@pytest.mark.parametrize("query", READS)
@pytest.mark.parametrize("executed", [False, True])
@pytest.mark.parametrize("journaled", [False, True])
@pytest.mark.parametrize("column", long(["", "p"], "p"))
def test_reads_before_and_after_rows_came(spark, tmp_path, column, journaled, executed, query):
    folder = tmp_path / "t"
    writer = spark.range(0, 20, 1, 2).selectExpr("id", "cast(0 as int) p").write
    (writer.partitionBy(column) if column else writer).parquet(str(folder))
    if journaled:
        spark.sql(f"OPTIMIZE '{folder}' ZORDER BY (id)").collect()
    old = spark.read.parquet(str(folder))
    old.createOrReplaceTempView("old")
    if executed:
        assert old.selectExpr("sum(1)").first() == (20,)
    files = data_files(folder)
    rows = pq.read_table(files[0], partitioning=None).slice(0, 1).take([0] * 10)
    ids = pa.array(range(100, 110), pa.int64())
    pq.write_table(rows.set_column(0, "id", ids), files[0].parent / "more.parquet")
    spark.read.parquet(str(folder)).createOrReplaceTempView("new")
    assert spark.sql(query).first()[0] == READS[query][journaled]


def test_explain_fixes_nothing(spark, table) -> None:
    spark.udf.register("slow", lambda value: value, "bigint")
    df = spark.sql(PAIRS["a join"].format(t=table.name))
    df.explain(True)
    table.append(spark)
    assert df.collect() == [(30, 30)]


def test_each_batch_of_a_stream_sees_one_state(spark, table, held, tmp_path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "source"))
    stream = spark.readStream.schema("id BIGINT").parquet(str(tmp_path / "source"))
    seen = []

    def each(batch: DataFrame, number: int) -> None:
        df = batch.sparkSession.sql(PAIRS["a join"].format(t=table.name))
        seen.extend(held(df.collect, lambda: table.append(spark)))

    query = stream.writeStream.foreachBatch(each).trigger(availableNow=True).start()
    query.awaitTermination()
    assert_one_state(seen)


@pytest.fixture
def parts(spark: SparkSession, tmp_path: Path) -> Iterator[Table]:
    """A partitioned catalog table whose partition 1 is stored outside the table's folder."""
    made = Table("one_state", tmp_path / "t", "PARTITIONED BY (p)")
    spark.sql(
        f"CREATE TABLE one_state (id BIGINT, p INT) USING parquet {made.columns} LOCATION '{made.path}'"
    )
    spark.sql(f"ALTER TABLE one_state ADD PARTITION (p = 1) LOCATION '{tmp_path}/elsewhere'")
    made.write(spark, 0, 20)
    spark.sql("OPTIMIZE one_state ZORDER BY (id)").collect()
    with settings(spark, spark__sql__files__minPartitionNum="1"):
        yield made
    spark.sql("DROP TABLE one_state")


@pytest.mark.parametrize("skipping", ["true", "false"])
@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_partition_that_comes_after_planning(spark, parts, turned, skipping, adaptive) -> None:
    """Scans with and without a filter on partitions list the same partitions, even if another
    session adds a partition after the query was planned."""
    scans = ["one_state", "(SELECT * FROM one_state WHERE p >= 0)"]
    first, second = reversed(scans) if turned else scans
    with settings(
        spark,
        spark__sql__zorder__skipping__enabled=skipping,
        spark__sql__adaptive__enabled=adaptive,
    ):
        df = spark.sql(
            f"SELECT count(a.id), count(b.id) FROM {first} a FULL JOIN {second} b ON a.id = b.id"
        )
        df.explain()
        rows = spark.newSession().range(20, 30, 1, 1).selectExpr("id", "7 p")
        rows.write.insertInto("one_state")
        assert_one_state(df.collect())


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("filtered", ["", "WHERE p >= 0", "WHERE p = 1"])
def test_a_partition_elsewhere_by_its_path(spark, parts, held, turned, filtered) -> None:
    scans = [
        f"(SELECT id FROM (SELECT * FROM one_state {filtered}) WHERE p = 1 OR id < 0)",
        f"parquet.`{parts.path.parent}/elsewhere`",
    ]
    first, second = reversed(scans) if turned else scans
    df = spark.sql(
        f"SELECT count(*), max(c) FROM {first} JOIN (SELECT count(slow(id)) c FROM {second}) ON true"
    )
    assert_one_state(held(df.collect, lambda: parts.append(spark)))


def test_around_a_location_switch(spark, tmp_path) -> None:
    """As in plain Spark, a DataFrame that was created before the table's location was switched
    reads the old folder."""
    made = Table("one_state", tmp_path / "t", "")
    spark.sql(
        f"CREATE TABLE one_state (id BIGINT, p INT) USING parquet LOCATION '{made.path}'"
        " TBLPROPERTIES ('zorder.publish.method' = 'location')"
    )
    try:
        made.write(spark, 0, 20)
        before = spark.table("one_state").selectExpr("sum(1) n")
        spark.sql("OPTIMIZE one_state ZORDER BY (id)").collect()
        after = spark.table("one_state").selectExpr("sum(1) m")
        assert before.crossJoin(after).collect() == [(20, 20)]
        made.append(spark)
        assert before.crossJoin(after).collect() == [(20, 30)]
    finally:
        spark.sql("DROP TABLE one_state")


def test_a_path_that_leaves_files_out(spark, tmp_path) -> None:
    """Two scans of a table see the same state even if an option excludes some files from one of
    their listings. In that case, the listings always differ."""
    made = Table(f"parquet.`{tmp_path / 't'}`", tmp_path / "t", "")
    made.write(spark, 0, 20)
    spark.sql(f"OPTIMIZE {made.name} ZORDER BY (id)").collect()
    (file,) = data_files(made.path)
    shutil.copy(file, made.path / "left-out.parquet")
    stop, count = threading.Event(), 0

    def append() -> None:
        nonlocal count
        while not stop.is_set():
            os.link(file, made.path / f"more-{count:06}.parquet")
            count += 1
            stop.wait(0.002)

    with ThreadPoolExecutor(1) as pool:
        appending = pool.submit(append)
        try:
            for _ in range(3):
                part = spark.read.option("pathGlobFilter", "[mp]*.parquet").parquet(str(made.path))
                part.createOrReplaceTempView("part_of_it")
                query = "SELECT (SELECT count(id) FROM {}), (SELECT count(id) FROM part_of_it)"
                [(every, some)] = spark.sql(query.format(made.name)).collect()
                assert every == some + 20
        finally:
            stop.set()
        appending.result()


@pytest.mark.parametrize("journaled", [False, True])
@pytest.mark.parametrize("read", ["table", "cached table", "view", "cached DataFrame"])
def test_a_file_replaced_before_a_refresh(spark, tmp_path, read, journaled) -> None:
    """If another engine has replaced a file with a new file of the same name, queries see the new
    file after a refresh."""
    folder = tmp_path / "t"
    spark.range(20).write.parquet(str(folder))
    if journaled:
        spark.sql(f"OPTIMIZE '{folder}' ZORDER BY (id)").collect()
    theirs = folder / "theirs.parquet"
    pq.write_table(pa.table({"id": pa.array(range(10), pa.int64())}), theirs)
    df = spark.read.parquet(str(folder))
    if read == "cached DataFrame":
        df.cache()
    if "table" in read:
        spark.sql(f"CREATE TABLE replaced (id BIGINT) USING parquet LOCATION '{folder}'")
    else:
        df.createOrReplaceTempView("replaced")
    try:
        if read == "cached table":
            spark.sql("CACHE TABLE replaced")
        assert spark.sql("SELECT sum(1), max(id) FROM replaced").first() == (30, 19)
        pq.write_table(pa.table({"id": pa.array(range(1000), pa.int64())}), theirs)
        if read == "cached DataFrame":
            spark.catalog.refreshByPath(str(folder))
        else:
            spark.sql("REFRESH TABLE replaced")
        assert spark.sql("SELECT sum(1), max(id) FROM replaced").first() == (1020, 999)
        assert spark.sql("SELECT count(*) FROM replaced WHERE id > 500").first() == (499,)
    finally:
        df.unpersist()
        if "table" in read:
            spark.sql("DROP TABLE replaced")


@pytest.mark.parametrize("buckets", ["", "CLUSTERED BY (id) INTO 1 BUCKETS"])
@pytest.mark.parametrize("where", ["", "WHERE p >= 0"])
def test_a_partition_added_to_a_table_without_a_journal(
    spark, held, tmp_path, buckets, where
) -> None:
    """All scans in a query see the same partitions, even if the table has no journal. A bucketed
    table can have an index, but has no journal, because OPTIMIZE rejects such tables."""
    spark.sql(
        f"CREATE TABLE plain_state (id BIGINT, p INT) USING parquet PARTITIONED BY (p) {buckets}"
        f" LOCATION '{tmp_path / 't'}'"
    )
    try:
        rows = "SELECT id, cast(id % 2 AS INT) p FROM range({}, {}, 1, 1)"
        spark.sql(f"INSERT INTO plain_state {rows.format(0, 20)}")
        if buckets:
            spark.sql("CREATE SKIPPING INDEX ON plain_state").collect()
        rows_of = f"(SELECT * FROM plain_state {where})"
        df = spark.sql(
            f"SELECT count(*), max(c) FROM {rows_of} JOIN (SELECT count(slow(id)) c FROM {rows_of})"
            " ON true"
        )
        more = "INSERT INTO plain_state SELECT id, 7 FROM range(10)"
        with settings(spark, spark__sql__files__minPartitionNum="1"):
            assert_one_state(held(df.collect, lambda: spark.newSession().sql(more)))
        assert spark.sql("SELECT count(*) FROM plain_state").first()[0] == 30
    finally:
        spark.sql("DROP TABLE plain_state")
