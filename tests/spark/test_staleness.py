"""Queries can be planned from the index without a listing (spark.sql.zorder.index.maxStaleness).

By default, queries immediately see files that another engine writes to a table's folder. If a
maximum staleness is set, queries may take that long to see these files. Changes that sessions with
pyzorder make are always visible immediately.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Row, SparkSession

import pyzorder
from pyzorder.index import LocalStore, TableFolder, latest, snapshot_writer
from pyzorder.index.coverage import Coverage
from pyzorder.index.entries import FileEntry
from tests.support import indexes
from tests.support.processes.journal_driver import killed, paused
from tests.support.sampled import crash, long
from tests.support.scans import FAILURES, discovered, explain, plain, settings
from tests.support.staleness import KINDS, append, bound, count, fresh, insert
from tests.support.tables import data_files, delete_folder

#: Ways to select some of a table's files: options of a read by path, and a condition.
SELECTIONS: dict[str, tuple[dict[str, str], str]] = {
    "all": ({}, "true"),
    "a pattern": ({"pathGlobFilter": "part-00000*"}, "true"),
    "a time": ({"modifiedAfter": "2000-01-01T00:00:00"}, "true"),
    "a name": ({}, "_metadata.file_name = '{}'"),
    "a size": ({}, "_metadata.file_size > 100"),
}


not_on_spark_3 = pytest.mark.skipif(
    pyspark.__version__ < "4", reason="Spark caches the table before any rule runs"
)


@pytest.fixture(params=long(KINDS, "a table"))
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Creates an optimized table with 40 rows, and returns its folder."""
    folder = tmp_path / "t"
    spark.sql(KINDS[request.param].format(folder))
    insert(spark, 0, 40)
    spark.sql("OPTIMIZE stale ZORDER BY (id)").collect()
    yield folder
    spark.sql("DROP TABLE IF EXISTS stale")


def test_what_others_append(spark: SparkSession, table: Path) -> None:
    hour = bound(fresh(spark), "1h")
    assert count(hour) == 40
    append(table, [100, 102])
    assert count(fresh(spark)) == 42  # by default, the rows are visible immediately
    assert count(hour) == 40
    assert count(bound(fresh(spark), "1h")) == 40  # a new session does not list the folder either
    assert hour.sql("SELECT count(*) FROM stale").collect() == [(40,)]
    time.sleep(1.1)
    assert count(bound(fresh(spark), "1s")) == 42
    assert count(bound(hour, "1s")) == 42


def test_what_sessions_with_pyzorder_write(spark: SparkSession, table: Path) -> None:
    reader, writer = bound(fresh(spark), "1h"), fresh(spark)
    assert count(reader) == 40
    insert(writer, 40, 60)
    assert count(reader) == 60
    assert count(reader, "id >= 50") == 10
    writer.sql("OPTIMIZE stale FULL ZORDER BY (id)").collect()
    assert count(reader) == 60
    with settings(writer, spark__sql__zorder__write__index="false"):
        insert(writer, 60, 70)
    assert count(reader) == 70
    writer.sql("OPTIMIZE stale ZORDER BY (id)").collect()
    assert count(reader) == 70
    insert_overwrite = "INSERT OVERWRITE stale SELECT id, cast(id % 2 as int) FROM range(6)"
    writer.sql(insert_overwrite)
    assert count(reader) == 6
    assert reader.sql("SELECT count(*), max(id) FROM stale").collect() == [(6, 5)]


def test_several_inserts_in_one_statement(spark: SparkSession, table: Path) -> None:
    reader, writer = bound(fresh(spark), "1h"), fresh(spark)
    assert count(reader) == 40
    source = "FROM (SELECT 100L id, 0 p) rows"
    writer.sql(f"{source} INSERT INTO stale SELECT id, p INSERT INTO stale SELECT id + 1, p")
    assert count(reader) == count(writer) == count(fresh(spark)) == 42
    (scan,) = explain(reader.sql("SELECT * FROM stale WHERE id = 100"))
    assert scan["unindexed"] == 0


