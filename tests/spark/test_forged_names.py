"""Forged records cannot use unusual names to refer to files and folders outside their table.
Examples are a scheme in upper case, and a folder whose name looks like a scheme.

The user who forges the records may write only to the folder of the table `forger`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyzorder.index import LocalStore, TableFolder, snapshot_writer
from pyzorder.index.entries import FileEntry
from tests.support import indexes
from tests.support.scans import settings
from tests.support.tables import delete_folder

STATEMENTS = [
    "OPTIMIZE forger ZORDER BY (id)",
    "VACUUM forger",
    "RESTORE TABLE forger TO BEFORE OPTIMIZE",
]
LIFE = "forged"
RUN = 7


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """The folder of the partitioned table `forger`. The table has no journal yet."""
    folder = tmp_path / "t"
    spark.sql(
        "CREATE TABLE forger (id BIGINT, p INT) USING parquet PARTITIONED BY (p)"
        f" LOCATION '{folder}'"
    )
    spark.sql("INSERT INTO forger SELECT id, cast(id % 2 as int) FROM range(20)")
    yield folder
    spark.sql("DROP TABLE IF EXISTS forger")


def write(path: Path, numbers: range) -> None:
    """Writes a Parquet file whose size does not depend on the values."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {"id": pa.array(numbers, pa.int64()), "p": pa.array([1] * len(numbers), pa.int32())}
    pq.write_table(pa.table(columns), path, compression="none", use_dictionary=False)


def put(table: Path, life: str = LIFE, **records: dict[str, Any]) -> None:
    """Writes the records of a killed run that started long ago."""
    journal = table / "_zorder" / "_journal"
    journal.mkdir(parents=True, exist_ok=True)
    (table / "_zorder" / "_incarnation").write_text(life)
    prepare = {"operation": "OPTIMIZE", "owner": "x", "host": "elsewhere", "pid": 1, "started": 1,
               "began": 1, "lease": 1}  # fmt: skip
    for kind, fields in {"prepare": prepare, **records}.items():
        record = {"formatVersion": 1, "record": kind, "incarnation": life, **fields}
        path = journal / f"_{RUN}.{kind}"
        path.write_text(json.dumps(record))
        os.utime(path, (1.6e9, 1.6e9))


def run(spark: SparkSession, statement: str) -> None:
    """Runs a statement. The statement may fail, but only with one of pyzorder's errors."""
    with settings(
        spark,
        spark__sql__zorder__vacuum__retentionCheck="false",
        spark__sql__zorder__journal__lease="1s",
    ):
        try:
            spark.sql(statement).collect()
        except PySparkException as failure:
            assert "ZORDER_" in str(failure), failure


