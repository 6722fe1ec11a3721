"""An attacker who can write only to a table's folder cannot make the commands of other users read,
move or delete anything outside this folder."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support import forged_records as forged
from tests.support import scans
from tests.support.sampled import long
from tests.support.tables import data_files, delete_folder, ids

#: The number of random attacks in a test run. A different FORGED_SEED selects different attacks.
DRAWN = int(os.environ.get("FORGED_CASES", "10"))

OWN, FOREIGN = range(0, 100), range(100_000, 100_040)

BY_LOCATION = "TBLPROPERTIES ('zorder.publish.method' = 'location')"

Tree = dict[Path, tuple[int, bytes]]


def tree(*folders: Path) -> Tree:
    """Everything in the folders, including the folders themselves, with modification times and
    contents."""
    found = [p for folder in folders if folder.exists() for p in [folder, *folder.rglob("*")]]
    return {p: (p.stat().st_mtime_ns, b"" if p.is_dir() else p.read_bytes()) for p in found}


def write_rows(spark: SparkSession, numbers: range, folder: Path) -> None:
    rows = spark.range(numbers.start, numbers.stop, 1, 2)
    rows.selectExpr("id", "id AS other").write.parquet(str(folder))


class World:
    """The tables `forged` and `parted_forged`, and folders and tables of other users in the same
    parent folder."""

    def __init__(self, spark: SparkSession, base: Path) -> None:
        self.spark, self.base = spark, base
        self.flat, self.parted = base / "t", base / "p"
        self._template = base / "template"
        write_rows(spark, OWN, base / "template" / "t")
        for day in (0, 1):
            rows = range(OWN.start, OWN.stop // 2) if day == 0 else range(OWN.stop // 2, OWN.stop)
            write_rows(spark, rows, base / "template" / "p" / f"day={day}")
        self.genuine = self._runs()
        self.victims = self._victims()
        self.folders = [target.folder for target in self.victims.values()]
        self.before = tree(*self.folders)

    def reset(self) -> None:
        """Recreates both tables. Each of them has one OPTIMIZE in its journal."""
        self.drop()
        for place in self.base.iterdir():
            if place.name in ("t", "p", "elsewhere") or (
                "-zorder-" in place.name and "0badcafe" not in place.name
            ):
                delete_folder(place)
        for name in ("t", "p"):
            shutil.copytree(self._template / name, self.base / name)
        (self.parted / "day=1").rename(self.base / "elsewhere")
        for statement in (
            f"CREATE TABLE forged (id BIGINT, other BIGINT) USING parquet LOCATION '{self.flat}'",
            "CREATE TABLE parted_forged (id BIGINT, other BIGINT, day INT) USING parquet "
            f"PARTITIONED BY (day) LOCATION '{self.parted}'",
            "MSCK REPAIR TABLE parted_forged",
            "ALTER TABLE parted_forged ADD PARTITION (day = 1) "
            f"LOCATION '{self.base / 'elsewhere'}'",
        ):
            self.spark.sql(statement)

    def drop(self) -> None:
        for table in ("forged", "parted_forged"):
            self.spark.sql(f"DROP TABLE IF EXISTS {table}")

    def _runs(self) -> dict[str, dict[str, dict[str, Any]]]:
        """For each kind of run, the records of one genuine run."""
        found = {}
        for name, table, home, method in (
            ("within", "forged", self.flat, "rename"),
            ("within partitions", "parted_forged", self.parted, "rename"),
            ("location", "forged", self.flat, "location"),
            ("partitions", "parted_forged", self.parted, "location"),
        ):
            self.reset()
            self.spark.sql(
                f"ALTER TABLE {table} SET TBLPROPERTIES ('zorder.publish.method' = '{method}')"
            )
            self.spark.sql(f"OPTIMIZE {table} FULL ZORDER BY (id)")
            found[name] = forged.records(home / "_zorder" / "_journal")
        return found

    def _victims(self) -> dict[str, forged.Target]:
        """Creates the targets of attacks: a folder, a table, two folders that are named like those
        that a location switch creates, and a partition."""
        base = self.base
        made = {
            "folder": forged.Target(base / "victim", "victim_of_none"),
            "table": forged.Target(base / "v", "victim"),
            "sibling": forged.Target(base / "t-zorder-0badcafe", "victim_beside"),
            "sibling of partitions": forged.Target(base / "p-zorder-0badcafe", "victim_parted"),
            "partition": forged.Target(base / "far" / "day=1", "victim_parted"),
        }
        for target in made.values():
            write_rows(self.spark, FOREIGN, target.folder)
        for name in ("table", "sibling"):
            target = made[name]
            self.spark.sql(
                f"CREATE TABLE {target.table} (id BIGINT, other BIGINT) USING parquet "
                f"LOCATION '{target.folder}'"
            )
            self.spark.sql(f"OPTIMIZE {target.table} FULL ZORDER BY (id)")
        self.spark.sql(
            "CREATE TABLE victim_parted (id BIGINT, other BIGINT, day INT) USING parquet "
            f"PARTITIONED BY (day) LOCATION '{base / 'far'}'"
        )
        for day, name in ((1, "partition"), (2, "sibling of partitions")):
            self.spark.sql(
                f"ALTER TABLE victim_parted ADD PARTITION (day = {day}) "
                f"LOCATION '{made[name].folder}'"
            )
        return made


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(spark, tmp_path_factory.mktemp("forged"))
    yield made
    made.drop()
    for table in {target.table for target in made.victims.values()}:
        spark.sql(f"DROP TABLE IF EXISTS {table}")


#: Statements that write to tables. After each attack, three of them are chosen at random and run. A
#: statement may fail only with one of pyzorder's errors.
STATEMENTS = [
    "VACUUM {} RETAIN 0 HOURS",
    "OPTIMIZE {} FULL ZORDER BY (other)",
    "RESTORE {} TO BEFORE OPTIMIZE",
    "REFRESH SKIPPING INDEX ON {}",
    "OPTIMIZE '{path}' FULL ZORDER BY (id)",
    "VACUUM '{path}' RETAIN 0 HOURS",
]


def refused(failure: Exception) -> bool:
    """Whether the failure is one of pyzorder's errors."""
    return isinstance(failure, PySparkException) and "ZORDER_" in str(failure)


