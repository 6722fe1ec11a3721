"""Helpers that create the external table `parted`, look up the locations of its partitions in the
catalog, and read its rows with PyArrow instead of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

from tests.support import scans
from tests.support.tables import aim_at, data_files

ALL = list(range(400))
SCHEMA = "id BIGINT, other BIGINT, day STRING"
BY_LOCATION = "TBLPROPERTIES ('zorder.publish.method' = 'location')"

#: The partition of a row. There are four partitions: an ordinary one, one with a name that needs
#: escaping, the null partition, and one that is stored outside the table's folder.
DAY = "element_at(array('1', 'a b/c:%', NULL, '4'), 1 + int(id % 4)) AS day"


def places(spark: SparkSession) -> dict[str, Path]:
    """The location of each partition in the catalog. The keys are partition values."""
    catalog: Any = spark._jsparkSession.sharedState().externalCatalog()
    nothing: Any = getattr(spark._jvm.scala, "None$")
    listed = catalog.listPartitions("default", "parted", getattr(nothing, "MODULE$"))
    found = [listed.apply(i) for i in range(listed.size())]
    return {one.spec().apply("day"): Path(one.location().getPath()) for one in found}


def read_there(spark: SparkSession) -> list[int]:
    """The ids that an engine reads without pyzorder."""
    found: list[int] = []
    for place in places(spark).values():
        form = "orc" if any(p.suffix == ".orc" for p in data_files(place)) else "parquet"
        rows = pyarrow.dataset.dataset(str(place), format=form).to_table(columns=["id"])
        found += rows.column("id").to_pylist()
    return sorted(found)


def declare(home: Path, provider: str = "parquet") -> list[str]:
    return [
        f"CREATE TABLE parted ({SCHEMA}) USING {provider} PARTITIONED BY (day) LOCATION '{home}' "
        f"{BY_LOCATION}",
        "MSCK REPAIR TABLE parted",
        f"ALTER TABLE parted ADD PARTITION (day = '4') LOCATION '{home.parent / 'elsewhere'}'",
    ]


def make(spark: SparkSession, folder: Path, provider: str = "parquet") -> Path:
    """Creates the external table `parted`, with four partitions of four files each."""
    home = folder / "t"
    rows = spark.range(0, 400, 1, 4).selectExpr("id", "id * 7919 % 400 AS other", DAY)
    rows.write.partitionBy("day").format(provider).save(str(home))
    (home / "day=4").rename(folder / "elsewhere")
    for statement in declare(home, provider):
        spark.sql(statement)
    aim_at(spark, folder, 16)
    return home


def optimize(spark: SparkSession, how: str = "ZORDER BY (id, other)") -> DataFrame:
    return spark.sql(f"OPTIMIZE parted {how}")


def vacuumed(spark: SparkSession) -> set[str]:
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        told = {row.path for row in spark.sql("VACUUM parted RETAIN 0 HOURS DRY RUN").collect()}
        gone = {row.path for row in spark.sql("VACUUM parted RETAIN 0 HOURS").collect()}
    assert told == gone
    return gone


def append(place: Path, row: int) -> None:
    """Adds a file with one row to a partition's folder. Does not use pyzorder."""
    file = place / f"_by-hand-{row}.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"id": [row], "other": [row]}), file)
    file.rename(file.with_name(file.name[1:]))
