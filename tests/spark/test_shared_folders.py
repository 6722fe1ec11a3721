"""If a folder belongs to two tables, statements either work for both tables, or fail without
changing any rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.support import scans
from tests.support.processes.journal_driver import Rewrite, killed
from tests.support.sampled import crash
from tests.support.tables import data_files, ids

ROWS = 40


ALL = list(range(ROWS))


@contextmanager
def refused(condition: str) -> Iterator[None]:
    with pytest.raises(AnalysisException) as error:
        yield
    assert str(error.value).startswith(f"[{condition}] "), str(error.value)


@pytest.fixture
def outer(spark: SparkSession, database: str, tmp_path: Path) -> Path:
    """Creates the table `outer`, with one file per partition, and the table `inner` in the folder
    of the partition day=1 of `outer`. Returns the folder of `outer`."""
    table = tmp_path / "t"
    rows = spark.range(0, ROWS, 1, 1).selectExpr("id", "int(id % 2) AS day")
    rows.write.partitionBy("day").option("path", str(table)).saveAsTable("outer")
    spark.sql(f"CREATE TABLE inner (id BIGINT) USING parquet LOCATION '{table}/day=1'")
    return table


def as_they_were(spark: SparkSession, outer: Path) -> None:
    """Asserts that all readers see each row of both tables once."""
    for table in ("outer", "inner"):
        spark.catalog.refreshTable(table)
    with scans.settings(spark, spark__sql__zorder__journal__overlay="false"):
        assert ids(spark.read.parquet(str(outer))) == ALL
    assert ids(spark.table("outer")) == ALL
    assert ids(spark.table("inner")) == ALL[1::2]


def test_two_tables_on_one_location(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """Two tables with the same location share a journal, a lock and an index."""
    table = tmp_path / "t"
    rows = spark.range(0, ROWS, 1, 4).selectExpr("id", "id % 7 AS a")
    rows.write.option("path", str(table)).saveAsTable("one")
    spark.sql(f"CREATE TABLE two (a BIGINT, id BIGINT) USING parquet LOCATION '{table}'")
    spark.sql(f"CREATE TABLE narrow (id BIGINT) USING parquet LOCATION '{table}'")
    planned = spark.table("two").where("id > 3")
    planned._jdf.queryExecution().executedPlan()
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", "600")
    spark.sql("OPTIMIZE one ZORDER BY (id)")
    assert ids(planned) == ALL[4:]
    for name in ("one", "two", "narrow"):
        rows = spark.table(name).where("id = 7")
        assert ids(rows) == [7] and len(scans.opened(rows)) < len(data_files(table)), name
    first = Rewrite(spark, table)
    with refused("ZORDER_CONCURRENT_OPTIMIZE"):
        spark.sql("OPTIMIZE two FULL ZORDER BY (id)")
    first.writer.abort()
    before = data_files(table)
    with refused("ZORDER_UNDECLARED_COLUMNS"):
        spark.sql("OPTIMIZE narrow FULL ZORDER BY (id)")
    assert data_files(table) == before
    spark.sql("OPTIMIZE two FULL ZORDER BY (a)")
    spark.sql("RESTORE one TO BEFORE OPTIMIZE")
    spark.sql("DROP TABLE two")
    assert data_files(table) == before and ids(spark.table("one")) == ALL


def test_another_default(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """OPTIMIZE fails if two tables declare different defaults for a column that some files lack.
    For the rows in these files, one table would return 5, and the other would return null."""
    table = tmp_path / "t"
    spark.range(0, ROWS, 1, 2).write.option("path", str(table)).saveAsTable("one")
    spark.sql("ALTER TABLE one ADD COLUMN c INT DEFAULT 5")
    spark.sql(f"CREATE TABLE two (id BIGINT, c INT) USING parquet LOCATION '{table}'")
    pq.write_table(pa.table({"id": [ROWS], "c": pa.array([7], pa.int32())}), table / "new.parquet")
    before = data_files(table)
    for target in ("one", "two", f"parquet.`{table}`"):
        with refused("ZORDER_OTHER_DEFAULT"):
            spark.sql(f"OPTIMIZE {target} ZORDER BY (id)")
        assert data_files(table) == before
    spark.sql("DROP TABLE two")
    spark.sql(f"CREATE TABLE two (id BIGINT, c INT DEFAULT 5) USING parquet LOCATION '{table}'")
    spark.sql("OPTIMIZE two ZORDER BY (id)")
    for name in ("one", "two"):
        spark.catalog.refreshTable(name)
        assert spark.table(name).groupBy("c").count().orderBy("c").collect() == [(5, ROWS), (7, 1)]


def test_a_partition_of_a_table_that_is_optimized(spark: SparkSession, outer: Path) -> None:
    spark.sql("OPTIMIZE outer ZORDER BY (id)")
    before = data_files(outer)
    for target in ("inner", f"'{outer}/day=1'"):
        with refused("ZORDER_PATH_INSIDE_TABLE"):
            spark.sql(f"OPTIMIZE {target} ZORDER BY (id)")
    assert data_files(outer) == before
    as_they_were(spark, outer)


def test_a_table_with_a_partition_that_is_optimized(spark: SparkSession, outer: Path) -> None:
    spark.sql("OPTIMIZE inner FULL ZORDER BY (id)")
    before = data_files(outer)
    with refused("ZORDER_SHARED_FOLDER"):
        spark.sql("OPTIMIZE outer FULL ZORDER BY (id)")
    assert data_files(outer) == before
    as_they_were(spark, outer)
    spark.sql("OPTIMIZE outer FULL WHERE day = 0 ZORDER BY (id)")
    as_they_were(spark, outer)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_both_at_once(spark: SparkSession, outer: Path, tmp_path: Path, elsewhere: bool) -> None:
    """If `outer` and `inner` are optimized at the same time, one of the runs must fail, although
    each table has its own lock."""
    inner = outer / "day=1"
    if elsewhere:
        inner = tmp_path / "elsewhere"
        (outer / "day=1").rename(inner)
        spark.sql(f"ALTER TABLE outer PARTITION (day = 1) SET LOCATION '{inner}'")
        spark.sql(f"ALTER TABLE inner SET LOCATION '{inner}'")
    runs = {"outer": Rewrite(spark, outer), "inner": Rewrite(spark, inner)}
    if elsewhere:
        runs["outer"].writer.abort()
        runs["inner"].publish()
        with refused("ZORDER_SHARED_FOLDER"):
            spark.sql("OPTIMIZE outer FULL ZORDER BY (id)")
        assert ids(spark.table("outer")) == ALL
        return
    with refused("ZORDER_SHARED_FOLDER"):
        runs["outer"].publish()
    as_they_were(spark, outer)
    runs["inner"].publish()
    as_they_were(spark, outer)


KILLED_AT = ["after-markers", "after-retire", "after-commit", "before-done"]


@pytest.mark.parametrize("point", crash(KILLED_AT, "after-markers"))
def test_the_other_was_killed(spark: SparkSession, outer: Path, point: str) -> None:
    """If a run on `outer` was killed, `inner` cannot be changed until a statement on `outer` has
    either completed or undone the run."""
    killed(outer, point)
    inner = Rewrite(spark, outer / "day=1")
    with refused("ZORDER_SHARED_FOLDER"):
        inner.publish()
    for table, rows in (("outer", ALL), ("inner", ALL[1::2])):
        spark.catalog.refreshTable(table)
        assert ids(spark.table(table)) == rows
    spark.sql("VACUUM outer").collect()
    as_they_were(spark, outer)
    Rewrite(spark, outer / "day=1").publish()
    as_they_were(spark, outer)


def test_a_table_in_a_folder_of_its_own_below(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    """A table in a subfolder of another table's folder is independent of that table if the
    subfolder's name contains no `=`."""
    above = tmp_path / "t"
    for name, folder in (("above", above), ("below", above / "archive")):
        spark.range(0, ROWS, 1, 4).write.option("path", str(folder)).saveAsTable(name)
    files = {name: spark.table(name).inputFiles() for name in ("above", "below")}
    assert [len(found) for found in files.values()] == [4, 4]
    for name, other in (("below", "above"), ("above", "below")):
        spark.sql(f"OPTIMIZE {name} ZORDER BY (id)")
        assert not set(files[name]) & set(spark.table(name).inputFiles())
        assert ids(spark.table(name)) == ids(spark.table(other)) == ALL
    spark.sql("RESTORE below TO BEFORE OPTIMIZE")
    assert sorted(spark.table("below").inputFiles()) == sorted(files["below"])
    assert ids(spark.table("above")) == ALL