def test_forged_records(spark: SparkSession, world: World) -> None:
    """Random attacks change nothing outside the table's folder. The environment variable
    FORGED_CASES sets the number of attacks."""
    draw = random.Random(int(os.environ.get("FORGED_SEED", str(DRAWN))))
    every = [(*case, victim) for case in forged.cases(world.genuine) for victim in world.victims]
    wrong: list[str] = []
    settings = {
        "spark__sql__zorder__vacuum__retentionCheck": "false",
        "spark__sql__zorder__journal__lease": "1s",
    }
    with scans.settings(spark, **settings):
        for case in draw.sample(every, DRAWN):
            what = attack(spark, world, draw, *case)
            wrong += [f"{case}: {what}"] if what else []
            if tree(*world.folders) != world.before:
                break  # the targets have changed, so later attacks cannot be checked
    assert not wrong, "\n".join(wrong)


def attack(
    spark: SparkSession,
    world: World,
    draw: random.Random,
    run: str,
    state: str,
    field: Any,
    name: int,
    victim: str,
) -> str:
    """Runs an attack. Returns a description of what went wrong, or an empty string."""
    world.reset()
    partitioned = run in ("within partitions", "partitions")
    table, home = ("parted_forged", world.parted) if partitioned else ("forged", world.flat)
    spark.sql(f"OPTIMIZE {table} ZORDER BY (id)")
    (home / "_link").symlink_to(world.base)
    forged.write(home, world.genuine[run], state, field, world.victims[victim], name, 2)
    done = ["reading"]
    for statement in [None, *draw.sample(STATEMENTS, 3)]:
        if statement:
            done.append(statement)
            try:
                spark.sql(statement.format(table, path=home)).collect()
            except Exception as failure:
                if not refused(failure):
                    return f"{done}: {type(failure).__name__} {str(failure)[:600]}"
        if tree(*world.folders) != world.before:
            return f"{done}: {differences(world)}"
        spark.sql(f"REFRESH TABLE {table}")
        for frame in (spark.table(table), spark.table(table).where("id >= 0")):
            try:
                strange = set(ids(frame)) - set(OWN)
            except Exception as failure:
                return f"{done}: SELECT {str(failure)[:600]}"
            if strange:
                return f"{done}: shows {len(strange)} foreign rows"
    return ""


def put(journal: Path, run: int, life: str, **records: dict[str, Any]) -> None:
    """Writes the records of a killed run. The names of the keyword arguments are the kinds of the
    records."""
    for kind, fields in records.items():
        record = {"formatVersion": 1, "record": kind, "incarnation": life, **fields}
        (journal / f"_{run}.{kind}").write_text(json.dumps(record, separators=(",", ":")))


