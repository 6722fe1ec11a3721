"""Spark with the jar reads the files that the cases in sql/journal require, and returns each row
once."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pytest
from pyspark.sql import SparkSession

from pyzorder.index.stores import plain
from tests.support.journal_vectors import Vector, vectors


@pytest.mark.variants
@pytest.mark.parametrize("vector", vectors(), ids=lambda v: v.name)
def test_vector(spark: SparkSession, tmp_path: Path, vector: Vector) -> None:
    table = tmp_path / "t"
    vector.make(table)
    others = {f["path"]: 5 for f in vector.files if isinstance(f, dict) and "other" in f}
    rows = spark.read.schema("id BIGINT").parquet(str(table)).selectExpr("_metadata.file_path")
    found = [plain(unquote(row[0])) for row in rows.collect()]
    expected = [name for name in vector.visible for _ in range(others.get(name, 1))]
    assert sorted(path.removeprefix(f"{table}/") for path in found) == sorted(expected)
