"""pyzorder handles unusual names of tables, partitions and columns correctly, and never executes
SQL that a name contains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import pyzorder
from pyzorder.table import quoted
from tests.support import scans
from tests.support.tables import data_files, metrics, rows_of, target_size

FOLDERS = [
    """it's "quoted" in `ways`""",
    "ünï 🦆 100% %20 a+b &amp; #x",
    "[a-c]{x,y}*?",
    "; DROP TABLE odd; -- ${spark.app.name} $HOME",
    " spaces, a\nline and a back\\slash ",
    "day=1, no partition",
    "a:b",
]

#: The name of a folder next to "[a-c]{x,y}*?". If "[a-c]{x,y}*?" were used as a pattern, it would
#: match this name.
NEIGHBOUR = "axaz"


@pytest.fixture
def others(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A folder that must not change."""
    other = tmp_path / "in" / NEIGHBOUR
    spark.range(1000, 1010, 1, 2).selectExpr("id", "'x' AS v").write.parquet(str(other))
    before = {path: path.stat().st_mtime_ns for path in other.rglob("*")}
    yield other
    assert {path: path.stat().st_mtime_ns for path in other.rglob("*")} == before


def filled(spark: SparkSession, folder: Path, fmt: str = "parquet") -> set[int]:
    """Writes 60 rows in three files, and returns their ids."""
    spark.range(0, 60, 1, 3).selectExpr("id", "string(id % 7) AS v").write.format(fmt).save(
        str(folder)
    )
    target_size(spark, 600)
    return set(range(60))


def ids(df: DataFrame) -> set[int]:
    rows = [row["id"] for row in df.select("id").collect()]
    assert len(rows) == len(set(rows))
    return set(rows)


@pytest.mark.parametrize("name", FOLDERS)
def test_folders(spark: SparkSession, tmp_path: Path, others: Path, name: str) -> None:
    """Statements on the path of a folder work even if the folder's name is unusual. OPTIMIZE fails
    if the name contains `=`, because the folder could belong to a partition."""
    folder = tmp_path / "in" / name
    expected = filled(spark, folder)
    # By default, Spark interprets the path of a table or DataFrame as a pattern.
    frame = spark.read.option("__globPaths__", "false").parquet(str(folder))
    table = pyzorder.ZOrderTable.forPath(spark, str(folder))
    if "=" in name:
        with pytest.raises(AnalysisException, match="ZORDER_PATH_INSIDE_TABLE"):
            table.optimize().executeZOrderBy("id")
        return
    done = metrics(table.optimize().executeZOrderBy("id"))
    assert done["numFilesRemoved"] == 3 and done["numFilesAdded"] > 1
    assert ids(frame) == expected
    assert len(scans.opened(frame.where("id = 7"))) == 1 == frame.where("id = 7").count()
    assert frame.selectExpr("count(*)", "max(id)").first() == (60, 59)
    assert table.describeSkippingIndex().count() == 2
    assert table.restoreBeforeOptimize().collect()[0]["num_restored_files"] == 3
    assert table.vacuum(dryRun=True).count() == 0
    assert ids(frame) == expected and len(data_files(folder)) == 3


@pytest.mark.parametrize("fmt", ["parquet", "orc"])
def test_ways_to_a_folder(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    """OPTIMIZE and skipping work if a path contains `..`, double slashes, or a link to the folder
    or its parent."""
    folder = tmp_path / "a" / "t"
    expected = filled(spark, folder, fmt)
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "above").symlink_to(tmp_path / "a")
    ways = [
        f"{tmp_path}/a/../a/./t",
        f"{tmp_path}/link",
        f"{tmp_path}//above///t/",
        f"file://{folder}",
    ]
    frames = [spark.read.schema("id BIGINT, v STRING").format(fmt).load(way) for way in ways]
    for way in ways:
        done = metrics(spark.sql(f"OPTIMIZE {fmt}.`{way}` FULL ZORDER BY (id)"))
        assert done["numFilesRemoved"] > 0, way
        for frame in frames:
            assert ids(frame.where("id >= 10")) == expected - set(range(10)), way
    for frame in frames:
        assert len(scans.opened(frame.where("id = 7"))) == 1 == frame.where("id = 7").count()
    assert len(data_files(folder)) == done["numFilesAdded"]


def test_links_to_files(spark: SparkSession, tmp_path: Path) -> None:
    """If a data file is a link, OPTIMIZE rewrites its rows and leaves the linked file unchanged."""
    table, real = tmp_path / "t", tmp_path / "real"
    spark.range(0, 20, 1, 2).write.parquet(str(real))
    table.mkdir()
    kept = {path: path.read_bytes() for path in data_files(real)}
    for path in kept:
        (table / path.name).symlink_to(path)
    target_size(spark, 600)
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    assert ids(spark.read.parquet(str(table))) == set(range(20))
    assert {path: path.read_bytes() for path in data_files(real)} == kept
    spark.conf.set("spark.sql.zorder.vacuum.retentionCheck", "false")
    spark.sql(f"VACUUM '{table}' RETAIN 0 HOURS")
    assert ids(spark.read.parquet(str(table))) == set(range(20))
    assert {path: path.read_bytes() for path in data_files(real)} == kept


#: Partition values as text. None stands for null. Spark also writes the empty string as null.
VALUES = ["a/b=c", "50% %2F", "ü 🦆", "", None, """it's "b" `c`""", " ", "a:b", "..", "_u", "x\ny",
          "*{}[]?^", "a\\b; --", "/"]  # fmt: skip