def test_an_overwrite_that_fails(spark: SparkSession, table: Path) -> None:
    """Spark deletes the old files, and with them the index, before it writes the new ones."""
    reader = bound(fresh(spark), "1h")
    assert count(reader, "id >= 0") == 40
    with pytest.raises(PySparkException, match="on purpose"):
        spark.sql(
            "INSERT OVERWRITE stale SELECT CAST(raise_error('on purpose') AS BIGINT), 1 FROM range(3)"
        )
    left = 40 if data_files(table) else 0
    assert count(fresh(spark), "id >= 0") == count(reader, "id >= 0") == left
    insert(fresh(spark), 100, 107)
    assert count(fresh(spark), "id >= 0") == count(reader, "id >= 0") == left + 7


@pytest.mark.parametrize("indexed", long(["true", "false"], "true"))
@pytest.mark.parametrize(
    "point", crash(["after-index", "before-commit", "mid-move-in", "before-done"], "mid-move-in")
)
def test_an_insert_while_another_process_optimizes(
    spark: SparkSession, table: Path, point: str, indexed: str
) -> None:
    """Queries see the rows of an INSERT exactly once, even if the index already contains new files
    that a concurrent OPTIMIZE has not committed yet."""
    reader = bound(fresh(spark), "1h")
    assert count(reader) == 40
    statement = f"OPTIMIZE parquet.`{table}` FULL ZORDER BY (id)"
    with paused(table, point, statement) as process:
        with settings(spark, spark__sql__zorder__write__index=indexed):
            insert(spark, 40, 60)
        assert count(reader) == count(bound(fresh(spark), "1h")) == 60
    assert process.succeeded, process.said
    for session in (reader, bound(fresh(spark), "1h"), fresh(spark)):
        assert count(session) == 60
        assert count(session, "id >= 50") == 10
    named = {row.path for row in spark.sql("SELECT path FROM skipping_index('stale')").collect()}
    there = {str(file.relative_to(table)) for file in data_files(table)}
    assert named == there if indexed == "true" else named < there


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO stale VALUES (100, 0)",
        pytest.param("INSERT OVERWRITE stale VALUES (100, 0)", marks=pytest.mark.crash),
        pytest.param("OPTIMIZE stale FULL ZORDER BY (id)", marks=pytest.mark.crash),
    ],
)
@pytest.mark.parametrize("indexed", long(["true", "false"], "true"))
def test_a_refresh_that_listed_before(
    spark: SparkSession, table: Path, statement: str, indexed: str
) -> None:
    """Queries see a change that another session makes after REFRESH has listed the table and before
    REFRESH publishes the index."""
    spark.sql("DROP SKIPPING INDEX ON stale")
    spark.sql("CREATE SKIPPING INDEX ON stale (id)")
    append(table, [200, 202])
    refresh = f"REFRESH SKIPPING INDEX ON parquet.`{table}`"
    index = settings(spark, spark__sql__zorder__write__index=indexed)
    with paused(table, "index-collected", refresh) as process, index:
        spark.sql(statement).collect()
    assert process.succeeded, process.said
    expected = count(fresh(spark))
    for _ in range(2):
        hour = bound(fresh(spark), "1h")
        assert count(hour) == expected
        assert hour.sql("SELECT count(*) FROM stale").collect() == [(expected,)]
        spark.sql("REFRESH SKIPPING INDEX ON stale")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "create", ["CREATE SKIPPING INDEX ON {} (id)", "OPTIMIZE {} ZORDER BY (id)"]
)
def test_an_index_created_beside_an_insert(
    spark: SparkSession, tmp_path: Path, kind: str, create: str
) -> None:
    """Queries see the rows that another session inserts after the statement that creates the index
    has listed the table, and before it publishes the index."""
    spark.sql(KINDS[kind].format(tmp_path / "t"))
    try:
        insert(spark, 0, 40)
        statement = create.format(f"parquet.`{tmp_path / 't'}`")
        point = "index-collected" if "INDEX" in create else "after-markers"
        with paused(tmp_path / "t", point, statement) as process:
            insert(spark, 40, 50)
        assert process.succeeded, process.said
        assert count(bound(fresh(spark), "1h")) == 50
    finally:
        spark.sql("DROP TABLE stale")


