"""A session immediately sees what other sessions with pyzorder write, even if it plans queries
without a listing (spark.sql.zorder.index.maxStaleness)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.support.sampled import long
from tests.support.scans import discovered, settings
from tests.support.staleness import KINDS, append, bound, count, fresh, insert

FLAT = KINDS["a table"]
PARTITIONED = KINDS["a partitioned table"]
BUCKETED = FLAT.replace(" LOCATION", " CLUSTERED BY (id) INTO 2 BUCKETS LOCATION")
BUCKETED_PARTITIONS = PARTITIONED.replace(" LOCATION", " CLUSTERED BY (id) INTO 2 BUCKETS LOCATION")
RECURSIVE = FLAT.replace(" LOCATION", " OPTIONS (recursiveFileLookup 'true') LOCATION")
MANAGED = PARTITIONED.split(" LOCATION")[0]

OPTIMIZE = "OPTIMIZE stale ZORDER BY (id)"
CREATE = "CREATE SKIPPING INDEX ON stale (id)"
NO_INDEX = OPTIMIZE + "; DROP SKIPPING INDEX ON stale"
INSERT = "INSERT INTO stale SELECT id, cast(id % 2 as int) FROM range(40, 45)"
OVERWRITE = "INSERT OVERWRITE stale SELECT id, cast(id % 2 as int) FROM range(3)"
OVERWRITE_1 = "INSERT OVERWRITE stale PARTITION (p = 1) SELECT id FROM range(3)"

#: Adds partition 9 with two rows. The partition's folder is in the table's folder but is not named
#: `p=9`.
ODD_PARTITION = (
    "ALTER TABLE stale ADD PARTITION (p = 9) LOCATION '{t}/nine';"
    " INSERT INTO stale VALUES (90, 9), (91, 9)"
)


def through(folder: str, statement: str = "INSERT INTO part VALUES (41), (43)") -> str:
    """Statements that create a separate table on a folder, write to that table and drop it."""
    create = f"CREATE TABLE part (id BIGINT) USING parquet LOCATION '{folder}'"
    return f"{create}; {statement}; DROP TABLE part"


def directory(folder: str, rows: int, provider: str = "parquet") -> str:
    query = f"SELECT id FROM range({rows})"
    return f"INSERT OVERWRITE DIRECTORY '{folder}' USING {provider} {query}"


@dataclass(frozen=True)
class Case:
    """A change to a table. The table has the ids 0 to 39, and half of them are in p = 0. {t} is the
    table's folder.

    :param table:  the statement that creates the table
    :param before: the statements that create or drop the index
    :param change: the statements that change the table in another session
    :param rows:   the number of rows in the table afterwards
    :param times:  the values of maxStaleness at which a session sees the change. If it does not see
                   the change at 0s, it does not see it in plain Spark either, until REFRESH TABLE
    """

    table: str
    before: str
    change: str
    rows: int
    times: tuple[str, ...] = ("1h", "0s")


CASES = {
    "overwrite a folder": Case(MANAGED, OPTIMIZE, directory("{t}/p=1", 1), 21),
    "another table": Case(MANAGED, OPTIMIZE, through("{t}/p=1"), 42),
    "truncate a partition": Case(MANAGED, OPTIMIZE, "TRUNCATE TABLE stale PARTITION (p = 1)", 20),
    "truncate": Case(MANAGED, OPTIMIZE, "TRUNCATE TABLE stale", 0),
    "drop a partition": Case(
        MANAGED,
        OPTIMIZE,
        "ALTER TABLE stale DROP PARTITION (p = 1); ALTER TABLE stale ADD PARTITION (p = 1)",
        20,
    ),
    "rename a partition": Case(
        MANAGED,
        OPTIMIZE,
        "ALTER TABLE stale PARTITION (p = 1) RENAME TO PARTITION (p = 2);"
        " ALTER TABLE stale ADD PARTITION (p = 1)",
        40,
    ),
    "overwrite in another format": Case(PARTITIONED, OPTIMIZE, directory("{t}/p=1", 0, "json"), 20),
    "not optimized": Case(FLAT, CREATE, INSERT, 45),
    "not optimized, overwrite": Case(FLAT, CREATE, OVERWRITE, 3),
    "not optimized, partitions": Case(PARTITIONED, CREATE, INSERT, 45),
    "not optimized, overwrite a partition": Case(PARTITIONED, CREATE, OVERWRITE_1, 23),
    "buckets": Case(BUCKETED, CREATE, INSERT, 45),
    "buckets, overwrite": Case(BUCKETED, CREATE, OVERWRITE, 3),
    "buckets in partitions": Case(BUCKETED_PARTITIONS, CREATE, INSERT, 45),
    "buckets in partitions, overwrite": Case(BUCKETED_PARTITIONS, CREATE, OVERWRITE_1, 23),
    "no index": Case(FLAT, NO_INDEX, INSERT, 45, ("1h",)),
    "no index, overwrite": Case(FLAT, NO_INDEX, OVERWRITE, 3),
    "no index, partitions": Case(PARTITIONED, NO_INDEX, INSERT, 45),
    "no index, overwrite a partition": Case(PARTITIONED, NO_INDEX, OVERWRITE_1, 23),
    "no index, a folder": Case(PARTITIONED, NO_INDEX, through("{t}/p=1"), 42),
    "an odd folder": Case(
        PARTITIONED, f"{ODD_PARTITION}; {OPTIMIZE}", "INSERT INTO stale VALUES (92, 9)", 43
    ),
    "an odd folder, another table": Case(
        PARTITIONED, f"{ODD_PARTITION}; {OPTIMIZE}", through("{t}/nine"), 44
    ),
    "an odd folder, overwritten": Case(
        PARTITIONED, f"{ODD_PARTITION}; {OPTIMIZE}", directory("{t}/nine", 1), 41
    ),
    "folders in folders": Case(RECURSIVE, CREATE, directory("{t}/sub", 3), 43, ("1h",)),
    "folders in folders, another table": Case(
        RECURSIVE, f"{directory('{t}/sub', 3)}; {CREATE}", through("{t}/sub"), 45, ("1h",)
    ),
}


#: A partitioned table with an index. The test does not change the table.
OPTIMIZED = Case(PARTITIONED, OPTIMIZE, "", 40)


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Creates the case's table and writes 40 rows. Returns the table's folder."""
    case: Case = request.param
    spark.sql(case.table.format(tmp_path / "t"))
    try:
        details = spark.sql("DESCRIBE TABLE EXTENDED stale").where("col_name = 'Location'").first()
        place = details.data_type.removeprefix("file:")
        insert(spark, 0, 40)
        run(spark, case.before, place)
        yield place
    finally:
        spark.sql("DROP TABLE IF EXISTS part")
        spark.sql("DROP TABLE stale")