DEAD = {"operation": "OPTIMIZE", "owner": "x", "host": "elsewhere", "pid": 1, "started": 1,
        "began": 1, "lease": 1}  # fmt: skip
COMMITTED = {"outcome": "COMMIT", "by": "x"}


@pytest.fixture
def forgeable(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """An optimized table next to the folder `victim`. Leases are short, so commands can take over
    the table's lock."""
    table = tmp_path / "t"
    write_rows(spark, OWN, table)
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    write_rows(spark, FOREIGN, tmp_path / "victim")
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false",
                        spark__sql__zorder__journal__lease="1s"):  # fmt: skip
        yield table


def life_of(table: Path) -> str:
    return (table / "_zorder" / "_incarnation").read_text()


def run_all(spark: SparkSession, table: Path) -> None:
    for statement in STATEMENTS[:4]:
        try:
            spark.sql(statement.format(f"'{table}'")).collect()
        except PySparkException as failure:
            assert refused(failure), failure
        assert set(ids(spark.read.parquet(str(table)).where("id >= 0"))) == set(OWN), statement


@pytest.mark.parametrize("place", ["RETIRE", "a finished RETIRE", "the table's own"])
def test_incarnations_are_no_paths(spark: SparkSession, forgeable: Path, place: str) -> None:
    """An incarnation that is a path is not used. The names of markers contain the incarnation, so
    pyzorder might otherwise delete the marker `_zorder.2.x/../../victim/part-0.parquet`."""
    victim = forgeable.parent / "victim"
    life = f"x/../../victim/{next(victim.glob('*.parquet')).name}"
    before = tree(victim)
    own = forgeable / "_zorder" / "_incarnation"
    records: dict[str, Any] = {"prepare": DEAD, "outcome": COMMITTED}
    records["retire"] = {"retire": [], "add": [], "folders": [""]}
    if place == "the table's own":
        own.write_text("x/../../victim/new")
    else:
        done = {"done": {}} if "finished" in place else {}
        put(forgeable / "_zorder" / "_journal", 2, life, **records, **done)
    run_all(spark, forgeable)
    assert tree(victim) == before


@pytest.mark.parametrize("state", ["COMMIT", "ABORT"])
@pytest.mark.parametrize("named", ["by name", "by path"])
@pytest.mark.parametrize("folder", ["t", "t-zorder-0badcafe"])
def test_partitions_of_another_table(
    spark: SparkSession, tmp_path: Path, state: str, named: str, folder: str
) -> None:
    """A forged record cannot switch a partition of another table. A `partitions` record is accepted
    only if there is a marker in the new folder. In this test, the user can create the marker,
    because the user may write to a folder that a switch has created."""
    table, far, to = tmp_path / folder, tmp_path / "far", tmp_path / "t-zorder-0badcafe"
    write_rows(spark, OWN, table)
    write_rows(spark, FOREIGN, far / "day=1")
    place = f"file:{far / 'day=1'}"
    spark.sql(f"CREATE TABLE forger (id BIGINT, other BIGINT) USING parquet LOCATION '{table}'")
    spark.sql(
        "CREATE TABLE switched (id BIGINT, other BIGINT, day INT) USING parquet "
        f"PARTITIONED BY (day) LOCATION '{far}'"
    )
    spark.sql("MSCK REPAIR TABLE switched")
    try:
        spark.sql("OPTIMIZE forger ZORDER BY (id)")
        before, journal = tree(far), table / "_zorder" / "_journal"
        move = {"values": {"day": "1"}, "from": place, "to": "day=1"}
        said = {"database": "default", "table": "switched", "to": to.name,
                "partitions": [move], "read": []}  # fmt: skip
        put(journal, 2, life_of(table), prepare=DEAD, partitions=said,
            outcome={**COMMITTED, "outcome": state})  # fmt: skip
        mark = to / "day=1" / "_zorder" / "_filling"
        mark.parent.mkdir(parents=True)
        mark.write_text(forged.mark_of(journal / "_2.partitions"))
        target = "forger" if named == "by name" else f"'{table}'"
        with scans.settings(spark, spark__sql__zorder__journal__lease="1s"):
            try:
                spark.sql(f"OPTIMIZE {target} FULL ZORDER BY (other)").collect()
            except PySparkException as failure:
                assert refused(failure) and named == "by path", failure
        assert tree(far) == before
        assert not list((to / "day=1").glob("*.parquet"))
        shown = spark.sql("DESCRIBE EXTENDED switched PARTITION (day = 1)")
        assert shown.where("col_name = 'Location'").first()[1] == place
    finally:
        spark.sql("DROP TABLE forger")
        spark.sql("DROP TABLE switched")


