"""Spark and `pyzorder index` write the same index. Each can read what the other has written, and
neither loses the other's entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import pyzorder
from pyzorder.engines import indexing
from pyzorder.engines.indexing import index_files
from pyzorder.index import LocalStore, TableFolder, latest
from pyzorder.index.parquet import rules
from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.read_settings import STRUCTURAL_DEFAULTS
from pyzorder.index.snapshot_writer import publish
from tests.support import indexes, scans, staleness
from tests.support.tables import aim_at, rows_of

#: Columns of every type, with dates so old that some of Spark's rebase modes change them.
COLUMNS = """
    id, tinyint(id % 100) AS b, smallint(id) AS sh, int(id) AS i, id % 3 = 0 AS flag,
    float(id) AS f, if(id = 5, double('NaN'), id / 4D) AS x, decimal(id) / 8 AS small,
    CAST(id AS DECIMAL(38, 10)) AS big, date_add(DATE'1500-01-01', int(id) * 900) AS day,
    timestampadd(DAY, int(id) * 900, TIMESTAMP'1600-01-01 00:00:00') AS at,
    timestamp_ntz'1800-01-01 00:00:00' + make_dt_interval(int(id) * 900) AS naive,
    if(id % 7 = 0, NULL, concat('k', id, repeat('é', 200))) AS s, unhex(hex(id)) AS bin,
    named_struct('y', id, 'z', array(id)) AS st, CAST(NULL AS STRING) AS nothing
"""


@pytest.fixture(autouse=True)
def stale(spark: SparkSession) -> Iterator[None]:
    """After each test, drops the table that tests/support/staleness.py creates."""
    yield
    spark.sql("DROP TABLE IF EXISTS stale")


def write(spark: SparkSession, table: Path, **conf: str) -> None:
    """Writes a table of four files."""
    with scans.settings(spark, **conf), scans.plain(spark):
        spark.range(0, 200, 1, 4).selectExpr(*_split(COLUMNS)).write.parquet(str(table))


def _split(columns: str) -> list[str]:
    found, depth = [""], 0
    for c in columns:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return found


WRITERS = {
    "micros": {"spark__sql__parquet__outputTimestampType": "TIMESTAMP_MICROS"},
    "millis": {"spark__sql__parquet__outputTimestampType": "TIMESTAMP_MILLIS"},
    "int96": {"spark__sql__parquet__outputTimestampType": "INT96"},
    "hybrid": {
        "spark__sql__parquet__outputTimestampType": "TIMESTAMP_MICROS",
        "spark__sql__parquet__datetimeRebaseModeInWrite": "LEGACY",
    },
    "legacy": {"spark__sql__parquet__writeLegacyFormat": "true"},
}


@pytest.mark.parametrize("writer", WRITERS)
def test_files_of_spark(spark: SparkSession, tmp_path: Path, writer: str) -> None:
    """Python and the jar derive the same statistics from footers. If the footer is not sufficient
    for a column, only the jar scans the column."""
    table = tmp_path / "t"
    write(spark, table, **WRITERS[writer])
    done = index_files(table)
    assert len(done.indexed) == 4 and not done.unindexed
    by_python = indexes.check_sound(spark, table, "parquet")
    indexes.drop(spark, table)
    indexes.build(spark, table, "parquet")
    by_jar = {row["path"]: row for row in indexes.loaded(spark, table)}
    for name, row in by_python.items():
        assert row["num_records"] == by_jar[name]["num_records"]
        for field in row.asDict():
            column = field.removesuffix("_minValue")
            if column != field and indexes.known(row, column):
                for part in ("minValue", "maxValue", "num_nulls", "exact", "empty",
                             "settings_dependent"):  # fmt: skip
                    assert row[f"{column}_{part}"] == by_jar[name][f"{column}_{part}"], column
    known = [c for c in done.columns if c.name not in done.unknown]
    by_footers = {"id", "b", "sh", "i", "flag", "s", "bin", "st.y", "nothing", "small"}
    assert {column.name for column in known} >= by_footers


def test_constants_are_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    jvm: Any = spark._jvm
    rebase = jvm.org.apache.spark.sql.catalyst.util.RebaseDateTime
    assert rebase.lastSwitchJulianTs() <= rules._MODERN_MICRO
    assert rebase.lastSwitchJulianDay() <= rules._MODERN_DAY
    write(spark, tmp_path / "t")
    indexes.build(spark, tmp_path / "t", "parquet")
    (text, *_) = [row["read_settings"] for row in indexes.table(spark, tmp_path / "t")]
    assert text.partition(" | ")[0] == STRUCTURAL_DEFAULTS


def test_queries_skip_what_python_indexed(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(spark, table, **WRITERS["micros"])
    index_files(table)
    spark.read.parquet(str(table)).createOrReplaceTempView("theirs")
    asked = {
        "id = 7": 1, "i > 180": 1, "s LIKE 'k15%'": 2, "nothing IS NOT NULL": 0, "st.y < 10": 1,
        "day < DATE'1510-01-01'": 1, "at < TIMESTAMP'1601-01-01 00:00:00'": 1, "x > 48": 4,
    }  # fmt: skip
    assert scans.check_sound(spark, "theirs", list(asked)) == asked


def meanwhile(monkeypatch: pytest.MonkeyPatch, action: Callable[[], Any]) -> None:
    """Runs an action after footers have been read and before entries are published."""
    own = indexing._publish

    def publish_later(*args: Any) -> int:
        action()
        return own(*args)

    monkeypatch.setattr(indexing, "_publish", publish_later)


def paths(table: Path) -> set[str]:
    found = latest(LocalStore(), TableFolder(str(table)))
    assert found is not None
    return set(found.rows["path"].to_pylist())


def test_spark_inserts_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "t"
    spark.sql(staleness.KINDS["a table"].format(table))
    staleness.insert(spark, 0, 100)
    spark.sql("CREATE SKIPPING INDEX ON stale")
    foreign = staleness.append(table, [1000, 1001])
    meanwhile(monkeypatch, lambda: staleness.insert(spark, 100, 200))
    assert index_files(table).indexed == [foreign.name]
    names = {path.name for path in table.iterdir() if path.suffix == ".parquet"}
    assert paths(table) == names and len(names) == 5
    assert scans.opened(spark.sql("SELECT * FROM stale WHERE id = 1000")) == {foreign.name}
    assert pyzorder.files(table, "id = 1000") == [str(foreign)]


def test_spark_optimizes_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entries of files that a concurrent OPTIMIZE wrote are kept, and the new snapshot records
    no coverage."""
    table = tmp_path / "t"
    spark.sql(staleness.KINDS["a table"].format(table))
    staleness.insert(spark, 0, 1000)
    index_files(table)
    staleness.append(table, [1000, 1001])
    before = rows_of(spark.table("stale"))

    def optimize() -> None:
        aim_at(spark, table, 4)
        spark.sql("OPTIMIZE stale ZORDER BY (id)")

    meanwhile(monkeypatch, optimize)
    index_files(table)
    found = latest(LocalStore(), TableFolder(str(table)))
    assert found is not None and found.pointer.coverage is None
    assert {path.name for path in table.glob("*.parquet")} <= paths(table)
    assert rows_of(staleness.fresh(spark).table("stale")) == before
    index_files(table)
    assert {path.name for path in table.glob("*.parquet")} == paths(table)
    assert rows_of(staleness.fresh(spark).table("stale")) == before