def run(spark: SparkSession, statements: str, folder: str) -> None:
    for statement in statements.split("; "):
        fresh(spark).sql(statement.format(t=folder)).collect()


def assert_seen(spark: SparkSession, readers: list[SparkSession], rows: int) -> None:
    """Asserts that the readers and new sessions count `rows` rows, both in a scan and from the
    index."""
    for session in (*readers, bound(fresh(spark), "1h"), fresh(spark)):
        assert session.sql("SELECT count(*) FROM stale").collect() == [(rows,)]
        assert count(session) == rows
        assert count(session, "id >= 0") == rows


@pytest.mark.parametrize(
    ("case", "folder"),
    [
        pytest.param(case, case, id=name, marks=[pytest.mark.long] if number % 2 else [])
        for number, (name, case) in enumerate(CASES.items())
    ],
    indirect=["folder"],
)  # fmt: skip
def test_a_change_by_another_session(spark: SparkSession, case: Case, folder: str) -> None:
    readers = [bound(fresh(spark), time) for time in case.times]
    for reader in readers:
        assert reader.sql("SELECT count(*) FROM stale").collect() == [(count(reader),)]
    run(spark, case.change, folder)
    assert_seen(spark, readers, case.rows)


def tear(folder: Path, pattern: str) -> None:
    """Damages the newest of the index's files that match the pattern."""
    newest = max(
        (folder / "_zorder" / "_index").glob(pattern), key=lambda file: file.stat().st_mtime
    )
    newest.write_text("{")