#: (what other sessions do while a CREATE SKIPPING INDEX runs, the ids that the table then has)
BESIDE_CREATE = [
    (["INSERT OVERWRITE stale VALUES (1, 0)"], [1]),
    (
        ["DROP TABLE stale", KINDS["a table"], "INSERT INTO stale VALUES (2, 0)",
         "CREATE SKIPPING INDEX ON stale (id)"],
        [2],
    ),
    (
        ["DROP SKIPPING INDEX ON stale", "INSERT INTO stale VALUES (40, 0)",
         "CREATE SKIPPING INDEX ON stale (p)", "INSERT INTO stale VALUES (41, 0)"],
        [*range(42)],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("statements", "ids"), BESIDE_CREATE)
def test_an_index_replaced_while_it_is_created(
    spark: SparkSession, tmp_path: Path, statements: list[str], ids: list[int]
) -> None:
    """The numbers of a new index begin at 1 again, so they do not say that it is the same index."""
    folder = tmp_path / "t"
    spark.sql(KINDS["a table"].format(folder))
    try:
        insert(spark, 0, 40)
        create = f"CREATE SKIPPING INDEX ON parquet.`{folder}` (id)"
        with paused(folder, "index-collected", create) as process:
            for statement in statements:
                if statement.startswith("CREATE TABLE"):
                    delete_folder(folder)
                spark.sql(statement.format(folder))
        assert process.succeeded, process.said
        for staleness in ("1h", "0s"):
            reader = bound(fresh(spark), staleness)
            assert reader.sql("SELECT count(*) FROM stale").collect() == [(len(ids),)]
            found = reader.sql("SELECT id FROM stale WHERE p >= 0 ORDER BY id").collect()
            assert [row.id for row in found] == ids, staleness
    finally:
        spark.sql("DROP TABLE IF EXISTS stale")


def test_a_create_that_was_killed(spark: SparkSession, table: Path) -> None:
    """A killed CREATE SKIPPING INDEX leaves an index without rows. CREATE IF NOT EXISTS and REFRESH
    complete it."""
    for statement in ("CREATE SKIPPING INDEX IF NOT EXISTS ON", "REFRESH SKIPPING INDEX ON"):
        spark.sql("DROP SKIPPING INDEX ON stale")
        killed(table, "index-collected", f"CREATE SKIPPING INDEX ON parquet.`{table}` (id)")
        assert spark.sql("SELECT * FROM skipping_index('stale')").collect() == []
        assert count(bound(fresh(spark), "1h")) == 40
        spark.sql(f"{statement} stale")
        found = spark.sql("SELECT path FROM skipping_index('stale')").collect()
        assert {row.path for row in found} == {
            str(file.relative_to(table)) for file in data_files(table)
        }
        assert count(bound(fresh(spark), "1h"), "id = 7") == 1


def test_a_partition_that_only_the_catalog_has_got(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(KINDS["a partitioned table"].format(tmp_path / "t"))
    try:
        insert(spark, 0, 40)
        spark.sql("OPTIMIZE stale ZORDER BY (id)").collect()
        reader = bound(fresh(spark), "1h")
        (tmp_path / "t" / "p=5").mkdir()
        pq.write_table(pa.table({"id": pa.array([5], pa.int64())}), tmp_path / "t/p=5/x.parquet")
        assert count(reader) == 40
        spark.sql("ALTER TABLE stale ADD PARTITION (p = 5)")
        assert count(reader) == 41
        pq.write_table(pa.table({"id": pa.array([9], pa.int64())}), tmp_path / "x.parquet")
        spark.sql(f"ALTER TABLE stale ADD PARTITION (p = 6) LOCATION '{tmp_path}'")
        assert count(reader) == 42
    finally:
        spark.sql("DROP TABLE stale")


@not_on_spark_3
def test_listings_per_change(spark: SparkSession, tmp_path: Path) -> None:
    """A table with an index is listed once per session after a change."""
    spark.sql(KINDS["a table"].format(tmp_path / "t"))
    try:
        insert(spark, 0, 40)
        spark.sql("CREATE SKIPPING INDEX ON stale")
        reader, writer = fresh(spark), fresh(spark)
        files, before = len(data_files(tmp_path / "t")), discovered(spark)
        assert count(reader) == count(writer) == 40
        assert discovered(spark) == before + 2 * files
        insert(writer, 40, 50)
        files, before = len(data_files(tmp_path / "t")), discovered(spark)
        for session, times in ((writer, 1), (reader, 2)):
            assert count(session) == count(session, "id < 45") + 5 == 50
            assert discovered(spark) == before + times * files
    finally:
        spark.sql("DROP TABLE stale")


def test_a_statement_after_others_have_deleted_files(spark: SparkSession, tmp_path: Path) -> None:
    """A session that has listed the table reads it again, even if OPTIMIZE found nothing to do."""
    folder = tmp_path / "t"
    spark.sql(KINDS["a table"].format(folder))
    try:
        insert(spark, 0, 40)
        spark.sql("CREATE SKIPPING INDEX ON stale")
        reader = fresh(spark)
        assert count(reader) == 40
        for file in data_files(folder):
            file.unlink()
        reader.sql("OPTIMIZE stale ZORDER BY (id)")
        assert count(reader) == 0
    finally:
        spark.sql("DROP TABLE stale")


def test_a_streaming_query_that_writes_files(spark: SparkSession, tmp_path: Path) -> None:
    """Once a streaming query has written to a folder, Spark reads only the files in its log."""
    folder, rows = tmp_path / "t", tmp_path / "rows"
    spark.sql(KINDS["a table"].format(folder))
    try:
        insert(spark, 0, 40)
        spark.sql("CREATE SKIPPING INDEX ON stale")
        assert count(fresh(spark)) == 40
        spark.range(40, 45).selectExpr("id", "0 p").write.parquet(str(rows))
        stream = spark.readStream.schema("id BIGINT, p INT").parquet(str(rows)).writeStream
        stream.option("checkpointLocation", str(tmp_path / "log")).trigger(availableNow=True).start(
            path=str(folder), format="parquet"
        ).awaitTermination()
        assert count(fresh(spark)) == count(fresh(spark), "id >= 40") == 5
    finally:
        spark.sql("DROP TABLE stale")


@pytest.mark.parametrize("staleness", ["0s", "1h"])
def test_a_cached_dataframe(spark: SparkSession, table: Path, staleness: str) -> None:
    """A write updates cached data."""
    writer, other = bound(fresh(spark), staleness), bound(fresh(spark), staleness)
    cached = writer.table("stale").cache()
    try:
        assert cached.count() == count(writer) == 40
        writer.sql("INSERT INTO stale VALUES (100, 0)")
        assert count(writer) == count(other) == writer.table("stale").count() == 41
        other.sql("INSERT INTO stale VALUES (101, 0), (102, 1)")
        assert count(writer) == count(other) == 43
        writer.sql("INSERT OVERWRITE stale VALUES (1, 1)")
        assert count(writer) == count(other) == 1
    finally:
        cached.unpersist()


@pytest.mark.parametrize("listed", [False, True])
def test_a_selected_file_that_has_gone(spark: SparkSession, table: Path, listed: bool) -> None:
    """Spark may have listed the table when the reader used it for the first time."""
    reader = fresh(spark)
    if listed:
        assert count(reader, "id >= 0") == 40
    reader = bound(reader, "1h")
    assert count(reader, "id >= 0") == 40
    for file in data_files(table):
        file.unlink()
    append(table, [100, 102])
    assert count(reader, "id >= 0") == 2
    assert count(reader, "id >= 0") == 2


#: Queries that scan a table several times, and their answers. Before each query, one of the table's
#: files is renamed or replaced.
SEVERAL_SCANS = {
    "SELECT (SELECT count(*) FROM stale), (SELECT sum(1) FROM stale WHERE id % 2 >= 0)": (42, 42),
    "SELECT n, m FROM (SELECT count(*) n FROM stale)"
    " JOIN (SELECT sum(1) m FROM stale WHERE id >= 10) ON true": (42, 32),
    "SELECT id, p FROM stale WHERE id = (SELECT max(id) FROM stale)": (102, 0),
    "SELECT sum(n), count(*) FROM (SELECT 1 n FROM stale WHERE id < 5"
    " UNION ALL SELECT 1 FROM stale WHERE id >= 100)": (7, 7),
    "SELECT count(*), max(b.id) FROM stale a JOIN stale b ON a.id = b.id - 100": (2, 102),
    "SELECT /*+ BROADCAST(o) */ count(*), max(stale.id) FROM stale JOIN other o USING (id)": (
        2,
        102,
    ),
    "SELECT sum(1), max(id) FROM (SELECT id FROM other UNION ALL SELECT id FROM stale)": (44, 102),
}


@pytest.mark.parametrize("adaptive", long(["true", "false"], "true"))
@pytest.mark.parametrize("query", SEVERAL_SCANS)
def test_several_scans_and_a_file_that_has_gone(
    spark: SparkSession, table: Path, tmp_path: Path, query: str, adaptive: str
) -> None:
    """All scans in a query see the same state even if another engine has replaced a file. The new
    file has either a different name or the same name."""
    spark.sql(f"CREATE TABLE other (id BIGINT) USING parquet LOCATION '{tmp_path / 'other'}'")
    try:
        spark.sql("INSERT INTO other VALUES (100), (102)")
        spark.sql("OPTIMIZE other ZORDER BY (id)").collect()
        file = append(table, [100, 102])
        spark.sql("REFRESH SKIPPING INDEX ON stale")
        file.rename(file.with_name("renamed.parquet"))
        for _ in range(2):
            reader = bound(fresh(spark), "1h")
            reader.conf.set("spark.sql.adaptive.enabled", adaptive)
            assert reader.sql(query).collect() == [SEVERAL_SCANS[query]]
            spark.sql("REFRESH SKIPPING INDEX ON stale")
            pq.write_table(
                pq.read_table(file.with_name("renamed.parquet"), partitioning=None),
                file.with_name("renamed.parquet"), compression="none", use_dictionary=False,
            )  # fmt: skip
    finally:
        spark.sql("DROP TABLE other")


def test_a_file_replaced_in_its_place(spark: SparkSession, table: Path) -> None:
    file = append(table, [100, 102])
    spark.sql("REFRESH SKIPPING INDEX ON stale")
    hour = bound(fresh(spark), "1h")
    assert count(hour, "id = 104") == 0
    append(table, [100, 104])
    os.utime(file, ns=(10**18, 10**18))
    assert count(fresh(spark), "id = 104") == 1
    assert count(hour, "id = 104") == 0  # not opened, because its upper bound is 102
    assert count(hour, "id = 100") == 1  # opened, and recognized as a different file
    assert count(bound(hour, "0s"), "id = 104") == 1


def test_one_query_sees_one_state(spark: SparkSession, table: Path) -> None:
    reader = bound(fresh(spark), "1h")
    append(table, [100, 102])
    query = f"SELECT (SELECT sum(1) FROM stale), (SELECT sum(1) FROM parquet.`{table}`)"
    [(by_name, by_path)] = reader.sql(query).collect()
    assert by_name == by_path


def test_explain_says_as_of_when(spark: SparkSession, table: Path) -> None:
    query = "SELECT * FROM stale WHERE id = 99"
    (scan,) = explain(bound(fresh(spark), "1h").sql(query))
    assert "as of 20" in str(pyzorder.explain(bound(fresh(spark), "1h").sql(query)))
    assert "as of 20" in bound(fresh(spark), "1h").sql("EXPLAIN " + query).collect()[0][0]
    assert "as of" not in fresh(spark).sql("EXPLAIN " + query).collect()[0][0]
    assert scan["skipped"] > 0


@pytest.fixture
def large(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Creates an indexed table with 640 files of one row each, and returns its folder."""
    folder = tmp_path / "t"
    folder.mkdir()
    for number in range(640):
        append(folder, [number])
    spark.sql(KINDS["a table"].format(folder))
    spark.sql("CREATE SKIPPING INDEX ON stale (id)")
    yield folder
    spark.sql("DROP TABLE stale")


def test_an_insert_into_a_large_table(spark: SparkSession, large: Path) -> None:
    """An INSERT lists nothing while the index is recent enough. Such an INSERT does not make the
    index more recent, so readers still see other writers' files in time."""

    def listed_at() -> int:
        found = latest(LocalStore(), TableFolder(str(large)))
        assert found is not None and found.pointer.coverage is not None
        return found.pointer.coverage.listed_at

    before = discovered(spark), listed_at()
    writer = bound(fresh(spark), "1h")
    for _ in range(2):
        insert(writer, 1000, 1001)
    assert (discovered(spark), listed_at()) == before
    append(large, [2000])
    insert(writer, 1000, 1001)
    assert (discovered(spark), listed_at()) == before
    assert count(writer) == count(bound(fresh(spark), "1h")) == 643
    assert count(writer, "id = 1000") == 3
    assert count(fresh(spark)) == 644
    time.sleep(1.1)
    assert count(bound(fresh(spark), "1s")) == 644
    insert(bound(fresh(spark), "1s"), 1000, 1001)  # the index is too old, so the table is listed
    assert count(bound(fresh(spark), "1h")) == 644  # the other writer's file has no entry
    assert count(fresh(spark)) == 645


def test_statements_on_a_table_that_is_not_listed(spark: SparkSession, large: Path) -> None:
    writer = bound(fresh(spark), "1h")
    before = discovered(spark)
    writer.sql("INSERT INTO stale SELECT * FROM stale WHERE id < 5")
    assert count(writer, "id < 5") == 10
    assert discovered(spark) == before
    with pytest.raises(AnalysisException, match="being read from"):
        writer.sql("INSERT OVERWRITE stale SELECT * FROM stale WHERE id < 5")
    writer.sql("INSERT OVERWRITE stale VALUES (1, 0), (2, 0)")
    writer.sql("INSERT INTO stale VALUES (3, 0)")
    assert count(writer) == count(fresh(spark)) == 3
    assert fresh(spark).sql("DESCRIBE SKIPPING INDEX ON stale").collect()


def test_the_tables_property(spark: SparkSession, table: Path) -> None:
    spark.sql("ALTER TABLE stale SET TBLPROPERTIES ('zorder.index.maxStaleness' = '1h')")
    append(table, [100, 102])
    assert count(fresh(spark)) == 40
    assert count(bound(fresh(spark), "0s")) == 42


@pytest.mark.parametrize("skew", [-7200, 7200])
def test_clocks_that_disagree(spark: SparkSession, table: Path, skew: int) -> None:
    """A listing time in the future is ignored, and a listing time that is too early does no
    harm."""
    pointer = max((table / "_zorder" / "_index").glob("_v*.json"))
    text = pointer.read_text()
    listed = int(text.split('"listedAt" : ')[1].split(",")[0])
    pointer.write_text(text.replace(str(listed), str(listed + 1000 * skew)))
    append(table, [100, 102])
    assert count(bound(fresh(spark), "1h")) == 42


def test_trusted_has_no_bound(spark: SparkSession, table: Path) -> None:
    append(table, [100, 102])
    with settings(spark, spark__sql__zorder__index__trusted="true"):
        assert count(spark) == 40
        spark.sql("REFRESH SKIPPING INDEX ON stale")
        assert count(spark) == 42


@not_on_spark_3
@pytest.mark.parametrize("staleness", ["0s", "1h"])
def test_a_table_made_anew_in_another_format(
    spark: SparkSession, table: Path, tmp_path: Path, staleness: str
) -> None:
    reader = bound(fresh(spark), staleness)
    assert count(reader) == 40
    spark.sql("DROP TABLE stale")
    spark.sql(
        f"CREATE TABLE stale USING orc LOCATION '{tmp_path / 'orc'}' AS SELECT 7 AS x, 1 AS id"
    )
    assert count(reader) == 1
    assert reader.table("stale").columns == ["x", "id"]


def test_a_table_dropped_and_made_anew(
    spark: SparkSession, table: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    reader = bound(fresh(spark), "1h")
    assert count(reader) == 40
    spark.sql("DROP TABLE stale")
    delete_folder(table)
    spark.sql(KINDS[request.node.callspec.params["table"]].format(table))
    spark.sql("INSERT INTO stale VALUES (1, 1)")
    if spark.version < "4" and not (table / "p=1").exists():
        # Spark has cached the old listing before any rule runs, and fails as it does without pyzorder
        with plain(reader), pytest.raises(FAILURES, match="does not exist"):
            count(reader)
        with pytest.raises(FAILURES, match="does not exist"):
            count(reader)
        reader.sql("REFRESH TABLE stale")
    assert count(reader) == 1
    spark.sql("ALTER TABLE stale RENAME TO stale_too")
    with suppress(Exception):
        spark.sql("ALTER TABLE stale_too RENAME TO stale")
    assert count(reader) == 1
    if not (table / "p=1").exists():
        spark.range(3).selectExpr("id", "1 p").write.parquet(str(tmp_path / "u"))
        spark.sql(f"ALTER TABLE stale SET LOCATION '{tmp_path / 'u'}'")
        assert count(fresh(reader)) == 3


@pytest.mark.parametrize("select", SELECTIONS)
def test_a_query_that_selects_files(spark: SparkSession, table: Path, select: str) -> None:
    """Options and conditions on file metadata select among the files in the index."""
    name = max(path.name for path in table.rglob("part-*.parquet"))
    options, condition = SELECTIONS[select]

    def answers(session: SparkSession) -> list[list[Row]]:
        by_path = session.read.options(**options).parquet(str(table))
        return [
            rows.where(where).where(condition.format(name)).orderBy("id").collect()
            for rows in (by_path, session.table("stale"))
            for where in ("true", "id >= 30", "id = 99")
        ]

    with plain(spark):
        expected = answers(spark)
    assert answers(bound(fresh(spark), "1h")) == expected


def test_files_that_a_session_hides(spark: SparkSession, table: Path) -> None:
    """Since version 4.3, Spark has a setting and an option for the names that listings hide."""
    append(table, [100, 102])
    spark.sql("REFRESH SKIPPING INDEX ON stale")
    names = "^[._]|^foreign"
    hiding, other = fresh(spark), bound(fresh(spark), "1h")
    hiding.conf.set("spark.sql.files.ignoredPathSegmentRegex", names)
    with plain(hiding):
        expected = count(hiding)
    assert count(bound(hiding, "1h")) == expected
    by_path = other.read.option("ignoredPathSegmentRegex", names).parquet(str(table))
    assert by_path.where("id >= 0 OR p = 7").selectExpr("sum(1)").collect() == [(expected,)]
    assert count(other) == 42


def test_an_index_that_names_a_file_twice(spark: SparkSession, tmp_path: Path) -> None:
    """A forged index may name a file relative to the table's folder and by its whole path."""
    folder = tmp_path / "t"
    spark.range(0, 100, 1, 2).write.parquet(str(folder))
    spark.sql(f"CREATE SKIPPING INDEX ON '{folder}' (id)")
    first = min(folder.glob("*.parquet"))
    read = indexes.table(spark, folder)[0]["read_settings"]
    forge(folder, f"file:{first}", first, read)
    with settings(spark, spark__sql__zorder__index__maxStaleness="1h"):
        assert spark.read.parquet(str(folder)).where("id >= 0").count() == 100


def forge(folder: Path, name: str, file: Path, read: str) -> None:
    """Adds an entry for `file` under this name to the index in `folder`."""
    seen = file.stat()
    entry = FileEntry(name, seen.st_size, seen.st_mtime_ns // 1_000_000, 50, (), read)
    snapshot_writer.publish(
        LocalStore(), TableFolder(str(folder)), tuple, entries=[entry],
        coverage=lambda old, rows: Coverage(int(time.time() * 1000), is_whole=True),
    )  # fmt: skip


def test_an_index_that_names_files_of_another_folder(spark: SparkSession, tmp_path: Path) -> None:
    """A query that reads two folders by path takes the files of each folder from the index of that
    folder."""
    own, theirs = tmp_path / "own", tmp_path / "theirs"
    spark.range(0, 100, 1, 2).write.parquet(str(own))
    spark.range(1000, 1010, 1, 1).write.parquet(str(theirs))
    for folder in (own, theirs):
        spark.sql(f"CREATE SKIPPING INDEX ON '{folder}' (id)")
    first = min(own.glob("*.parquet"))
    forge(theirs, f"file:{first}", first, indexes.table(spark, theirs)[0]["read_settings"])
    with settings(spark, spark__sql__zorder__index__maxStaleness="1h"):
        assert spark.read.parquet(str(own), str(theirs)).where("id >= 0").count() == 110