def ref(file: Path, name: str) -> dict[str, Any]:
    status = file.stat()
    return {
        "path": name,
        "size": status.st_size,
        "modificationTime": status.st_mtime_ns // 1_000_000,
    }


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("scheme", ["file", "FILE", "File"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_staging_folder_that_is_a_link(
    spark: SparkSession, table: Path, tmp_path: Path, statement: str, scheme: str
) -> None:
    """pyzorder detects that a staging folder is a link, even if the record contains the scheme in
    upper case. Hadoop ignores the case of schemes."""
    outside = tmp_path / "outside"
    (outside / f"_{RUN}").mkdir(parents=True)
    (outside / f"_{RUN}" / "precious").touch()
    (table / "p=1" / f"_zorder.{RUN}.{LIFE}").touch()
    (table / "p=1" / "_zorder").mkdir()
    (table / "p=1" / "_zorder" / "_staging").symlink_to(outside)
    folder = f"{scheme}:{table}/p=1"
    added = {"path": f"{folder}/x.parquet", "size": 1, "modificationTime": 1}
    put(table, retire={"retire": [], "add": [added], "folders": [folder]})
    run(spark, statement)
    assert names(outside) == [f"_{RUN}", f"_{RUN}/precious"]


@pytest.mark.parametrize("scheme", ["file", "FILE"])
@pytest.mark.parametrize("statement", STATEMENTS[:2])
def test_a_previous_partition_that_is_a_link(
    spark: SparkSession, table: Path, tmp_path: Path, statement: str, scheme: str
) -> None:
    """A forged record may name a link as the previous location of a partition. Files that are
    reached through this link are not moved to the partition's current location."""
    secret = tmp_path / "secret"
    write(secret / "secret.parquet", range(1000, 1005))
    (table / "p=1" / "link").symlink_to(secret)
    move = {"values": {"p": "1"}, "from": f"{scheme}:{table}/p=1/link", "to": "p=1"}
    put(
        table,
        partitions={"database": "default", "table": "forger", "to": "t-zorder-12345678",
                    "partitions": [move], "read": []},
        retire={"retire": [], "add": [], "folders": []},
        outcome={"outcome": "COMMIT", "by": "x"},
        done={},
    )  # fmt: skip
    run(spark, statement)
    assert names(secret) == ["secret.parquet"]
    assert spark.newSession().sql("SELECT max(id) FROM forger").collect() == [(19,)]


@pytest.mark.parametrize("statement", [*STATEMENTS[:2], "VACUUM '{}'"])
def test_a_marker_in_a_folder_named_like_a_scheme(
    spark: SparkSession, table: Path, tmp_path: Path, statement: str
) -> None:
    """A folder `file:/victim` in the table is not confused with the folder /victim."""
    victim = tmp_path / "victim"
    victim.mkdir()
    marker = f"_zorder.{RUN}.{LIFE}"
    (victim / marker).touch()
    inside = table / "file:" / str(victim)[1:]
    inside.mkdir(parents=True)
    (inside / marker).touch()
    put(table)
    run(spark, statement.format(table))
    assert names(victim) == [marker]


@pytest.mark.parametrize("statement", ["CREATE SKIPPING INDEX ON forger", STATEMENTS[0]])
def test_data_in_a_folder_named_like_a_scheme(
    spark: SparkSession, table: Path, tmp_path: Path, statement: str
) -> None:
    """A folder `file:/victim` in the table is not confused with the folder /victim, even if both
    contain a file with the same name, size and modification time."""
    victim = tmp_path / "victim" / "x.parquet"
    write(victim, range(1000, 1020))
    spark.sql("DROP TABLE forger")
    delete_folder(table)
    write(table / "own.parquet", range(20))
    inside = table / "file:" / str(victim)[1:]
    write(inside, range(2000, 2020))
    status = victim.stat()
    assert inside.stat().st_size == status.st_size
    os.utime(inside, ns=(status.st_atime_ns, status.st_mtime_ns))
    before = victim.read_bytes()
    spark.sql(
        "CREATE TABLE forger (id BIGINT, p INT) USING parquet OPTIONS (recursiveFileLookup 'true')"
        f" LOCATION '{table}'"
    )
    run(spark, statement)
    assert names(victim.parent) == ["x.parquet"] and victim.read_bytes() == before
    fresh = spark.newSession()
    assert fresh.sql("SELECT count(*), max(id) FROM forger").collect() == [(40, 2019)]
    assert fresh.sql("SELECT count(*) FROM forger WHERE id >= 2000").collect() == [(20,)]
    bounds = fresh.sql("SELECT id_minValue FROM skipping_index('forger')").collect()
    assert (1000,) not in bounds


def test_a_journal_that_names_files_of_another_table(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    """A journal affects only its own table, even if a query also reads another table."""
    spark.sql("OPTIMIZE forger ZORDER BY (id)").collect()
    inner = table / "p=1"
    spark.sql(f"CREATE TABLE inner_table (id BIGINT) USING parquet LOCATION '{inner}'")
    try:
        others = [ref(file, f"file:{file}") for file in (table / "p=0").glob("*.parquet")]
        (own,) = inner.glob("*.parquet")
        put(
            inner,
            retire={"retire": [*others, ref(own, own.name)], "add": [], "folders": []},
            outcome={"outcome": "COMMIT", "by": "x"},
        )
        query = "SELECT (SELECT sum(1) FROM forger WHERE p = 0), (SELECT count(*) FROM inner_table)"
        assert spark.newSession().sql(query).first()[0] == 10
    finally:
        spark.sql("DROP TABLE inner_table")


def test_a_journal_of_a_table_with_a_partition_in_another_table(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    """If a table has a partition in the folder of a second table, the first table's journal does
    not hide the second table's rows from a query that reads both tables."""
    victim = tmp_path / "victim"
    spark.sql(f"CREATE TABLE victim (id BIGINT) USING parquet LOCATION '{victim}'")
    try:
        spark.sql("INSERT INTO victim SELECT id FROM range(10)")
        spark.sql("OPTIMIZE victim ZORDER BY (id)").collect()
        spark.sql(f"ALTER TABLE forger ADD PARTITION (p = 9) LOCATION '{victim}'")
        put(
            table,
            retire={
                "retire": [ref(file, f"file:{file}") for file in victim.glob("*.parquet")],
                "add": [],
                "folders": [],
            },
            outcome={"outcome": "COMMIT", "by": "x"},
        )
        query = "SELECT (SELECT count(id) FROM victim), (SELECT count(id) FROM forger)"
        assert spark.newSession().sql(query).collect() == [(10, 20)]
    finally:
        spark.sql("DROP TABLE victim")


#: Kinds of columns that a forged pointer lists in large numbers.
COLUMNS = {
    "the same z-value": lambda i: {"path": ["zorder_value(id, p)"], "type": "binary"},
    "other z-values": lambda i: {"path": [f"zorder_value(id, c{i})"], "type": "binary"},
    "nested columns": lambda i: {"path": ["id"] * (i % 50 + 1), "type": "long"},
    "deep columns": lambda i: {"path": ["a"] * 200, "type": "long"},
}


@pytest.mark.parametrize("columns", COLUMNS)
def test_a_pointer_with_many_columns(spark: SparkSession, table: Path, columns: str) -> None:
    """Queries and writes neither fail nor become slow if a forged pointer lists 20,000 columns."""
    spark.sql("CREATE SKIPPING INDEX ON forger").collect()
    pointer = max((table / "_zorder" / "_index").glob("_v*.json"))
    fields = json.loads(pointer.read_text())
    fields["columns"] += [COLUMNS[columns](i) for i in range(20_000)]
    fields["version"] += 1
    pointer.with_name(f"_v{fields['version']:020d}.json").write_text(json.dumps(fields))
    session = spark.newSession()
    assert session.sql("SELECT count(*) FROM forger WHERE id > 3").collect() == [(16,)]
    session.sql("INSERT INTO forger VALUES (20, 0)")
    assert session.sql("SELECT count(*) FROM forger WHERE id > 3").collect() == [(17,)]


def test_the_history_of_odd_names(spark: SparkSession, table: Path) -> None:
    files = {"retire": [{"path": "a:b/c.parquet", "size": 1, "modificationTime": 1}]}
    put(
        table,
        retire={**files, "add": [], "folders": []},
        outcome={"outcome": "COMMIT", "by": "x"},
        done={},
    )
    assert spark.sql("SELECT * FROM optimize_history('forger')").first()["partitions"] == 1


def test_an_insert_does_not_trust_the_sizes_in_an_index(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A forged file size in the index does not make an INSERT write too many files."""
    folder = tmp_path / "sized"
    spark.sql(
        f"CREATE TABLE sized (id BIGINT) USING parquet LOCATION '{folder}' TBLPROPERTIES"
        " ('zorder.clusterBy' = 'id', 'zorder.write.cluster' = 'true')"
    )
    try:
        spark.range(1000).write.insertInto("sized")
        read = indexes.table(spark, folder)[0]["read_settings"]
        forged = FileEntry("gone.parquet", 10**9, 1, 1, (), read)
        snapshot_writer.publish(LocalStore(), TableFolder(str(folder)), tuple, entries=[forged])
        before = set(folder.glob("*.parquet"))
        spark.range(1000).write.insertInto("sized")
        assert len(set(folder.glob("*.parquet")) - before) == 1
    finally:
        spark.sql("DROP TABLE sized")
