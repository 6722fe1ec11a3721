"""Helpers for tests of OPTIMIZE: rows of tables, data files, and target sizes."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def rows_of(df: DataFrame) -> Counter[str]:
    """The rows as a multiset of strings. As a string, NaN equals itself. Year-month intervals are
    cast to strings, because PySpark cannot collect them."""
    names = [(f"`{f.name.replace('`', '``')}`", f.dataType.simpleString()) for f in df.schema]
    readable = [
        F.col(name).cast("string") if "year" in data_type else name for name, data_type in names
    ]
    return Counter(map(repr, df.select(*readable).collect()))


def data_files(folder: Path) -> list[Path]:
    """The data files below a folder that any engine would list."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part[0] in "_." for part in path.relative_to(folder).parts)
    )


def metrics(df: DataFrame) -> Any:
    """The metrics in the single row that OPTIMIZE returns."""
    (row,) = df.collect()
    return row["metrics"]


def sales(spark: SparkSession, rows: int = 6000) -> DataFrame:
    """Rows with keys of several types. All columns except `day` contain nulls."""
    df = spark.range(0, rows, 1, 3).select(
        (F.xxhash64("id") % 1000).cast("int").alias("a"),
        F.concat(F.lit("key-"), F.hash("id") % 500).alias("b"),
        (F.xxhash64("id", F.lit(7)) % 100000).cast("decimal(12,2)").alias("c"),
        F.expr("date_add(date'2020-01-01', cast(id % 900 as int))").alias("d"),
        F.expr("named_struct('x', cast(id % 77 as double), 'y', id)").alias("s"),
        F.expr("array(id, id + 1)").alias("list"),
        (F.col("id") % 3).cast("int").alias("day"),
    )
    return df.select(
        *[F.when(F.rand(3) > 0.05, F.col(n)).alias(n) for n in ("a", "b", "c", "d", "s", "list")],
        "day",
    )


def delete_folder(folder: Path) -> None:
    """Deletes a folder, like `rm -r`. For a few seconds after a run, pyzorder checks whether the
    table's folder is being deleted. If so, pyzorder also deletes the run's files. If a file has
    disappeared before this function deletes it, the function starts again."""
    while folder.exists():
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)


def size_of(folder: Path) -> int:
    """The total size in bytes of the data files below a folder."""
    return sum(path.stat().st_size for path in data_files(folder))


def aim_at(spark: SparkSession, folder: Path, files: int) -> int:
    """Sets a target size that makes OPTIMIZE write about `files` files. Returns the total size of
    the current files."""
    size = size_of(folder)
    target_size(spark, size // files)
    return size


def target_size(spark: SparkSession, size: int) -> None:
    """Sets the target file size of OPTIMIZE in bytes."""
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", str(size))


def recorded_runs(spark: SparkSession, table: str) -> list[str]:
    """The operations of the runs that are recorded for a table."""
    rows = spark.sql(f"SELECT operation FROM optimize_history('{table}') ORDER BY run").collect()
    return [row["operation"] for row in rows]


def ids(df: DataFrame) -> list[int]:
    """The sorted values of the column `id`."""
    return sorted(row["id"] for row in df.select("id").collect())