#: Ways to lose a table's index, as functions of a session and the table's folder.
LOSSES: dict[str, Callable[[SparkSession, Path], object]] = {
    "dropped": lambda spark, _: spark.sql("DROP SKIPPING INDEX ON stale"),
    "damaged pointer": lambda _, folder: tear(folder, "_v*.json"),
    "damaged snapshot": lambda _, folder: tear(folder, "_snapshot-*"),
    "deleted": lambda _, folder: shutil.rmtree(folder / "_zorder"),
}


@pytest.mark.parametrize(
    "folder",
    [Case(FLAT, CREATE, "", 40), Case(PARTITIONED, CREATE, "", 40)],
    indirect=True,
    ids=["a table", "a partitioned table"],
)
@pytest.mark.parametrize(
    ("change", "rows"),
    long([(INSERT, 45), (OVERWRITE, 3)], (INSERT, 45)),
    ids=["INSERT", "OVERWRITE"],
)
@pytest.mark.parametrize("loss", LOSSES)
def test_an_index_is_lost(
    spark: SparkSession, folder: str, change: str, rows: int, loss: str
) -> None:
    """Rows that a session has seen stay visible if the index is then dropped or damaged."""
    readers = [bound(fresh(spark), time) for time in ("0s", "1h")]
    assert [count(reader) for reader in readers] == [40, 40]
    run(spark, change, folder)
    assert [count(reader) for reader in readers] == [rows, rows]
    LOSSES[loss](fresh(spark), Path(folder))
    for _ in range(2):
        assert [count(reader) for reader in readers] == [rows, rows]


@pytest.mark.skipif(pyspark.__version__ < "4", reason="Spark caches the table before any rule runs")
@pytest.mark.parametrize("column", ["c INT DEFAULT 5", "c CHAR(3) DEFAULT 'a'"])
def test_a_column_added_by_another_session(
    spark: SparkSession, tmp_path: Path, column: str
) -> None:
    spark.sql(f"CREATE TABLE stale (id BIGINT, v VARCHAR(9), h CHAR(2)) USING parquet"
              f" LOCATION '{tmp_path / 't'}'")  # fmt: skip
    try:
        spark.sql("INSERT INTO stale VALUES (1, 'x', 'y')")
        reader = fresh(spark)
        assert reader.sql("SELECT * FROM stale").collect() == [(1, "x", "y ")]
        listed = discovered(spark)
        assert reader.sql("SELECT * FROM stale").collect() == [(1, "x", "y ")]
        assert discovered(spark) == listed  # the relation is still cached
        spark.sql(f"ALTER TABLE stale ADD COLUMNS ({column})")
        (row,) = reader.sql("SELECT c FROM stale").collect()
        assert str(row.c).strip() in ("5", "a")
    finally:
        spark.sql("DROP TABLE stale")


#: What a session does with the table before another one changes it, as two functions of the
#: session. The first one is called before the table has an index, and the second one afterwards.
USES: dict[str, tuple[Callable[[SparkSession], object], Callable[[SparkSession], object]]] = {
    "a query before": (count, lambda _: None),
    "resolved before": (lambda spark: spark.table("stale").schema, lambda _: None),
    "resolved afterwards": (lambda _: None, lambda spark: spark.table("stale").schema),
}


@pytest.mark.parametrize(
    "create", long([FLAT, PARTITIONED], PARTITIONED), ids=["a table", "a partitioned table"]
)
@pytest.mark.parametrize("index", long([CREATE, OPTIMIZE], CREATE), ids=["CREATE", "OPTIMIZE"])
@pytest.mark.parametrize(
    ("change", "rows"), [(INSERT, 45), (OVERWRITE, 3), ("TRUNCATE TABLE stale", 0)],
    ids=["INSERT", "OVERWRITE", "TRUNCATE"],
)  # fmt: skip
@pytest.mark.parametrize("use", USES)
def test_the_first_query_after_a_change(
    spark: SparkSession, create: str, index: str, change: str, rows: int, use: str
) -> None:
    """It does not matter when Spark has listed the table for a session."""
    spark.sql(create.split(" LOCATION")[0])
    try:
        insert(spark, 0, 40)
        readers = [bound(fresh(spark), time) for time in ("0s", "1h")]
        before, afterwards = USES[use]
        for reader in readers:
            before(reader)
        run(spark, index, "")
        for reader in readers:
            afterwards(reader)
        run(spark, change, "")
        assert_seen(spark, readers, rows)
    finally:
        spark.sql("DROP TABLE stale")