@pytest.fixture
def neighbours(spark: SparkSession, database: str, tmp_path: Path) -> Path:
    """Creates the tables `first` and `second`. Each table has a single partition, and both
    partitions are stored in the same folder. Returns this folder."""
    shared = tmp_path / "shared"
    for name in ("first", "second"):
        spark.sql(
            f"CREATE TABLE {name} (id BIGINT, day INT) USING parquet PARTITIONED BY (day)"
            f" LOCATION '{tmp_path / name}' TBLPROPERTIES ('zorder.publish.method' = 'rename')"
        )
        spark.sql(f"ALTER TABLE {name} ADD PARTITION (day = 1) LOCATION '{shared}'")
    spark.sql(f"INSERT INTO first PARTITION (day = 1) SELECT id FROM range({ROWS})")
    return shared


@pytest.mark.parametrize(
    "point",
    crash(["after-verify", "after-markers", "after-retire", "after-commit"], "after-commit"),
)
def test_vacuum_of_a_table_that_shares_a_partition(
    spark: SparkSession, neighbours: Path, point: str
) -> None:
    """VACUUM of a table does not delete staged or retired files of a killed run on another table
    that shares a partition with it."""
    table = neighbours.parent / "first"
    killed(
        table,
        point,
        f"CREATE TABLE first (id BIGINT, day INT) USING parquet PARTITIONED BY (day) LOCATION '{table}';"
        f" ALTER TABLE first ADD PARTITION (day = 1) LOCATION '{neighbours}';"
        " OPTIMIZE first ZORDER BY (id)",
    )
    spark.sql("INSERT INTO second PARTITION (day = 0) SELECT id FROM range(5)")
    spark.sql("OPTIMIZE second WHERE day = 0 ZORDER BY (id)").collect()
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        deleted = spark.sql("VACUUM second RETAIN 0 HOURS").collect()
    assert not [row.path for row in deleted if row.path.startswith(f"file:{neighbours}/")]
    assert ids(spark.table("first")) == ALL
    with scans.settings(spark, spark__sql__zorder__journal__lease="1s"):
        spark.sql("VACUUM first").collect()
    assert ids(spark.table("first")) == ALL