def test_partition_that_another_table_has_too(spark: SparkSession, tmp_path: Path) -> None:
    """A forged record cannot switch a partition of another table, even if both tables use the
    partition's folder and an OPTIMIZE of the forger's table created this folder."""
    table = tmp_path / "t"
    write_rows(spark, OWN, table / "day=1")
    columns = "(id BIGINT, other BIGINT, day INT) USING parquet PARTITIONED BY (day)"
    spark.sql(f"CREATE TABLE forger {columns} {BY_LOCATION} LOCATION '{table}'")
    spark.sql(f"CREATE TABLE sharing {columns} LOCATION '{tmp_path / 'far'}'")
    try:
        spark.sql("MSCK REPAIR TABLE forger")
        spark.sql("OPTIMIZE forger FULL ZORDER BY (id)")
        [switched] = tmp_path.glob("t-zorder-*")
        place = f"file:{switched / 'day=1'}"
        spark.sql(f"ALTER TABLE sharing ADD PARTITION (day = 1) LOCATION '{place}'")
        journal = table / "_zorder" / "_journal"
        move = {"values": {"day": "1"}, "from": place, "to": "day=1/forged"}
        said = {"database": "default", "table": "sharing", "to": switched.name,
                "partitions": [move], "read": []}  # fmt: skip
        run = 1 + max(int(p.name[1:].split(".")[0]) for p in journal.glob("_*.prepare"))
        put(journal, run, life_of(table), prepare=DEAD, partitions=said, outcome=COMMITTED)
        mark = switched / "day=1" / "forged" / "_zorder" / "_filling"
        mark.parent.mkdir(parents=True)
        mark.write_text(forged.mark_of(journal / f"_{run}.partitions"))
        with scans.settings(spark, spark__sql__zorder__journal__lease="1s"):
            with pytest.raises(PySparkException, match="ZORDER_CANNOT_SWITCH_LOCATION"):
                spark.sql("OPTIMIZE forger FULL ZORDER BY (other)").collect()
            spark.sql("VACUUM forger").collect()
        shown = spark.sql("DESCRIBE EXTENDED sharing PARTITION (day = 1)")
        assert shown.where("col_name = 'Location'").first()[1] == place
        assert not list(mark.parents[1].glob("*.parquet"))
    finally:
        spark.sql("DROP TABLE forger")
        spark.sql("DROP TABLE sharing")


def test_lease_that_is_a_hard_link(spark: SparkSession, forgeable: Path) -> None:
    """If a lease is a hard link, a heartbeat does not change the linked file, because each
    heartbeat writes a new file."""
    precious = forgeable.parent / "victim" / "precious"
    precious.write_text("theirs")
    for run in (2, 3, 4):
        os.link(precious, forgeable / "_zorder" / "_journal" / f"_{run}.lease")
    run_all(spark, forgeable)
    assert precious.read_text() == "theirs"


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("named", ["sub", "_SUCCESS", "_zorder/_incarnation", "sub/_part"])
def test_records_of_what_is_no_data_file(
    spark: SparkSession, forgeable: Path, named: str, committed: bool
) -> None:
    """Records cannot make readers read a folder as if it were a file, or read files that listings
    hide."""
    (forgeable / "sub").mkdir()
    (forgeable / "sub" / "_part").write_text("no data")
    file = forgeable / named
    ref = [{"path": named, "size": file.stat().st_size, "modificationTime": 0}]
    life = life_of(forgeable)
    added, retired = (ref, []) if committed else ([], ref)
    records: dict[str, Any] = {"prepare": DEAD}
    records["retire"] = {"retire": retired, "add": added, "folders": [""]}
    for folder in (forgeable, forgeable / "sub", forgeable / "_zorder"):
        (folder / f"_zorder.2.{life}").touch()
    if committed:
        records["outcome"] = COMMITTED
    put(forgeable / "_zorder" / "_journal", 2, life, **records)
    assert set(ids(spark.read.parquet(str(forgeable)))) == set(OWN)


