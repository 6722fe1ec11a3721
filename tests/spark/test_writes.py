"""INSERT and similar statements write clustered files and their index entries."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from tests.support import indexes, scans
from tests.support.sampled import long
from tests.support.tables import data_files, metrics, rows_of, sales, target_size

FORMATS = ["parquet", "orc"]
CLUSTERED = "TBLPROPERTIES ('zorder.clusterBy' = 'a, b', 'zorder.write.cluster' = 'true')"


def insert(spark: SparkSession, folder: Path) -> None:
    spark.sql("INSERT INTO t SELECT * FROM new")


def overwrite(spark: SparkSession, folder: Path) -> None:
    spark.sql("INSERT OVERWRITE t SELECT * FROM new")


def dynamic_overwrite(spark: SparkSession, folder: Path) -> None:
    with scans.settings(spark, spark__sql__sources__partitionOverwriteMode="dynamic"):
        spark.sql("INSERT OVERWRITE t SELECT * FROM new WHERE day = 1")


def static_partition(spark: SparkSession, folder: Path) -> None:
    columns = ", ".join(c for c in spark.table("new").columns if c != "day")
    spark.sql(f"INSERT OVERWRITE t PARTITION (day = 2) SELECT {columns} FROM new")


def insert_into(spark: SparkSession, folder: Path) -> None:
    spark.table("new").write.insertInto("t")


def save_as_table(spark: SparkSession, folder: Path) -> None:
    provider = data_files(folder)[0].suffix[1:]
    writer = spark.table("new").write.format(provider).mode("append")
    partitioned = spark.catalog.listColumns("t")[-1].isPartition
    (writer.partitionBy("day") if partitioned else writer).saveAsTable("t")


def save(spark: SparkSession, folder: Path) -> None:
    provider = data_files(folder)[0].suffix[1:]
    writer = spark.table("new").write.format(provider).mode("append")
    partitioned = spark.catalog.listColumns("t")[-1].isPartition
    (writer.partitionBy("day") if partitioned else writer).save(str(folder))
    spark.catalog.refreshTable("t")


def unindexed(spark: SparkSession) -> int:
    """The number of files without a matching index entry."""
    return max(int(r["unindexed"]) for r in spark.sql("DESC SKIPPING INDEX ON t").collect())


@pytest.mark.parametrize(
    ("provider", "write", "partitioned"),
    [
        ("parquet", insert, False),
        ("orc", insert, True),
        ("orc", overwrite, False),
        ("parquet", overwrite, True),
        ("parquet", dynamic_overwrite, True),
        ("parquet", static_partition, True),
        ("parquet", insert_into, True),
        ("orc", save_as_table, False),
        ("parquet", save_as_table, True),
        ("parquet", save, False),
        ("orc", save, True),
    ],
)
def test_files_are_indexed(
    spark: SparkSession,
    database: str,
    tmp_path: Path,
    provider: str,
    write: Callable[[SparkSession, Path], None],
    partitioned: bool,
) -> None:
    folder = tmp_path / "db" / "t"
    writer = sales(spark, 300).write.format(provider)
    (writer.partitionBy("day") if partitioned else writer).saveAsTable("t")
    sales(spark, 90).withColumn("a", F.col("a") + 5000).createOrReplaceTempView("new")
    spark.sql("CREATE SKIPPING INDEX ON t")
    write(spark, folder)
    assert unindexed(spark) == 0
    query = spark.sql("SELECT * FROM t WHERE a >= 5000")
    assert 0 < len(scans.opened(query)) <= len(data_files(folder))
    with scans.plain(spark):
        assert rows_of(query) == rows_of(spark.sql("SELECT * FROM t WHERE a >= 5000")) != {}
    spark.sql("REFRESH SKIPPING INDEX ON t")  # drops entries of deleted files
    for entry in indexes.check_sound(spark, folder, provider).values():
        assert all(indexes.known(entry, c) for c in ("a", "b", "c", "d", "s.x", "s.y"))


@pytest.mark.parametrize("write", [insert, dynamic_overwrite, static_partition])
def test_partitions_that_lie_elsewhere(
    spark: SparkSession, database: str, tmp_path: Path, write: Callable[[SparkSession, Path], None]
) -> None:
    """New files are indexed even if two of three partitions are stored outside the table's folder.
    A single task writes files with the same name to all partitions."""
    sales(spark, 300).write.format("parquet").partitionBy("day").saveAsTable("t")
    for day in (1, 2):
        place = (tmp_path / f"elsewhere {day}").as_uri()
        spark.sql(f"ALTER TABLE t PARTITION (day = {day}) SET LOCATION '{place}'")
    new = sales(spark, 90).withColumn("a", F.col("a") + 5000).coalesce(1)
    new.createOrReplaceTempView("new")
    spark.sql("CREATE SKIPPING INDEX ON t")
    write(spark, tmp_path)
    assert unindexed(spark) == 0
    query = spark.sql("SELECT * FROM t WHERE a >= 5000")
    with scans.plain(spark):
        assert rows_of(query) == rows_of(spark.sql("SELECT * FROM t WHERE a >= 5000")) != {}
    entries = indexes.check_sound(spark, tmp_path / "db" / "t", "parquet")
    elsewhere = [name for name in entries if name.startswith("file:")]
    assert len(elsewhere) == (2 if write is insert else 1)


def test_an_index_without_room_for_new_files(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    """If a session setting or a table property turns off indexing on write, new files are not
    indexed until REFRESH runs."""
    sales(spark, 300).write.format("parquet").saveAsTable("t")
    sales(spark, 90).createOrReplaceTempView("new")
    spark.sql("CREATE SKIPPING INDEX ON t")
    with scans.settings(spark, spark__sql__zorder__write__index="false"):
        insert(spark, tmp_path)
    assert unindexed(spark) == 3
    spark.sql("ALTER TABLE t SET TBLPROPERTIES ('zorder.write.index' = 'false')")
    insert(spark, tmp_path)
    assert unindexed(spark) == 6
    spark.sql("REFRESH SKIPPING INDEX ON t")
    assert unindexed(spark) == 0


def test_buckets(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """New files of bucketed tables are indexed but not clustered, because Spark sorts their
    rows."""
    spark.sql(
        "CREATE TABLE t (a BIGINT, b BIGINT) USING parquet CLUSTERED BY (a) SORTED BY (a) INTO 3 BUCKETS"
        f" {CLUSTERED}"
    )
    spark.sql("INSERT INTO t SELECT id, -id FROM range(60)")
    spark.sql("CREATE SKIPPING INDEX ON t")
    spark.sql("INSERT INTO t SELECT id, -id FROM range(60, 90)")
    assert unindexed(spark) == 0
    assert len(data_files(tmp_path / "db" / "t")) > 3
    rows = spark.sql("SELECT * FROM t WHERE b <= -80")
    assert rows.count() == 10 and len(scans.opened(rows)) <= 3
    joined = spark.sql("SELECT count(*) FROM t x JOIN t y USING (a)")
    assert "Exchange hashpartitioning" not in joined._jdf.queryExecution().executedPlan().toString()
    assert joined.collect() == [(90,)]


def test_a_table_without_an_index_gets_none(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    zorder = tmp_path / "db" / "t" / "_zorder"
    sales(spark, 30).write.format("parquet").saveAsTable("t")
    sales(spark, 30).createOrReplaceTempView("new")
    insert(spark, tmp_path)
    assert not zorder.exists()
    (zorder / "_journal").mkdir(parents=True)
    insert(spark, tmp_path)
    assert [p.name for p in zorder.iterdir()] == ["_journal"]


@pytest.mark.parametrize("write", [overwrite, static_partition])
def test_an_overwrite_beside_an_optimize(
    spark: SparkSession, database: str, tmp_path: Path, write: Callable[[SparkSession, Path], None]
) -> None:
    """An overwrite does not fail if `_zorder` appears in a folder while the overwrite deletes that
    folder."""
    folder = tmp_path / "db" / "t"
    sales(spark, 300).write.partitionBy("day").format("parquet").saveAsTable("t")
    sales(spark, 90).createOrReplaceTempView("new")
    until = time.monotonic() + 3
    staged = [folder / f"day={day}" / "_zorder" for day in (1, 2)]

    def stage() -> None:
        while time.monotonic() < until:
            for place in staged:
                with suppress(OSError):  # the overwrite is deleting the folder
                    place.mkdir(parents=True, exist_ok=True)

    others = [threading.Thread(target=stage) for _ in range(2)]
    for other in others:
        other.start()
    write(spark, folder)
    for other in others:
        other.join()
    spark.catalog.refreshTable("t")
    new = spark.table("new")
    if write is static_partition:
        new = new.withColumn("day", F.lit(2))
    assert rows_of(spark.table("t").where("day = 2")) == rows_of(new.where("day = 2"))


def widths(spark: SparkSession, *by: str) -> list[Row]:
    return (
        spark.table("t")
        .groupBy(F.input_file_name(), *by)
        .agg(F.max("a") - F.min("a"), F.max("c") - F.min("c"), F.count("*"))
        .collect()
    )


@pytest.mark.parametrize("provider", FORMATS)
def test_rows_are_laid_out(
    spark: SparkSession, database: str, tmp_path: Path, provider: str
) -> None:
    spark.range(0, 20_000, 1, 4).selectExpr(
        "CAST(xxhash64(id) % 100000 AS INT) AS a", "CAST(xxhash64(id, 1) % 100000 AS INT) AS c"
    ).createOrReplaceTempView("new")
    properties = "TBLPROPERTIES ('zorder.clusterBy' = 'a, c', 'zorder.write.cluster' = 'true')"
    target_size(spark, 16_000)
    spark.sql(f"CREATE TABLE t USING {provider} {properties} AS SELECT * FROM new")
    before = rows_of(spark.table("new"))
    assert rows_of(spark.table("t")) == before
    files = data_files(tmp_path / "db" / "t")
    assert 6 <= len(files) <= 32
    found = widths(spark)
    assert sum(a < 140_000 and c < 140_000 for _, a, c, _ in found) == len(files)
    assert unindexed(spark) == 0
    assert metrics(spark.sql("OPTIMIZE t"))["numFilesRemoved"] == 0
    spark.sql("INSERT INTO t SELECT * FROM new")
    later = set(data_files(tmp_path / "db" / "t")) - set(files)
    # This INSERT estimates the size of a row from the table's files.
    assert sum(f.stat().st_size for f in later) / len(later) == pytest.approx(16_000, rel=0.3)
    assert unindexed(spark) == 0
    assert len(scans.opened(spark.sql("SELECT * FROM t WHERE a = 77"))) < 0.7 * len(
        files + [*later]
    )
    assert metrics(spark.sql("OPTIMIZE t"))["numFilesRemoved"] >= len(later)
    assert sum(rows_of(spark.table("t")).values()) == 40_000


@pytest.mark.parametrize(
    ("write", "partition"),
    [(insert, "INT"), (insert, "STRING"), (overwrite, "DATE"), (dynamic_overwrite, "STRING"),
     (static_partition, "INT")],
)  # fmt: skip
def test_partitions_are_laid_out(
    spark: SparkSession, database: str, tmp_path: Path, write: Callable[..., None], partition: str
) -> None:
    spark.range(0, 15_000, 1, 4).selectExpr(
        "CAST(xxhash64(id) % 100000 AS INT) AS a",
        "CAST(xxhash64(id, 1) % 100000 AS INT) AS c",
        "if(id % 50 = 0, 7, CAST(id % 3 AS INT)) AS day",
    ).createOrReplaceTempView("new")
    if partition == "DATE":
        spark.sql("SELECT a, c, date_from_unix_date(day) AS day FROM new").createOrReplaceTempView(
            "new"
        )
    spark.sql(
        f"CREATE TABLE t (a INT, c INT, day {partition}) USING parquet PARTITIONED BY (day) "
        "TBLPROPERTIES ('zorder.clusterBy' = 'a, c', 'zorder.write.cluster' = 'true')"
    )
    target_size(spark, 16_000)
    with scans.settings(spark, spark__sql__zorder__write__cluster="false"):
        write(spark, tmp_path)
    expected = rows_of(spark.table("t"))
    spark.sql("TRUNCATE TABLE t")
    write(spark, tmp_path)
    assert rows_of(spark.table("t")) == expected
    for file, _, a, c, rows in widths(spark, "day"):
        assert rows < 600 or min(a, c) < 110_000, file
    assert unindexed(spark) == 0
    assert metrics(spark.sql("OPTIMIZE t"))["numFilesRemoved"] == 0


def test_many_partitions(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """Each partition is written by a single task, even if there are more partitions than sampled
    rows."""
    spark.sql(
        "CREATE TABLE t (a INT, b INT, day INT) USING parquet PARTITIONED BY (day) " + CLUSTERED
    )
    with scans.settings(spark, spark__sql__zorder__optimize__sampleSize="10"):
        spark.range(0, 400, 1, 1).selectExpr(
            "CAST(id AS INT) AS a", "CAST(id AS INT) AS b", "CAST(id % 100 AS INT) AS day"
        ).write.insertInto("t")
    assert len(data_files(tmp_path / "db" / "t")) == 100
    assert spark.table("t").count() == 400


def test_a_value_heavier_than_a_file(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """If all rows have the same values in the clustering columns, they are still distributed over
    several files. The distribution depends on the content of the rows, not on their order of
    arrival."""
    spark.sql(f"CREATE TABLE t (a INT, b STRING, m MAP<INT, BIGINT>) USING parquet {CLUSTERED}")
    target_size(spark, 4000)
    rows = spark.range(0, 2000, 1, 4).selectExpr("1 AS a", "'x' AS b", "map(1, id) AS m")
    rows.repartition(3).write.insertInto("t")
    assert len(data_files(tmp_path / "db" / "t")) > 2
    assert rows_of(spark.table("t")) == rows_of(rows)


@pytest.mark.parametrize("rows", ["SELECT 1 a, 'x' b WHERE false", "SELECT 1 a, NULL b"])
def test_few_rows(spark: SparkSession, database: str, rows: str) -> None:
    spark.sql(f"CREATE TABLE t (a INT, b STRING) USING parquet {CLUSTERED}")
    before = rows_of(spark.sql(rows))
    spark.sql(f"INSERT INTO t {rows}")
    assert rows_of(spark.table("t")) == before


def test_a_first_write_without_rows(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """If the first write has no rows, later writes still cluster their rows, so OPTIMIZE has
    nothing to do."""
    spark.sql(f"CREATE TABLE t (a INT, b INT) USING parquet {CLUSTERED}")
    spark.sql("INSERT INTO t SELECT 1, 1 FROM range(0)")
    assert len(data_files(tmp_path / "db" / "t")) == 1
    target_size(spark, 20_000)
    spark.sql("INSERT INTO t SELECT int(id * 7919 % 9973), int(id) FROM range(20000)")
    assert len(data_files(tmp_path / "db" / "t")) > 4
    assert metrics(spark.sql("OPTIMIZE t")).numFilesRemoved == 0


def test_a_query_of_the_table_itself(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE TABLE t (a INT, b STRING) USING parquet {CLUSTERED}")
    spark.sql("INSERT INTO t SELECT id, id FROM range(100)")
    spark.sql("INSERT INTO t SELECT /*+ BROADCAST(u) */ t.* FROM t JOIN t u USING (a) ORDER BY a")
    spark.sql("INSERT INTO t SELECT count(*), max(b) FROM t GROUP BY a % 10")
    assert spark.table("t").count() == 210
    assert unindexed(spark) == 0


@pytest.mark.parametrize(
    ("declared", "error"),
    [("day", "ZORDER_PARTITION_COLUMN"), ("x", "ZORDER_UNKNOWN_COLUMN"), ("a, a", "DUPLICATE"),
     ("a,", "zorder.clusterBy")],
)  # fmt: skip
def test_declared_columns_that_cannot_be(
    spark: SparkSession, database: str, declared: str, error: str
) -> None:
    spark.sql(
        "CREATE TABLE t (a INT, day INT) USING parquet PARTITIONED BY (day) "
        f"TBLPROPERTIES ('zorder.clusterBy' = '{declared}', 'zorder.write.cluster' = 'true')"
    )
    with pytest.raises(Exception, match=error):
        spark.sql("INSERT INTO t VALUES (1, 2)")
    assert spark.table("t").count() == 0


def test_sparks_own_cluster_by(spark: SparkSession, database: str, tmp_path: Path) -> None:
    if spark.version < "4":
        pytest.skip("CLUSTER BY needs Spark 4")
    target_size(spark, 3000)
    with scans.settings(spark, spark__sql__zorder__write__cluster="true"):
        spark.sql("CREATE TABLE t CLUSTER BY (a, b) AS SELECT id AS a, -id AS b FROM range(9000)")
        assert unindexed(spark) == 0
        assert len(data_files(tmp_path / "db" / "t")) > 2
        assert len(scans.opened(spark.sql("SELECT * FROM t WHERE a = 7"))) == 1
        spark.sql("INSERT INTO t VALUES (1, 2)")
    assert spark.table("t").count() == 9001


@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED"])
def test_old_dates(spark: SparkSession, database: str, tmp_path: Path, mode: str) -> None:
    """Queries on old dates return the right rows, although Spark may read a date in the old
    calendar as a different date."""
    spark.sql("CREATE TABLE t (a DATE, b TIMESTAMP) USING parquet")
    spark.sql("CREATE SKIPPING INDEX ON t")
    with scans.settings(spark, spark__sql__parquet__datetimeRebaseModeInWrite=mode,
                        spark__sql__parquet__int96RebaseModeInWrite=mode):  # fmt: skip
        spark.sql("INSERT INTO t VALUES (DATE'1582-10-10', TIMESTAMP'1582-10-10 12:00:00')")
    indexes.check_sound(spark, tmp_path / "db" / "t", "parquet")
    for day in ("09", "10", "15", "20"):
        query = f"SELECT * FROM t WHERE a = DATE'1582-10-{day}'"
        with scans.plain(spark):
            expected = rows_of(spark.sql(query))
        assert rows_of(spark.sql(query)) == expected


#: Names of partition columns that look like names of folders created by committers, engines or
#: pyzorder.
FOLDER_NAMES = ["attempt_day", "_temporary", "task_0", "_zorder", "_zorder.1.x", "part-0", "p.parquet",
                "_metadata", "__magic", "_staging", ".spark-staging-1", "a b", "100%", "a=b"]  # fmt: skip

#: Partition values that look like the folder names above, and values that Spark escapes in folder
#: names.
FOLDER_VALUES = ["attempt_1", "_temporary", "task_0", "_zorder", "part-0.parquet", "a=b", "a/b", "50%",
                 "x y", "x:y", "é", ".b", "", None]  # fmt: skip


@pytest.mark.parametrize("name", long(FOLDER_NAMES, "attempt_day", "_zorder", "p.parquet"))
def test_partitions_named_like_folders_of_others(
    spark: SparkSession, database: str, tmp_path: Path, name: str
) -> None:
    rows = [(n, value) for n, value in enumerate(FOLDER_VALUES)]
    new = spark.createDataFrame(rows, f"id INT, `{name}` STRING")
    spark.sql(f"CREATE TABLE t (id INT, `{name}` STRING) USING parquet PARTITIONED BY (`{name}`)")
    spark.sql("CREATE SKIPPING INDEX ON t")
    for n in range(2):
        new.selectExpr(f"id + {100 * n}", f"`{name}`").coalesce(1).write.insertInto("t")
    with scans.plain(spark):
        expected = rows_of(spark.table("t"))
        assert sum(expected.values()) == 2 * len(rows)
    assert unindexed(spark) == 0
    (opened,) = scans.opened(spark.sql("SELECT * FROM t WHERE id = 103"))
    assert opened in {path.name for path in (tmp_path / "db" / "t").rglob("*.parquet")}
    assert metrics(spark.sql("OPTIMIZE t ZORDER BY (id)")).numFilesRemoved == 26
    assert rows_of(spark.table("t")) == expected and unindexed(spark) == 0
    spark.sql("RESTORE t TO BEFORE OPTIMIZE")
    assert rows_of(spark.table("t")) == expected and unindexed(spark) == 0


def test_several_partition_columns(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """Files in several levels of partition folders are indexed, even after writes to static
    partitions and writes by path."""
    spark.sql("CREATE TABLE t (id INT, attempt_a INT, attempt_b STRING) USING parquet "
              "PARTITIONED BY (attempt_a, attempt_b)")  # fmt: skip
    spark.sql("CREATE SKIPPING INDEX ON t")
    spark.sql("INSERT INTO t PARTITION (attempt_a = 1, attempt_b = 'x') VALUES (1), (2)")
    spark.sql("INSERT INTO t PARTITION (attempt_a = 1, attempt_b) VALUES (3, 'x'), (4, 'y')")
    with scans.settings(spark, spark__sql__sources__partitionOverwriteMode="dynamic"):
        spark.sql("INSERT OVERWRITE t VALUES (5, 2, 'attempt_1')")
    spark.table("t").where("id = 5").write.partitionBy("attempt_a", "attempt_b").mode(
        "append"
    ).parquet(str(tmp_path / "db" / "t"))
    spark.catalog.refreshTable("t")
    assert unindexed(spark) == 0
    assert spark.table("t").count() == 6
    assert len(scans.opened(spark.sql("SELECT * FROM t WHERE id = 4"))) == 1
