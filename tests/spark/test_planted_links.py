"""Commands do not write, read or move files through links that an attacker has created. The links
are in the table's folder, or in the folder of a partition that is stored elsewhere."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support import scans
from tests.support.sampled import long
from tests.support.tables import data_files, ids

OWN, FOREIGN = list(range(0, 40)), list(range(100_000, 100_040))

DEAD = {"operation": "OPTIMIZE", "owner": "x", "host": "elsewhere", "pid": 1, "started": 1,
        "began": 1, "lease": 1}  # fmt: skip

COMMITTED = {"outcome": "COMMIT", "by": "x"}

STATEMENTS = [
    "VACUUM {} RETAIN 0 HOURS",
    "OPTIMIZE {} FULL ZORDER BY (other)",
    "RESTORE {} TO BEFORE OPTIMIZE",
    "REFRESH SKIPPING INDEX ON {}",
]

Tree = dict[Path, tuple[int, bytes]]


def tree(folder: Path) -> Tree:
    found = [folder, *folder.rglob("*")]
    return {p: (p.stat().st_mtime_ns, b"" if p.is_dir() else p.read_bytes()) for p in found}


def write_rows(spark: SparkSession, numbers: list[int], folder: Path) -> None:
    rows = spark.range(numbers[0], numbers[-1] + 1, 1, 2)
    rows.selectExpr("id", "id AS other").write.parquet(str(folder))


def put(journal: Path, run: int, **records: dict[str, Any]) -> None:
    """Writes the records of a killed run. The names of the keyword arguments are the kinds of the
    records."""
    life = (journal.parent / "_incarnation").read_text()
    for kind, fields in records.items():
        record = {"formatVersion": 1, "record": kind, "incarnation": life, **fields}
        (journal / f"_{run}.{kind}").write_text(json.dumps(record, separators=(",", ":")))


def refs(folder: Path, name: str) -> list[dict[str, Any]]:
    """The data files in a folder, in the format of a record. `name` is the folder's name in the
    record."""
    return [
        {"path": f"{name}/{file.name}", "size": file.stat().st_size,
         "modificationTime": file.stat().st_mtime_ns // 1_000_000}
        for file in data_files(folder)
    ]  # fmt: skip


def attempt(spark: SparkSession, statement: str) -> None:
    """Runs a statement. The statement may fail, but only with one of pyzorder's errors."""
    try:
        spark.sql(statement).collect()
    except PySparkException as refused:
        assert "ZORDER_" in str(refused), refused


@pytest.fixture
def victim(spark: SparkSession, tmp_path: Path) -> Path:
    """A folder of another user."""
    write_rows(spark, FOREIGN, tmp_path / "victim")
    return tmp_path / "victim"


@pytest.fixture
def parted(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """The folder of the table `linked`. Its partition day=1 is stored in the sibling folder
    `elsewhere`."""
    home, elsewhere = tmp_path / "p", tmp_path / "elsewhere"
    write_rows(spark, OWN[:20], home / "day=0")
    write_rows(spark, OWN[20:], elsewhere)
    spark.sql(
        "CREATE TABLE linked (id BIGINT, other BIGINT, day INT) USING parquet "
        f"PARTITIONED BY (day) LOCATION '{home}'"
    )
    for day, place in ((0, home / "day=0"), (1, elsewhere)):
        spark.sql(f"ALTER TABLE linked ADD PARTITION (day = {day}) LOCATION '{place}'")
    spark.sql("OPTIMIZE linked ZORDER BY (id)")
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false",
                        spark__sql__zorder__journal__lease="1s"):  # fmt: skip
        yield home
    spark.sql("DROP TABLE linked")