@pytest.mark.parametrize("to", ["a:b-zorder-00000000", "file:b-zorder-00000000"])
@pytest.mark.parametrize("kind", ["switch", "partitions"])
@pytest.mark.parametrize("done", long([True, False], True))
def test_names_with_colons(
    spark: SparkSession, forgeable: Path, to: str, kind: str, done: bool
) -> None:
    move = {"values": {"day": "1"}, "from": "day=1", "to": to}
    said = {"database": "default", "table": "nobody", "to": to, "partitions": [move], "read": []}
    records: dict[str, Any] = {"prepare": DEAD, kind: said, "outcome": COMMITTED}
    put(forgeable / "_zorder" / "_journal", 2, life_of(forgeable), **records,
        **({"done": {}} if done else {}))  # fmt: skip
    run_all(spark, forgeable)


@pytest.mark.parametrize("began", [2**63 - 1, -(2**63), 10**15, 1e308, "x", None])
def test_times_that_are_none(spark: SparkSession, forgeable: Path, began: object) -> None:
    put(forgeable / "_zorder" / "_journal", 2, life_of(forgeable), prepare={**DEAD, "began": began},
        done={})  # fmt: skip
    assert len(spark.sql(f"SELECT * FROM optimize_history('{forgeable}')").collect()) == 2


def test_names_that_would_steer_a_terminal(spark: SparkSession, forgeable: Path) -> None:
    """If an error message contains a folder's name, control characters in the name are replaced."""
    stolen = {"path": "file:/x\x1b]0;theirs\x07\x9b2J\n/y/z", "size": 1, "modificationTime": 1}
    said = {"retire": [stolen], "add": [], "folders": []}
    put(forgeable / "_zorder" / "_journal", 2, life_of(forgeable), prepare=DEAD, retire=said)
    with pytest.raises(PySparkException, match="ZORDER_UNFINISHED_ELSEWHERE") as refused:
        spark.sql(f"OPTIMIZE '{forgeable}' FULL ZORDER BY (other)").collect()
    shown = str(refused.value)
    assert "theirs" in shown and not any(c < " " or "\x7f" <= c < "\xa0" for c in shown)


def test_retired_folder_of_links(spark: SparkSession, forgeable: Path) -> None:
    """RESTORE does not copy a folder that has replaced a retired file, because a copy would follow
    the links in the folder."""
    journal = forgeable / "_zorder" / "_journal"
    record = json.loads((journal / "_1.retire").read_text())
    for file in record["retire"]:
        place = forgeable / "_zorder" / "_retired" / "_1" / f"_{file['path']}.retired"
        place.unlink()
        place.mkdir()
        (place / "stolen").symlink_to(forgeable.parent / "victim")
        file["size"] = place.stat().st_size
    (journal / "_1.retire").write_text(json.dumps(record))
    before = tree(forgeable.parent / "victim")
    with pytest.raises(PySparkException, match="ZORDER_CANNOT_RESTORE"):
        spark.sql(f"RESTORE '{forgeable}' TO BEFORE OPTIMIZE")
    assert tree(forgeable.parent / "victim") == before


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change the owner of a link")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_links_of_another_owner(
    spark: SparkSession, database: str, tmp_path: Path, what: str
) -> None:
    """A file that is reached through a link is neither copied nor indexed if the link's owner might
    not be allowed to read the file."""
    write_rows(spark, FOREIGN, tmp_path / "victim")
    write_rows(spark, OWN, tmp_path / "t" / "day=0")
    table, secret = tmp_path / "t", next((tmp_path / "victim").glob("*.parquet"))
    link = table / ("day=0/linked.parquet" if what == "file" else "day=1")
    link.symlink_to(secret if what == "file" else secret.parent)
    os.chown(link, 12345, 12345, follow_symlinks=False)
    with pytest.raises(PySparkException, match="ZORDER_SYMBOLIC_LINK"):
        spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (id)")
    with pytest.raises(PySparkException, match="ZORDER_SYMBOLIC_LINK"):
        spark.sql(f"CREATE SKIPPING INDEX ON '{table}' (id)")
    spark.sql(
        "CREATE TABLE days (id BIGINT, other BIGINT, day INT) USING parquet PARTITIONED BY (day) "
        f"LOCATION '{table}'"
    )
    spark.sql("MSCK REPAIR TABLE days")
    spark.sql("CREATE SKIPPING INDEX ON days (id)")
    entries = spark.sql("SELECT * FROM skipping_index('days')").collect()
    assert entries and max(entry["id_maxValue"] for entry in entries) < FOREIGN.start
    assert spark.read.parquet(str(table)).where("id >= 0").count() > len(OWN)