def test_a_switch_of_a_partition_that_another_table_uses(
    spark: SparkSession, neighbours: Path
) -> None:
    """OPTIMIZE does not switch a partition if another table uses its folder. If another table
    starts to use the partition's old folder after a switch, VACUUM does not delete the files in
    that folder."""
    spark.sql("ALTER TABLE first SET TBLPROPERTIES ('zorder.publish.method' = 'location')")
    with refused("ZORDER_CANNOT_SWITCH_LOCATION"):
        spark.sql("OPTIMIZE first ZORDER BY (id)").collect()
    spark.sql("ALTER TABLE second DROP PARTITION (day = 1)")
    spark.sql("OPTIMIZE first ZORDER BY (id)").collect()
    spark.sql(f"ALTER TABLE second ADD PARTITION (day = 1) LOCATION '{neighbours}'")
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        spark.sql("VACUUM first RETAIN 0 HOURS").collect()
    assert ids(spark.table("first")) == ids(spark.table("second")) == ALL


@pytest.mark.crash
def test_recovery_by_a_table_without_the_partition(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    """The tables `whole` and `part` have the same location, but only `whole` has the partition in
    the folder `elsewhere`. If a killed run has moved the files of this partition, statements on
    `part` can neither complete nor undo the run."""
    table, elsewhere = tmp_path / "t", tmp_path / "elsewhere"
    made = [
        f"CREATE TABLE {{}} (id BIGINT, day INT) USING parquet PARTITIONED BY (day) LOCATION '{table}'",
        f"ALTER TABLE {{}} ADD PARTITION (day = 1) LOCATION '{elsewhere}'",
    ]
    spark.sql(made[0].format("whole"))
    spark.sql(made[1].format("whole"))
    spark.sql(f"INSERT INTO whole SELECT id, int(id % 2) FROM range(0, {ROWS}, 1, 3)")
    spark.sql(made[0].format("part"))
    spark.sql("MSCK REPAIR TABLE part")
    statements = [statement.format("whole") for statement in made]
    statements += ["MSCK REPAIR TABLE whole", "OPTIMIZE whole ZORDER BY (id)"]
    killed(table, "after-commit", "; ".join(statements))
    with scans.settings(spark, spark__sql__zorder__journal__lease="1s"):
        with refused("ZORDER_UNFINISHED_ELSEWHERE"):
            spark.sql("VACUUM part").collect()
        assert ids(spark.table("whole")) == ALL
        spark.sql("VACUUM whole").collect()
    assert ids(spark.table("whole")) == ALL
    assert ids(spark.table("part")) == ALL[::2]