def test_names_of_the_greatest_length(spark: SparkSession, tmp_path: Path) -> None:
    """OPTIMIZE and RESTORE work even if a file and a partition's folder have names of 255 bytes.
    pyzorder then derives shorter names from these names."""
    folder = tmp_path / "t"
    filled(spark, folder / f"p={'ü' * 126}x")
    first = data_files(folder)[0]
    long = first.rename(first.with_name("x" * 247 + ".parquet"))
    (first.parent / f".{first.name}.crc").unlink()
    files = set(data_files(folder))
    before = {path: path.read_bytes() for path in files}
    spark.sql(f"OPTIMIZE '{folder}' ZORDER BY (id)")
    assert not files & set(data_files(folder))
    assert ids(spark.read.parquet(str(folder))) == set(range(60))
    spark.sql(f"RESTORE '{folder}' TO BEFORE OPTIMIZE")
    assert {path: path.read_bytes() for path in data_files(folder)} == before and long in files
    spark.sql(f"OPTIMIZE '{folder}' ZORDER BY (id)")
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        assert spark.sql(f"VACUUM '{folder}' RETAIN 0 HOURS").count() > 0
    assert ids(spark.read.parquet(str(folder))) == set(range(60))


def test_partition_values(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """OPTIMIZE works on a table with unusual partition values. With a condition on one of these
    values, OPTIMIZE rewrites only the partition with this value."""
    spark.sql("CREATE TABLE t (id BIGINT, p STRING) USING parquet PARTITIONED BY (p)")
    rows = [(10 * i + k, p) for i, p in enumerate(VALUES) for k in range(4)]
    frame = spark.createDataFrame(rows, "id BIGINT, p STRING")
    for part in (frame.where("id % 2 = 0"), frame.where("id % 2 = 1")):
        part.coalesce(1).write.insertInto("t")
    target_size(spark, 1_000_000)
    expected = rows_of(spark.table("t"))
    assert sum(expected.values()) == len(rows)
    for value in (VALUES[0], VALUES[5], None):
        chosen = f"p = {quoted(value)}" if value is not None else "p IS NULL"
        done = metrics(spark.sql(f"OPTIMIZE t WHERE {chosen} ZORDER BY (id)"))
        assert (done["numFilesRemoved"], done["numFilesAdded"]) == (2, 1)
    done = metrics(spark.sql("OPTIMIZE t ZORDER BY (id)"))
    assert done["numFilesRemoved"] == 2 * (len({p or None for p in VALUES}) - 3)
    assert rows_of(spark.table("t")) == expected
    path = tmp_path / "db" / "t"
    assert rows_of(spark.read.schema("id BIGINT, p STRING").parquet(str(path))) == expected
    by_id = Counter(row["p"] for row in spark.sql("SELECT p FROM t WHERE id % 10 = 3").collect())
    assert by_id == Counter(p or None for p in VALUES)
    assert spark.sql("SELECT * FROM t WHERE id = 43").collect() == [(43, None)]
    assert spark.sql("SELECT p FROM t WHERE id = 23").collect() == [("ü 🦆",)]
    assert len(scans.opened(spark.sql("SELECT * FROM t WHERE id = 3"))) == 1
    spark.sql("RESTORE t TO BEFORE OPTIMIZE")
    assert rows_of(spark.table("t")) == expected


def test_column_names(spark: SparkSession, database: str) -> None:
    names = ["a b", "it's", "x--y", "a;b", "ö", "/*", "%", "🦆", "a`b", "a.b", "*"]
    columns = [f"id * {i + 1} % 40 AS `{n.replace('`', '``')}`" for i, n in enumerate(names)]
    spark.range(0, 40, 1, 4).selectExpr(*columns).write.saveAsTable("t")
    target_size(spark, 600)
    expected = rows_of(spark.table("t"))
    as_sql = ["`" + name.replace("`", "``") + "`" for name in names]
    table = pyzorder.ZOrderTable.forName(spark, "t")
    assert metrics(table.optimize().executeZOrderBy(*as_sql))["numFilesRemoved"] == 4
    assert rows_of(spark.table("t")) == expected
    described = {row["column"] for row in table.describeSkippingIndex().collect()}
    assert {name for name in names if name not in ("a`b", "a.b")} <= described
    for name in as_sql:
        found = spark.table("t").where(f"{name} < 0")
        assert scans.opened(found) == set() and found.count() == 0, name


#: Calls with arguments that must not change which statement is executed.
INJECTIONS: list[Callable[[pyzorder.ZOrderTable], object]] = [
    lambda t: t.optimize().executeZOrderBy("id) DRY RUN --"),
    lambda t: t.optimize().executeZOrderBy("id, v"),
    lambda t: t.optimize().executeZOrderBy("id); DROP TABLE odd; --"),
    lambda t: t.optimize().executeZOrderBy("(SELECT 1)"),
    lambda t: t.optimize().executeZOrderBy("`id` `v`"),
    lambda t: t.createSkippingIndex("id) --"),
    lambda t: t.vacuum("0 HOURS DRY RUN --"),  # type: ignore[arg-type]
    lambda t: t.optimize().where("true; DROP TABLE odd").executeCompaction(),
    lambda t: t.optimize().where("true UNION SELECT 1").executeCompaction(),
    lambda t: t.optimize().where("(SELECT count(*) FROM odd) > 0").executeCompaction(),
    lambda t: (
        t.optimize().where("java_method('java.lang.System', 'gc') IS NULL").executeCompaction()
    ),
]


def test_text_is_not_executed(spark: SparkSession, database: str, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE odd USING parquet AS SELECT id, 'x' AS v FROM range(0, 20, 1, 2)")
    files = data_files(tmp_path / "db" / "odd")
    table = pyzorder.ZOrderTable.forName(spark, "odd")
    for inject in INJECTIONS:
        with pytest.raises((AnalysisException, pyzorder.ZOrderError)):
            inject(table)
    for target in ("odd; DROP TABLE odd", "odd WHERE true", "'odd' ; DROP TABLE odd", "odd, odd"):
        with pytest.raises(AnalysisException):
            spark.sql(f"SELECT * FROM skipping_index({quoted(target)})").collect()
        with pytest.raises(AnalysisException):
            pyzorder.ZOrderTable.forName(spark, target)
        with pytest.raises(AnalysisException, match="ZORDER_PATH_NOT_FOUND"):
            pyzorder.ZOrderTable.forPath(spark, f"{tmp_path}/{target}").vacuum()
    assert data_files(tmp_path / "db" / "odd") == files
    assert ids(spark.table("odd")) == set(range(20))


def test_advice_can_be_pasted(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """The statement that DESCRIBE SKIPPING INDEX suggests can be run as printed, even if it
    contains unusual names."""
    rows = spark.range(0, 60, 1, 2).selectExpr(
        "id AS `odd, n``ame`", "named_struct('a b', id % 7) AS `s.t`", "id % 5 AS `1`"
    )
    path = f"{tmp_path}/it's `odd`"
    writers: dict[str, Callable[[], None]] = {
        "`select`": lambda: rows.write.mode("append").saveAsTable("`select`"),
        quoted(path): lambda: rows.write.mode("append").parquet(path),
    }
    for target, append in writers.items():

        def advice(target: str = target) -> set[str]:
            rows = spark.sql(f"DESCRIBE SKIPPING INDEX ON {target}").collect()
            return {row.advice for row in rows}

        append()
        spark.sql(f"OPTIMIZE {target} ZORDER BY (`odd, n``ame`, `s.t`.`a b`, `1`)").collect()
        assert advice() == {None}
        append()
        (statement,) = advice()
        assert metrics(spark.sql(statement))["numFilesRemoved"] > 0, statement
        assert advice() == {None}


def test_a_comment_hides_nothing(spark: SparkSession, database: str) -> None:
    """A comment in the `where` argument ends where the condition ends, so it does not hide DRY
    RUN."""
    spark.range(0, 20, 1, 2).selectExpr("id", "0 AS p").write.partitionBy("p").saveAsTable("t")
    dry = pyzorder.ZOrderTable.forName(spark, "t").optimize().where("p = 0 -- x").dryRun()
    assert metrics(dry.executeZOrderBy("id"))["numFilesRemoved"] == 2
    assert metrics(dry.executeZOrderBy("id"))["numFilesRemoved"] == 2


def test_files_with_two_columns_of_one_name(spark: SparkSession, tmp_path: Path) -> None:
    """Spark cannot read such files. A backtick in the name of a column in an ORC file ends the name
    for Spark, so that two columns may seem to have the same name."""
    for name, fmt in (("a`b", "orc"), ("A", "parquet")):
        table = tmp_path / fmt
        with scans.settings(spark, spark__sql__caseSensitive="true"):
            rows = spark.range(9).withColumnRenamed("id", "a").withColumn(name, F.lit("x"))
            rows.write.format(fmt).save(str(table))
        files = data_files(table)
        spark.sql(f"CREATE TABLE twice (a BIGINT, b STRING) USING {fmt} LOCATION '{table}'")
        try:
            with pytest.raises(PySparkException, match=r"UNDECLARED_COLUMNS.*\(another column"):
                spark.sql("OPTIMIZE twice ZORDER BY (a)")
        finally:
            spark.sql("DROP TABLE twice")
        assert data_files(table) == files