#: (the statement that creates the table, the statements that create its first index)
FIRST = {
    "OPTIMIZE": (FLAT, OPTIMIZE),
    "OPTIMIZE of partitions": (PARTITIONED, OPTIMIZE),
    "CREATE": (FLAT, CREATE),
    "CREATE after DROP": (PARTITIONED, f"{CREATE}; DROP SKIPPING INDEX ON stale; {CREATE}"),
}


@pytest.mark.parametrize("first", FIRST)
def test_an_append_that_began_before_the_first_index(
    spark: SparkSession, tmp_path: Path, held: Callable[..., object], first: str
) -> None:
    create, statements = FIRST[first]
    spark.sql(create.format(tmp_path / "t"))
    try:
        insert(spark, 0, 40)
        *earlier, last = statements.split("; ")
        run(spark, "; ".join(earlier) or "SELECT 1", "")
        reader = bound(fresh(spark), "1h")

        def index() -> None:
            run(spark, last, "")
            assert count(reader) == 40

        rows = spark.range(40, 44, 1, 1).selectExpr("slow(id) id", "0 p")
        held(lambda: rows.write.insertInto("stale"), index)
        assert_seen(spark, [reader], 44)
    finally:
        spark.sql("DROP TABLE stale")


@pytest.mark.parametrize("folder", [OPTIMIZED], indirect=True)
def test_a_partition_dropped_before_optimize(spark: SparkSession, folder: str) -> None:
    """If a dropped partition is added again after OPTIMIZE, queries see the rows in its folder,
    although OPTIMIZE has not listed this folder."""
    spark.sql("ALTER TABLE stale DROP PARTITION (p = 0)")
    append(Path(folder), [100, 102])
    insert(spark, 41, 42)
    spark.sql("OPTIMIZE stale FULL ZORDER BY (id)").collect()
    spark.sql("ALTER TABLE stale ADD PARTITION (p = 0)")
    for statement in ("SELECT 1", "INSERT INTO stale VALUES (43, 1)"):
        spark.sql(statement)
        rows = count(fresh(spark))
        assert rows > 40
        assert_seen(spark, [], rows)


@pytest.mark.parametrize("folder", [OPTIMIZED], indirect=True)
def test_an_overwrite_that_fails(spark: SparkSession, folder: str) -> None:
    """Queries see that an overwrite has deleted the old files, even if the overwrite then fails."""
    reader = bound(fresh(spark), "1h")
    assert reader.sql("SELECT count(*) FROM stale").collect() == [(40,)]
    with pytest.raises(Exception, match="refused"):
        fresh(spark).sql(
            "INSERT OVERWRITE stale PARTITION (p = 1)"
            " SELECT CAST(raise_error('refused') AS BIGINT) FROM range(1)"
        )
    left = spark.read.parquet(folder).selectExpr("sum(1)").first()[0]
    for session in (reader, bound(fresh(spark), "1h")):
        assert session.sql("SELECT count(*) FROM stale").collect() == [(left,)]


@pytest.mark.parametrize("folder", [OPTIMIZED], indirect=True)
def test_a_partition_is_overwritten(spark: SparkSession, folder: str) -> None:
    reader = bound(fresh(spark), "1h")
    assert count(reader) == 40
    spark.sql("INSERT OVERWRITE stale PARTITION (p = 1) SELECT id FROM range(0)")
    assert count(reader) == 20
    assert reader.sql("SELECT count(*) FROM stale").collect() == [(20,)]
    with settings(spark, spark__sql__sources__partitionOverwriteMode="dynamic"):
        spark.sql("INSERT OVERWRITE stale SELECT id, 0 FROM range(3)")
    assert reader.sql("SELECT count(*) FROM stale").collect() == [(3,)]
    spark.sql("INSERT INTO stale VALUES (7, 7)")
    assert count(reader) == 4
    spark.sql("ALTER TABLE stale DROP PARTITION (p = 7)")
    assert count(reader) == 3