def test_permissions_of_a_file_outside(spark: SparkSession, tmp_path: Path) -> None:
    """A new file gets the permissions of its folder, but not if it has become a link."""
    outside, folder = tmp_path / "outside", tmp_path / "t"
    outside.touch(0o600)
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "made").symlink_to(outside)
    jvm, conf = spark._jvm, spark._jsparkSession.sessionState().newHadoopConf()
    path = jvm.org.apache.hadoop.fs.Path(f"file:{folder}/made")
    jvm.io.pyzorder.storage.MetadataFiles.share(conf, path)
    assert outside.stat().st_mode & 0o777 == 0o600


def test_markers(spark: SparkSession, tmp_path: Path, victim: Path) -> None:
    """If a link has the name of a marker, OPTIMIZE fails, because it must not record the size or
    modification time of the link's target."""
    table = tmp_path / "t"
    write_rows(spark, OWN, table)
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    life = (table / "_zorder" / "_incarnation").read_text()
    for run in (2, 3):
        (table / f"_zorder.{run}.{life}").symlink_to(data_files(victim)[0])
    with pytest.raises(PySparkException, match="ZORDER_SYMBOLIC_LINK"):
        spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (other)").collect()
    assert ids(spark.read.parquet(str(table))) == OWN


def test_a_linked_journal(spark: SparkSession, tmp_path: Path, victim: Path) -> None:
    """If `_journal` is a link, no statement writes a file into the link's target, not even a
    temporary file for reading the store's clock."""
    table = tmp_path / "t"
    write_rows(spark, OWN, table)
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    (table / "_zorder" / "_journal").rename(tmp_path / "journal")
    (table / "_zorder" / "_journal").symlink_to(victim)
    before = tree(victim)
    for statement in STATEMENTS:
        attempt(spark, statement.format(f"'{table}'"))
        assert tree(victim) == before, statement
    with pytest.raises(PySparkException, match="ZORDER_SYMBOLIC_LINK"):
        spark.sql(f"VACUUM '{table}'").collect()


def test_links_among_replaced_files(spark: SparkSession, tmp_path: Path, victim: Path) -> None:
    """VACUUM does not follow links at any depth below a run's folder. It deletes the replaced files
    that are next to the links."""
    table = tmp_path / "t"
    write_rows(spark, OWN, table)
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    (victim / "theirs.retired").write_text("theirs")
    before = tree(victim)
    retired = table / "_zorder" / "_retired" / "_1"
    deep = retired / "/".join("d" * 300)
    deep.mkdir(parents=True)
    (deep / "x.retired").touch()
    (deep / "link").symlink_to(victim)
    (retired / "link").symlink_to(victim)
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        spark.sql(f"VACUUM '{table}' RETAIN 0 HOURS").collect()
    assert tree(victim) == before
    assert not list(retired.glob("*.retired")) and not (deep / "x.retired").exists()
    assert ids(spark.read.parquet(str(table))) == OWN


