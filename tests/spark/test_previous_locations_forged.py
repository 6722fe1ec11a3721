"""Records about previous locations may be forged or missing. A partition's previous location, which
is still recorded in the catalog, may now contain another user's table. Forged records in the
partition's table cannot affect that user's table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support import scans
from tests.support.partitioned_table import ALL, BY_LOCATION, make, optimize
from tests.support.tables import data_files, ids

pytestmark = pytest.mark.usefixtures("parted")

THEIRS = list(range(100_000, 100_050))


@pytest.mark.parametrize("damage", ["missing", "torn"])
def test_records_of_the_run_that_filled_the_folder(
    spark: SparkSession, tmp_path: Path, damage: str
) -> None:
    """Without the run's records, RESTORE cannot tell the files that OPTIMIZE wrote from files that
    were added later. RESTORE then fails, because it might duplicate rows."""
    home = tmp_path / "t"
    spark.range(0, 40, 1, 4).write.parquet(str(home))
    spark.sql(f"CREATE TABLE parted (id BIGINT) USING parquet LOCATION '{home}' {BY_LOCATION}")
    spark.sql("OPTIMIZE parted FULL ZORDER BY (id)")
    [new] = [place for place in tmp_path.iterdir() if place.name.startswith("t-zorder-")]
    record = new / "_zorder" / "_journal" / "_1.retire"
    if damage == "missing":
        shutil.rmtree(record.parent)
    else:
        record.write_text("{}")
    with pytest.raises(PySparkException, match="ZORDER_CANNOT_RESTORE"):
        spark.sql("RESTORE parted TO BEFORE OPTIMIZE")
    assert ids(spark.table("parted")) == list(range(40))


@pytest.fixture
def theirs(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """The folder of the other user's table. It is a previous location of the partition day=4."""
    make(spark, tmp_path)
    optimize(spark)
    place = tmp_path / "elsewhere"
    shutil.rmtree(place)
    spark.sql("CREATE DATABASE theirs")
    spark.sql(f"CREATE TABLE theirs.made (id BIGINT) USING parquet LOCATION '{place}'")
    try:
        spark.sql("INSERT INTO theirs.made SELECT id FROM range(100000, 100050, 1, 2)")
        with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
            yield place
    finally:
        spark.sql("DROP DATABASE theirs CASCADE")


def ref(file: Path, path: str) -> dict[str, Any]:
    time = file.stat().st_mtime_ns // 1_000_000
    return {"path": path, "size": file.stat().st_size, "modificationTime": time}


def files_of(folder: Path) -> list[dict[str, Any]]:
    return [ref(file, f"file:{file}") for file in sorted(data_files(folder))]


def change(file: Path, **fields: Any) -> None:
    """Replaces fields of a record, or creates the record."""
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**known, **fields}, separators=(",", ":")))


def run_all(spark: SparkSession) -> None:
    for statement in (
        "RESTORE parted TO BEFORE OPTIMIZE",
        "VACUUM parted RETAIN 0 HOURS",
        "OPTIMIZE parted FULL ZORDER BY (other)",
        "VACUUM parted RETAIN 0 HOURS",
    ):
        try:
            spark.sql(statement).collect()
        except PySparkException as failure:
            assert "[ZORDER_" in str(failure), failure
    assert ids(spark.table("parted")) == ALL


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_in_place(spark: SparkSession, tmp_path: Path, theirs: Path) -> None:
    """A forged record claims that OPTIMIZE has written one of the other user's files, so that
    RESTORE would remove the file."""
    journal, before = tmp_path / "t" / "_zorder" / "_journal", contents(theirs)
    life = (tmp_path / "t" / "_zorder" / "_incarnation").read_text()
    (victim, *_) = files_of(theirs)
    spark.sql("ALTER TABLE parted ADD PARTITION (day = '5')")
    old = tmp_path / "t" / "_zorder" / "_retired" / "_1" / "_day=5" / "_x.parquet.retired"
    old.parent.mkdir(parents=True)
    rows = pyarrow.parquet.read_metadata(victim["path"].removeprefix("file:")).num_rows
    pyarrow.parquet.write_table(pyarrow.table({"id": [7] * rows, "other": [7] * rows}), old)
    (journal / "_1.partitions").unlink()
    said = {"formatVersion": 1, "record": "retire", "incarnation": life, "marked": {}}
    change(journal / "_1.retire", **said, retire=[ref(old, "day=5/x.parquet")], add=[victim],
           folders=["", f"file:{theirs}"])  # fmt: skip
    run_all(spark)
    assert contents(theirs) == before and ids(spark.table("theirs.made")) == THEIRS


@pytest.mark.parametrize("claimed", [True, False])
def test_files_read_by_a_switch(
    spark: SparkSession, tmp_path: Path, theirs: Path, claimed: bool
) -> None:
    """A forged record claims that a switch has read the other user's files, so that RESTORE would
    copy them and VACUUM would delete them. If the record claims that the folder was empty, the
    files look like those of a late INSERT."""
    journal, before = tmp_path / "t" / "_zorder" / "_journal", contents(theirs)
    said = json.loads((journal / "_1.partitions").read_text())
    others = [one for one in said["read"] if not one["path"].startswith("file:")]
    change(journal / "_1.partitions", read=others + (files_of(theirs) if claimed else []))
    run_all(spark)
    assert contents(theirs) == before and ids(spark.table("theirs.made")) == THEIRS
