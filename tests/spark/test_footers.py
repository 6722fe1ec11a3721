"""Footers of Parquet files are read correctly, no matter how long they are and whether the files
have checksums."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support import indexes

#: The number of columns, and whether a single read of 32 KiB contains the footer.
WIDTHS = [(3, True), (2000, False)]


def checksum(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("columns, short", WIDTHS)
def test_any_length(
    spark: SparkSession, tmp_path: Path, columns: int, short: bool, checksums: bool
) -> None:
    path = tmp_path / "t"
    names = [f"c{i}" for i in range(columns)]
    rows = spark.range(5, 9, 1, 1)
    rows.selectExpr(*[f"id + {i} AS {name}" for i, name in enumerate(names)]).write.parquet(
        str(path)
    )
    (file,) = path.glob("*.parquet")
    assert (pq.read_metadata(file).serialized_size < 32 * 1024) == short
    if not checksums:
        checksum(file).unlink()
    schema = indexes.schema(spark, f"{names[0]} bigint, {names[-1]} bigint")
    indexes.build(spark, path, "parquet", schema)
    (entry,) = indexes.check_sound(spark, path, "parquet", schema).values()
    assert (entry[f"{names[-1]}_minValue"], entry[f"{names[-1]}_maxValue"]) == (
        columns + 4,
        columns + 7,
    )


def test_damaged_file(spark: SparkSession, tmp_path: Path) -> None:
    """A query fails if a file does not match its checksum. The index does not turn this error into
    missing rows."""
    path = tmp_path / "t"
    spark.range(7, 8, 1, 1).write.parquet(str(path))
    (file,) = path.glob("*.parquet")
    data = file.read_bytes()
    file.write_bytes(data.replace((7).to_bytes(8, "little"), (6).to_bytes(8, "little")))
    schema = indexes.schema(spark, "id bigint")
    indexes.build(spark, path, "parquet", schema)
    assert indexes.loaded(spark, path) == []
    with pytest.raises(Exception, match="FAILED_READ_FILE"):
        spark.read.schema("id bigint").parquet(str(path)).where("id = 7").collect()
    checksum(file).unlink()
    indexes.build(spark, path, "parquet", schema)
    (entry,) = indexes.loaded(spark, path)
    assert (entry["id_minValue"], entry["id_maxValue"]) == (6, 6)


def test_a_pipe_in_place_of_checksums(spark: SparkSession, tmp_path: Path) -> None:
    """The file stays unindexed; nothing waits for the pipe."""
    path = tmp_path / "t"
    spark.range(7, 8, 1, 1).write.parquet(str(path))
    (file,) = path.glob("*.parquet")
    checksum(file).unlink()
    os.mkfifo(checksum(file))
    indexes.build(spark, path, "parquet", indexes.schema(spark, "id bigint"))
    assert indexes.loaded(spark, path) == []
