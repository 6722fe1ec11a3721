"""Whoever may write into a table's folder, and nowhere else, makes no command of somebody with wider rights
read, move or delete anything outside of it."""

from __future__ import annotations

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
from tests.support.tables import ids

#: How many of the attacks a run of the tests draws; FORGED_SEED draws others.
DRAWN = int(os.environ.get("FORGED_CASES", "30"))

OWN, FOREIGN = range(0, 100), range(100_000, 100_040)

BY_LOCATION = "TBLPROPERTIES ('zorder.publish.method' = 'location')"

Tree = dict[Path, tuple[int, bytes]]


def tree(*folders: Path) -> Tree:
    """Every file and folder below, with times and bytes."""
    found = [p for folder in folders if folder.exists() for p in [folder, *folder.rglob("*")]]
    return {p: (p.stat().st_mtime_ns, b"" if p.is_dir() else p.read_bytes()) for p in found}


def write_rows(spark: SparkSession, numbers: range, folder: Path) -> None:
    rows = spark.range(numbers.start, numbers.stop, 1, 2)
    rows.selectExpr("id", "id AS other").write.parquet(str(folder))


class World:
    """The tables `forged` and `parted_forged`, and what others have beside their folders."""

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
        """Both tables as they were made, each with one OPTIMIZE on record."""
        self.drop()
        for place in self.base.iterdir():
            if place.name in ("t", "p", "elsewhere") or (
                "-zorder-" in place.name and "0badcafe" not in place.name
            ):
                shutil.rmtree(place)
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
        """Genuine runs of each kind."""
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
        """A folder, a table beside, one that looks like a sibling of OPTIMIZE's, a partition."""
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


#: The writing statements, in orders that are drawn. They may be refused, never fail otherwise.
STATEMENTS = [
    "VACUUM {} RETAIN 0 HOURS",
    "OPTIMIZE {} FULL ZORDER BY (other)",
    "RESTORE {} TO BEFORE OPTIMIZE",
    "REFRESH SKIPPING INDEX ON {}",
    "OPTIMIZE '{path}' FULL ZORDER BY (id)",
    "VACUUM '{path}' RETAIN 0 HOURS",
]


def refused(failure: Exception) -> bool:
    """Whether it is an answer in a sentence, with a condition of pyzorder's."""
    return isinstance(failure, PySparkException) and "ZORDER_" in str(failure)


def test_forged_records(spark: SparkSession, world: World) -> None:
    """Of all attacks some are drawn; `FORGED_CASES` says how many."""
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
                break  # what follows would be judged by victims that are none any more
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
    """What was wrong; empty: nothing."""
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


def differences(world: World) -> str:
    """What is not as it was of the victims' files."""
    now, before = tree(*world.folders), world.before
    changed = [path for path in now.keys() & before.keys() if now[path] != before[path]]
    gone, new = before.keys() - now.keys(), now.keys() - before.keys()
    return f"gone {sorted(gone)[:5]}, new {sorted(new)[:5]}, changed {sorted(changed)[:5]}"
