"""A scan finds a file that was moved after the scan was planned, and does not read a different file
that now has the moved file's old name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession


@pytest.fixture
def file(spark: SparkSession, tmp_path: Path) -> Path:
    """A data file in a table with two files. Its modification time is in the past."""
    path = tmp_path / "t" / "data.parquet"
    write(path, 0)
    write(path.with_name("more.parquet"), 10)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def write(path: Path, first: int) -> None:
    path.parent.mkdir(exist_ok=True)
    ids = pa.array(range(first, first + 10), pa.int64())
    pq.write_table(pa.table({"id": ids}), path, compression="none", use_dictionary=False)


def located(spark: SparkSession, file: Path, size: int, modified: int) -> str | None:
    """The path at which a scan finds a file. `size` and `modified` are the file's size and
    modification time when the scan was planned."""
    jvm: Any = spark._jvm
    lookup = getattr(jvm.io.pyzorder.publish.reading, "MovedFileLookup$")
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    path = jvm.org.apache.hadoop.fs.Path(str(file))
    roots = getattr(getattr(jvm.scala.collection.immutable, "Nil$"), "MODULE$")
    found = getattr(lookup, "MODULE$").locate(conf, path, size, modified, roots)
    return None if found.isEmpty() else str(found.get().toString())


def test_sizes_and_times(spark: SparkSession, file: Path) -> None:
    size, modified = file.stat().st_size, 1_700_000_000_000
    spark.sql(f"OPTIMIZE '{file.parent}' FULL ZORDER BY (id)")
    assert not file.exists()
    assert "_retired" in (located(spark, file, size, modified) or "")
    assert "_retired" in (located(spark, file, 0, 0) or "")
    assert located(spark, file, size + 1, modified) is None
    assert located(spark, file, size, modified + 1) is None
    write(file, 1000)  # by another engine, under the same name
    assert file.stat().st_size == size
    again = int(file.stat().st_mtime * 1000)
    assert located(spark, file, size, again) == f"file:{file}"
    file.unlink()
    assert located(spark, file, size, again) is None


@pytest.mark.parametrize("rows", [1, 10, 5000])
def test_a_reused_name(spark: SparkSession, file: Path, rows: int) -> None:
    """A query planned before an OPTIMIZE reads the file that the OPTIMIZE has replaced, not a new
    file that another writer has created under the same name."""
    planned = spark.read.parquet(str(file.parent)).orderBy("id")
    expected = [row["id"] for row in planned.collect()]
    spark.sql(f"OPTIMIZE '{file.parent}' FULL ZORDER BY (id)")
    ids = pa.array(range(1000, 1000 + rows), pa.int64())
    pq.write_table(pa.table({"id": ids}), file)
    assert [row["id"] for row in planned.collect()] == expected
    assert spark.read.parquet(str(file.parent)).count() == len(expected) + rows