def differences(world: World) -> str:
    """Describes the changes to the targets' files since the start of the attack."""
    now, before = tree(*world.folders), world.before
    changed = [path for path in now.keys() & before.keys() if now[path] != before[path]]
    gone, new = before.keys() - now.keys(), now.keys() - before.keys()
    return f"gone {sorted(gone)[:5]}, new {sorted(new)[:5]}, changed {sorted(changed)[:5]}"


def folder_above(victim: Path, file: Path, substitute: Path) -> None:
    """Forges a run that replaces one of the victim's files. The journal with this run is in the
    victim's parent folder."""
    above = victim.parent / "_zorder"
    staged = above / "_staging" / "_9" / f"_{victim.name}" / "_x.parquet.staged"
    retired = above / "_retired" / "_9" / f"_{victim.name}" / f"_{file.name}.retired"
    for place in (staged, retired):
        place.parent.mkdir(parents=True)
        shutil.copy(substitute, place)
    (above / "_journal").mkdir()
    (above / "_incarnation").write_text("life")
    put(
        above / "_journal", 9, "life",
        prepare={**DEAD, "lease": 10**12},
        retire={"retire": [ref(victim.parent, file)], "add": [
            {"path": f"{victim.name}/x.parquet", "size": substitute.stat().st_size,
             "modificationTime": 1}], "folders": []},
        outcome=COMMITTED,
    )  # fmt: skip


def ref(table: Path, file: Path) -> dict[str, Any]:
    status = file.stat()
    return {"path": str(file.relative_to(table)), "size": status.st_size,
            "modificationTime": status.st_mtime_ns // 1_000_000}  # fmt: skip


def test_records_in_the_folder_above(spark: SparkSession, tmp_path: Path) -> None:
    """A user who may write to a table's parent folder (such as a warehouse or /tmp) cannot change
    the rows that readers see in the table."""
    victim, other = tmp_path / "victim", tmp_path / "elsewhere" / "other"
    write_rows(spark, range(10), victim)
    write_rows(spark, range(1000, 1010), other)
    [file, *_], [substitute, *_] = data_files(victim), data_files(other)
    planned = spark.read.parquet(str(victim)).select("id")
    folder_above(victim, file, substitute)
    for read in (f"parquet.`{victim}`", f"parquet.`{file}`"):
        assert max(ids(spark.table(read))) < 10
        assert spark.sql(f"SELECT max(id) FROM {read}").first()[0] < 10
    size = file.stat().st_size
    file.unlink()
    place = next((victim.parent / "_zorder" / "_retired").rglob("*.retired"))
    place.write_bytes(substitute.read_bytes().ljust(size, b"x")[:size])
    with pytest.raises(scans.FAILURES, match="FILE_NOT_EXIST|does not exist"):
        planned.collect()


@pytest.mark.parametrize("place", ["_retired", "_staging"])
def test_a_file_shown_in_a_folder_of_other_partition_columns(
    spark: SparkSession, tmp_path: Path, place: str
) -> None:
    table = tmp_path / "t"
    rows = spark.range(0, 40, 1, 1).selectExpr("id", "cast(id % 2 as int) p")
    rows.write.partitionBy("p").parquet(str(table))
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)").collect()
    life, name = life_of(table), "q=1/r=2/x.parquet"
    suffix = {"_retired": "retired", "_staging": "staged"}[place]
    hidden = table / "_zorder" / place / "_9" / "_q=1" / "_r=2" / f"_x.parquet.{suffix}"
    hidden.parent.mkdir(parents=True)
    shutil.copy(data_files(table / "p=0")[0], hidden)
    (table / "q=1" / "r=2").mkdir(parents=True)
    (table / "q=1" / "r=2" / f"_zorder.9.{life}").touch()
    shown = {"path": name, "size": hidden.stat().st_size, "modificationTime": 1}
    files = (
        {"retire": [shown], "add": []} if place == "_retired" else {"retire": [], "add": [shown]}
    )
    records: dict[str, dict[str, Any]] = {
        "prepare": {**DEAD, "lease": 10**12},
        "retire": {**files, "folders": ["q=1/r=2"]},
    }
    if place == "_staging":
        records["outcome"] = COMMITTED
    put(table / "_zorder" / "_journal", 9, life, **records)
    read = f"parquet.`{table}`"
    assert ids(spark.sql(f"SELECT id FROM {read}")) == list(range(40))
    assert spark.sql(f"SELECT count(*), max(p) FROM {read} WHERE id >= 0").first() == (40, 1)