@pytest.mark.parametrize("kind", ["symbolic", "to nothing", "hard", "checksum"])
def test_where_restore_copies_to(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """RESTORE does not write through links with the same names as the files that it creates. An
    attacker can derive these names from the journal and create the links first."""
    table, precious = tmp_path / "t", tmp_path / "precious"
    write_rows(spark, OWN, table)
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    precious.write_text("theirs")
    target = tmp_path / "nothing" if kind == "to nothing" else precious
    for run in (2, 3, 4):
        staging = table / "_zorder" / "_staging" / f"_{run}"
        staging.mkdir(parents=True)
        for old in (table / "_zorder" / "_retired" / "_1").iterdir():
            name = old.name.replace(".retired", ".staged")
            name = f".{name}.crc" if kind == "checksum" else name
            (os.link if kind == "hard" else os.symlink)(target, staging / name)
    attempt(spark, f"RESTORE '{table}' TO BEFORE OPTIMIZE")
    assert precious.read_text() == "theirs"
    assert not (tmp_path / "nothing").exists()
    assert ids(spark.read.parquet(str(table))) == OWN
    assert not [file for file in data_files(table) if file.is_symlink()]


@pytest.mark.parametrize("kind", ["symbolic", "to nothing", "hard", "checksum"])
def test_where_late_files_are_copied_to(
    spark: SparkSession, parted: Path, tmp_path: Path, kind: str
) -> None:
    """Files that were added to a partition's old folder after a switch are copied to the new
    folder, but not through links. In this test, a forged record claims that a partition was
    previously stored in the folder day=7, so the files in this folder are copied."""
    precious = tmp_path / "precious"
    precious.write_text("theirs")
    (parted / "day=7").mkdir()
    (parted / "day=7" / "late.parquet").write_bytes(b"anything")
    move = {"values": {"day": "1"}, "from": "day=7", "to": "day=1"}
    said = {"database": "default", "table": "linked", "to": "p-zorder-0badcafe",
            "partitions": [move], "read": []}  # fmt: skip
    retired = {"retire": [], "add": [], "folders": []}
    put(parted / "_zorder" / "_journal", 2, prepare=DEAD, retire=retired, partitions=said,
        outcome=COMMITTED, done={})  # fmt: skip
    carried = tmp_path / "elsewhere" / "_zorder" / "_carried"
    carried.mkdir(parents=True)
    name = "_carried-0badcafe-late.parquet.staged"
    name = f".{name}.crc" if kind == "checksum" else name
    target = tmp_path / "nothing" if kind == "to nothing" else precious
    (os.link if kind == "hard" else os.symlink)(target, carried / name)
    attempt(spark, "OPTIMIZE linked FULL ZORDER BY (other)")
    assert precious.read_text() == "theirs"
    assert not (tmp_path / "nothing").exists()


def switch(spark: SparkSession, home: Path) -> Path:
    """Switches day=1 to a new folder next to the table's folder, and returns the new folder."""
    spark.sql("ALTER TABLE linked SET TBLPROPERTIES ('zorder.publish.method' = 'location')")
    spark.sql("OPTIMIZE linked FULL WHERE day = 1 ZORDER BY (id)")
    [filled] = home.parent.glob("p-zorder-*")
    return filled


@pytest.mark.parametrize("place", ["elsewhere/sub", "p/day=0/sub", "p/sub", "switched/day=1/sub"])
@pytest.mark.parametrize("state", long(["ABORT", "COMMIT", "done"], "COMMIT"))
def test_whole_paths_through_links(
    spark: SparkSession, parted: Path, victim: Path, tmp_path: Path, place: str, state: str
) -> None:
    """A forged record cannot refer to a file through a link in a partition's folder. Records may
    contain absolute paths of files in such a folder, and anyone who can write to the folder can
    create links in it."""
    link = tmp_path / place
    if "switched" in place:
        link = switch(spark, parted) / place.removeprefix("switched/")
    link.symlink_to(victim)
    before = tree(victim)
    runs = [int(p.name[1:].split(".")[0]) for p in parted.glob("_zorder/_journal/_*.prepare")]
    read = refs(victim, f"file:{link}")
    retired: dict[str, Any] = {"retire": read, "add": [], "folders": [f"file:{link}"]}
    records: dict[str, Any] = {"prepare": DEAD, "retire": retired, "outcome": COMMITTED}
    if state == "ABORT":
        records["outcome"] = {**COMMITTED, "outcome": "ABORT"}
    if state == "done":
        move = {"values": {"day": "1"}, "from": f"file:{link}", "to": "day=1"}
        said = {"database": "default", "table": "linked", "to": "p-zorder-0badcafe",
                "partitions": [move], "read": read}  # fmt: skip
        empty: dict[str, Any] = {"retire": [], "add": [], "folders": []}
        records |= {"retire": empty, "partitions": said, "done": {}}
    put(parted / "_zorder" / "_journal", max(runs) + 1, **records)
    for statement in STATEMENTS:
        attempt(spark, statement.format("linked"))
        assert tree(victim) == before, statement
    assert not set(ids(spark.table("linked"))) & set(FOREIGN)


@pytest.mark.parametrize("state", ["carried", "done"])
def test_late_files_behind_links(
    spark: SparkSession, parted: Path, victim: Path, tmp_path: Path, state: str
) -> None:
    """Files that are added to the old folder of a partition are copied to its new folder, unless
    the old folder is a link."""
    link = tmp_path / "elsewhere" / "sub"
    link.symlink_to(victim)
    move = {"values": {"day": "1"}, "from": f"file:{link}", "to": "day=1"}
    said = {"database": "default", "table": "linked", "to": "p-zorder-0badcafe",
            "partitions": [move], "read": []}  # fmt: skip
    empty: dict[str, Any] = {"retire": [], "add": [], "folders": []}
    put(parted / "_zorder" / "_journal", 2, prepare=DEAD, retire=empty, partitions=said,
        outcome=COMMITTED, done={})  # fmt: skip
    if state == "done":
        marks = parted / "_zorder" / "_carried" / "_2" / "_day=1"
        marks.mkdir(parents=True)
        for file in data_files(victim):
            (marks / f"_{file.name}.carried").touch()
    before = tree(victim)
    for statement in STATEMENTS:
        attempt(spark, statement.format("linked"))
        assert tree(victim) == before, statement
        spark.sql("REFRESH TABLE linked")
        assert ids(spark.table("linked")) == OWN, statement


def linked(spark: SparkSession, home: Path, place: str) -> Path:
    """Returns a path at which a test can create a link. If there is already a folder at this path,
    the function deletes it."""
    link = home.parent / place
    if "switched" in place:
        link = switch(spark, home) / place.removeprefix("switched/")
    if link.exists():
        shutil.rmtree(link)
    return link


@pytest.mark.parametrize("method", long(["rename", "location"], "location"))
@pytest.mark.parametrize("place", ["elsewhere/sub", "p/day=0/sub", "p/day=0", "switched/day=1"])
def test_links_in_a_partition(
    spark: SparkSession, parted: Path, victim: Path, tmp_path: Path, method: str, place: str
) -> None:
    """No command moves or changes files through a link in a partition's folder, although Spark
    reads files through the link."""
    before, link = tree(victim), linked(spark, parted, place)
    link.symlink_to(victim)
    spark.sql(f"ALTER TABLE linked SET TBLPROPERTIES ('zorder.publish.method' = '{method}')")
    for statement in (STATEMENTS[1], *STATEMENTS):
        attempt(spark, statement.format("linked"))
        assert tree(victim) == before, statement


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change the owner of a link")
@pytest.mark.parametrize("method", long(["rename", "location"], "rename"))
@pytest.mark.parametrize(
    "place",
    ["elsewhere/sub", "p/day=0/sub", "p/day=0", "switched/day=1", "elsewhere/x.parquet",
     "p/day=0/x.parquet", "switched/day=1/x.parquet"],
)  # fmt: skip
def test_strange_links_in_a_partition(
    spark: SparkSession, parted: Path, victim: Path, tmp_path: Path, method: str, place: str
) -> None:
    """If a link and its target belong to different users, the rows in the target are neither copied
    nor indexed."""
    link = linked(spark, parted, place)
    link.symlink_to(data_files(victim)[0] if link.suffix else victim)
    os.lchown(link, 12345, 12345)
    spark.sql(f"ALTER TABLE linked SET TBLPROPERTIES ('zorder.publish.method' = '{method}')")
    for statement in STATEMENTS:
        attempt(spark, statement.format("linked"))
    link.unlink()
    spark.sql("REFRESH TABLE linked")
    assert not set(ids(spark.table("linked"))) & set(FOREIGN)
    indexes = b"".join(p.read_bytes() for p in parted.glob("_zorder/_index/_snapshot-*"))
    assert FOREIGN[0].to_bytes(8, "little") not in indexes


#: Where a link to a Parquet file of another user is planted. A name without a suffix is a folder.
PLACES = [
    "p/_common_metadata", "p/_metadata", "p/x.parquet", "p/day=0/_common_metadata",
    "p/day=0/x.parquet", "p/day=9", "p/day=0/sub",
]  # fmt: skip

BY_PATH = [
    "DROP SKIPPING INDEX IF EXISTS ON '{0}'; CREATE SKIPPING INDEX ON '{0}'",
    "REFRESH SKIPPING INDEX ON '{0}'",
    "OPTIMIZE '{0}' FULL ZORDER BY (id)",
    "DROP SKIPPING INDEX IF EXISTS ON '{0}'; OPTIMIZE parquet.`{0}` FULL ZORDER BY (id)",
    "DESCRIBE SKIPPING INDEX ON '{0}'",
    "VACUUM '{0}' RETAIN 0 HOURS",
    "RESTORE '{0}' TO BEFORE OPTIMIZE",
]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change the owner of a link")
@pytest.mark.parametrize("statement", BY_PATH)
@pytest.mark.parametrize("place", PLACES)
def test_schemas_behind_strange_links(
    spark: SparkSession, tmp_path: Path, place: str, statement: str
) -> None:
    """A statement on a path does not write the columns of another user's file into the table."""
    home, victim = tmp_path / "p", tmp_path / "victim"
    write_rows(spark, OWN, home / "day=0")
    spark.sql(f"OPTIMIZE '{home}' ZORDER BY (id)")
    spark.range(9).selectExpr("id", "id AS secret_name").coalesce(1).write.parquet(str(victim))
    link = tmp_path / place
    link.symlink_to(victim if link.name in ("day=9", "sub") else data_files(victim)[0])
    os.lchown(link, 12345, 12345)
    before = tree(victim)
    for one in statement.format(home).split("; "):
        attempt(spark, one)
    link.unlink()
    assert tree(victim) == before
    assert [p for p in home.rglob("*") if p.is_file() and b"secret_name" in p.read_bytes()] == []
    spark.sql(f"OPTIMIZE '{home}' FULL ZORDER BY (id)")
    assert ids(spark.read.parquet(str(home))) == OWN


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change the owner of a link")
@pytest.mark.parametrize("name", ["_metadata", "_common_metadata"])
def test_summary_files_behind_strange_links(
    spark: SparkSession, parted: Path, victim: Path, name: str
) -> None:
    """A link with the name of a summary file is neither followed nor moved."""
    link = parted / "day=0" / name
    link.symlink_to(data_files(victim)[0])
    os.lchown(link, 12345, 12345)
    for statement in STATEMENTS:
        attempt(spark, statement.format("linked"))
        assert link.is_symlink(), statement


def test_checksums_behind_links(spark: SparkSession, tmp_path: Path, victim: Path) -> None:
    """RESTORE does not read a checksum file through a link."""
    table = tmp_path / "t"
    write_rows(spark, OWN, table)
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    retired = table / "_zorder" / "_retired" / "_1"
    for file in list(retired.glob("*.retired")):
        checksum = file.with_name(f".{file.name}.crc")
        checksum.unlink(missing_ok=True)
        checksum.symlink_to(data_files(victim)[0])
    with pytest.raises(PySparkException, match="ZORDER_"):
        spark.sql(f"RESTORE '{table}' TO BEFORE OPTIMIZE")
    assert ids(spark.read.parquet(str(table))) == OWN


@pytest.mark.parametrize("field", ["retire", "add"])
def test_files_in_no_folder(spark: SparkSession, field: str) -> None:
    """Records with the path `file:/x` are rejected. If the path were split at its last slash, the
    folder would be `file:`, and the table's folder could contain a folder of that name."""
    records = spark._jvm.io.pyzorder.publish.journal.Records
    for path, is_one in (("file:/x", False), ("file:/..", False), ("file:/a/x", True)):
        said = {"retire": [], "add": [], "folders": []}
        said[field] = [{"path": path, "size": 1, "modificationTime": 1}]
        record = {"record": "retire", "incarnation": "life", **said}
        read = records.retire(bytearray(json.dumps(record).encode()))
        assert read.isDefined() == is_one, path
