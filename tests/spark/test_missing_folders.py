"""If the folder of a table or partition is missing, every statement either succeeds or fails with
one of pyzorder's errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import pyzorder
from pyzorder import history, layout, plot, report
from pyzorder.advisor import advise
from tests.support.sampled import long
from tests.support.tables import delete_folder, ids

NO_INDEX = "ZORDER_INDEX_NOT_FOUND"
NOTHING_TO_UNDO = "ZORDER_CANNOT_RESTORE"

#: Statements on a table without a folder, each with the error condition that it raises, or None if
#: it succeeds. No statement creates the folder.
STATEMENTS: dict[str, str | None] = {
    "OPTIMIZE {}": None,
    "OPTIMIZE {} DRY RUN": None,
    "OPTIMIZE {} ZORDER BY (a)": None,
    "OPTIMIZE {} ZORDER BY (a) DRY RUN": None,
    "OPTIMIZE {} FULL ZORDER BY (a)": None,
    "VACUUM {}": None,
    "VACUUM {} DRY RUN": None,
    "VACUUM {} RETAIN 5 HOURS": None,
    "RESTORE {} TO BEFORE OPTIMIZE": NOTHING_TO_UNDO,
    "REFRESH SKIPPING INDEX ON {}": NO_INDEX,
    "DESCRIBE SKIPPING INDEX ON {}": NO_INDEX,
    "DROP SKIPPING INDEX ON {}": NO_INDEX,
    "DROP SKIPPING INDEX IF EXISTS ON {}": None,
    "SELECT * FROM skipping_index('{}')": NO_INDEX,
    "SELECT * FROM optimize_history('{}')": None,
    "SELECT * FROM zorder_workload('{}')": None,
}
OF_PARTITIONS = {
    "OPTIMIZE {} WHERE p = 1": None,
    "OPTIMIZE {} WHERE p = 1 ZORDER BY (a)": None,
    "OPTIMIZE {} WHERE p = 1 ZORDER BY (a) DRY RUN": None,
}
CREATE = [
    "CREATE SKIPPING INDEX ON {}",
    "CREATE SKIPPING INDEX ON {} (a)",
    "CREATE SKIPPING INDEX IF NOT EXISTS ON {} (a)",
]

#: Kinds of tables: (whether the table is partitioned, whether it is managed, whether it had rows
#: and an index before its folder was deleted).
KINDS = {
    "external": (False, False, False),
    "external, partitioned": (True, False, False),
    "external, deleted": (False, False, True),
    "external, partitioned, deleted": (True, False, True),
    "managed, deleted": (False, True, True),
}


def created(spark: SparkSession, folder: Path, provider: str, parted: bool, managed: bool) -> None:
    spark.sql(
        f"CREATE TABLE t (id INT, a INT{', p INT' if parted else ''}) USING {provider}"
        + (" PARTITIONED BY (p)" if parted else "")
        + ("" if managed else f" LOCATION '{folder}'")
    )


def insert(spark: SparkSession, first: int, parted: bool) -> None:
    """Inserts six rows into three partitions."""
    p = ", CAST(id % 3 AS INT)" if parted else ""
    columns = f"CAST(id AS INT), CAST(id % 4 AS INT){p}"
    spark.sql(f"INSERT INTO t SELECT {columns} FROM range({first}, {first + 6}, 1, 1)")


def condition_of(spark: SparkSession, statement: str) -> str | None:
    """Runs a statement. Returns the condition of its error, or None if it succeeds."""
    try:
        spark.sql(statement).collect()
    except AnalysisException as error:
        assert "java." not in str(error).split("JVM stacktrace")[0]
        return str(error.getErrorClass())
    return None


@pytest.mark.parametrize("provider", long(["parquet", "orc"], "parquet"))
@pytest.mark.parametrize("kind", KINDS)
def test_no_folder(
    spark: SparkSession, database: str, tmp_path: Path, kind: str, provider: str
) -> None:
    parted, managed, used = KINDS[kind]
    folder = tmp_path / "db" / "t" if managed else tmp_path / "t"
    created(spark, folder, provider, parted, managed)
    if used:
        insert(spark, 0, parted)
        spark.sql("OPTIMIZE t ZORDER BY (a)")
        insert(spark, 6, parted)
        assert spark.table("t").count() == 12
    delete_folder(folder)

    expected = {**STATEMENTS, **(OF_PARTITIONS if parted else {})}
    found = {}
    for statement in expected:
        found[statement] = condition_of(spark, statement.format("t"))
        assert not folder.exists(), statement
    assert found == expected
    by_path = [s.format(folder) if "('" in s else s.format(f"'{folder}'") for s in STATEMENTS]
    assert {condition_of(spark, statement) for statement in by_path} == {"ZORDER_PATH_NOT_FOUND"}

    for statement in CREATE:
        delete_folder(folder)
        assert condition_of(spark, statement.format("t")) is None, statement
        assert spark.sql("SELECT * FROM skipping_index('t')").count() == 0
        assert [row["files"] for row in spark.sql("DESC SKIPPING INDEX ON t").collect()][0] == 0
        assert ids(spark.table("t")) == []
        insert(spark, 100, parted)
        health = spark.sql("DESCRIBE SKIPPING INDEX ON t").collect()
        assert {(row["files"], row["unindexed"]) for row in health} == {(3 if parted else 1, 0)}
        assert ids(spark.table("t")) == list(range(100, 106))


@pytest.mark.parametrize("used", [False, True])
def test_python_without_a_folder(
    spark: SparkSession, database: str, tmp_path: Path, used: bool
) -> None:
    folder = tmp_path / "t"
    created(spark, folder, "parquet", False, False)
    if used:
        insert(spark, 0, False)
        spark.sql("CREATE SKIPPING INDEX ON t")
        delete_folder(folder)
        spark.catalog.refreshTable("t")
    assert "0 of 0 files" in str(pyzorder.explain(spark.table("t").where("a = 1")))
    assert list(history.read(spark, "t")) == []
    assert layout.read(spark, "t", ["a"]).files == ()
    plot.rectangles(spark, "t", ["a"])
    plot.depth(spark, "t", ["a"])
    assert report.write(spark, "t", tmp_path / "report.html").exists()
    advice = advise(spark, "t", ["SELECT * FROM t WHERE a = 1"])
    assert "Nothing to recommend" in str(advice)
    table: Any = pyzorder.ZOrderTable.forName(spark, "t")
    assert table.optimize().executeZOrderBy("a").first()["metrics"]["numFilesAdded"] == 0
    assert not folder.exists()
    table.createSkippingIndex("a")
    assert [row["column"] for row in table.describeSkippingIndex().collect()] == ["a"]


#: Statements on a table whose folder exists but lacks the folders of some or all partitions. Each
#: statement is listed with the error condition that it raises, or None if it succeeds.
OF_OTHERS = {
    **{s: None for s in (*STATEMENTS, *OF_PARTITIONS) if "INDEX" not in s and "index" not in s},
    "RESTORE {} TO BEFORE OPTIMIZE": None,  # undoes the OPTIMIZE above
    "CREATE SKIPPING INDEX IF NOT EXISTS ON {}": None,
    "REFRESH SKIPPING INDEX ON {}": None,
    "DESCRIBE SKIPPING INDEX ON {}": None,
    "SELECT * FROM skipping_index('{}')": None,
    "DROP SKIPPING INDEX ON {}": None,
}


@pytest.mark.parametrize("gone", ["p=1", "p=*"])
@pytest.mark.parametrize("used", long([False, True], True))
def test_no_partition_folders(
    spark: SparkSession, database: str, tmp_path: Path, gone: str, used: bool
) -> None:
    folder = tmp_path / "t"
    created(spark, folder, "parquet", True, False)
    insert(spark, 0, True)
    if used:
        spark.sql("OPTIMIZE t ZORDER BY (id)")
        insert(spark, 6, True)
    for place in folder.glob(gone):
        delete_folder(place)
    spark.catalog.refreshTable("t")
    rows = [id for id in range(12 if used else 6) if gone == "p=1" and id % 3 != 1]
    found = {}
    for statement in OF_OTHERS:
        found[statement] = condition_of(spark, statement.format("t"))
        assert ids(spark.table("t")) == rows, statement
    undone = None if gone == "p=1" else NOTHING_TO_UNDO
    assert found == {**OF_OTHERS, "RESTORE {} TO BEFORE OPTIMIZE": undone}
    spark.sql("CREATE SKIPPING INDEX ON t")
    insert(spark, 100, True)
    assert ids(spark.table("t")) == [*rows, *range(100, 106)]
    health = spark.sql("DESCRIBE SKIPPING INDEX ON t").collect()
    assert {row["unindexed"] for row in health} == {0}


def test_a_table_dropped_meanwhile(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """If another session drops the table before CREATE SKIPPING INDEX runs, the statement fails
    without creating a folder."""
    folder = tmp_path / "t"
    created(spark, folder, "parquet", False, False)
    table = spark._jvm.io.pyzorder.commands.TableFunctions.tableOf(spark._jsparkSession, "t")
    spark.sql("DROP TABLE t")
    nil = getattr(getattr(spark._jvm.scala.collection.immutable, "Nil$"), "MODULE$")
    command = spark._jvm.io.pyzorder.commands.CreateSkippingIndexCommand(table, False, nil)
    with pytest.raises(Exception, match="ZORDER_CONFLICT"):
        command.run(spark._jsparkSession)
    assert not folder.exists()


#: All statements above that have no condition on partitions.
ALL = [*STATEMENTS, *CREATE]


@pytest.mark.parametrize("provider", ["parquet", "orc"])
def test_a_file_in_place_of_the_folder(
    spark: SparkSession, database: str, tmp_path: Path, provider: str
) -> None:
    (tmp_path / "t").write_text("no folder")
    created(spark, tmp_path / "t", provider, False, False)
    found = {condition_of(spark, statement.format("t")) for statement in ALL}
    assert found == {"ZORDER_PATH_IS_FILE"}
    assert (tmp_path / "t").read_text() == "no folder"


def test_a_file_in_place_of_a_folder_above(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    """If a parent of the table's folder is a file, statements have the same results as on a table
    without a folder. The only exception is CREATE SKIPPING INDEX, which fails."""
    (tmp_path / "file").write_text("no folder")
    created(spark, tmp_path / "file" / "t", "parquet", False, False)
    assert {s: condition_of(spark, s.format("t")) for s in STATEMENTS} == STATEMENTS
    assert {condition_of(spark, s.format("t")) for s in CREATE} == {"ZORDER_NOT_WRITABLE"}


@pytest.mark.parametrize("statement", ALL)
@pytest.mark.parametrize("path", ["nosuch://host/t", "s3a://bucket/t"])
def test_a_store_that_spark_does_not_know(
    spark: SparkSession, database: str, path: str, statement: str
) -> None:
    """If Spark has no file system for a URL's scheme, every statement reports that jars are
    missing. The tests run without the jars for S3."""
    target = path if "('" in statement else f"'{path}'"
    with pytest.raises(AnalysisException, match=f"ZORDER_NO_SUCH_STORE.*{path}: .*jars") as error:
        spark.sql(statement.format(target)).collect()
    assert "java." not in str(error.value).split("JVM stacktrace")[0]