def test_z_values_of_files_that_python_indexed(spark: SparkSession, tmp_path: Path) -> None:
    """Files that the direct method wrote are skipped by z-values even after `pyzorder index` has
    added a file. For the added file, the index has no z-values, because footers do not contain
    them."""
    table = tmp_path / "t"
    spark.sql(staleness.KINDS["a table"].format(table))
    staleness.insert(spark, 0, 1000)
    aim_at(spark, table, 8)
    with scans.settings(spark, spark__sql__zorder__optimize__method="direct"):
        spark.sql("OPTIMIZE stale ZORDER BY (id, p)")
    foreign = staleness.append(table, [2000, 2001])
    index_files(table)
    found = latest(LocalStore(), TableFolder(str(table)))
    assert found is not None and any("zorder_value" in c.name for c in found.columns)
    query = "SELECT * FROM stale WHERE id BETWEEN 2000 AND 2001 AND p = 0"
    assert scans.opened(spark.sql(query)) == {foreign.name} and spark.sql(query).count() == 2


def test_what_only_the_catalog_knows(spark: SparkSession, tmp_path: Path) -> None:
    """Queries return the right answers for a CHAR column, and for a column that has a DEFAULT but
    is missing from the file. Spark pads CHAR values only when it reads them."""
    table = tmp_path / "t"
    table.mkdir()
    spark.sql(f"CREATE TABLE stale (id BIGINT, c CHAR(5)) USING parquet LOCATION '{table}'")
    pq.write_table(pa.table({"id": [1, 2], "c": ["a", "b"]}), table / "f.parquet")
    spark.sql("ALTER TABLE stale ADD COLUMN d INT DEFAULT 7")
    publish(LocalStore(), TableFolder(str(table)), lambda _: [
        IndexedColumn(("id",), "long"), IndexedColumn(("c",), "string"),
        IndexedColumn(("d",), "integer"),
    ])  # fmt: skip
    assert index_files(table).indexed == ["f.parquet"]
    asked = ["c = 'a'", "c = 'a    '", "c < 'a  '", "d = 7", "d IS NULL", "d > 7", "id = 3"]
    assert scans.check_sound(spark, "stale", asked)["id = 3"] == 0
    query = "SELECT count(*), count(d), min(d), max(c), count(c) FROM stale"
    assert spark.sql(query).collect() == [(2, 2, 7, "b    ", 2)]


def test_spark_plans_from_what_python_covers(spark: SparkSession, tmp_path: Path) -> None:
    """Until maxStaleness has passed, Spark does not list the folder, so it does not see a file that
    another engine has appended."""
    table = tmp_path / "t"
    spark.sql(staleness.KINDS["a table"].format(table))
    staleness.insert(spark, 0, 100)
    staleness.append(table, [1000, 1001])
    index_files(table)
    staleness.append(table, [2000])
    planned = staleness.bound(staleness.fresh(spark), "1h")
    assert staleness.count(planned) == 102
    staleness.insert(spark, 100, 110)
    assert staleness.count(staleness.bound(staleness.fresh(spark), "1h")) == 112
    assert staleness.count(staleness.fresh(spark)) == 113
    index_files(table)
    assert staleness.count(staleness.bound(staleness.fresh(spark), "1h")) == 113
