"""A repeated OPTIMIZE rewrites only new files and the clustered files that overlap new files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tests.support.tables import aim_at, data_files, metrics, rows_of, size_of, target_size

ROWS, FILES, ROUNDS = 60_000, 32, 3


def uniform(spark: SparkSession, rows: int, round_: int) -> DataFrame:
    """Rows with random values from the whole range. Each round has different rows. Round 0
    returns the rows of the initial table."""
    a, b = (f"CAST(rand({2 * round_ + i}) * 1000000 AS INT)" for i in (1, 2))
    return spark.range(0, rows, 1, 2).selectExpr(f"{a} AS a", f"{b} AS b", "uuid() AS payload")


def later(spark: SparkSession, rows: int, round_: int) -> DataFrame:
    """Rows in which `a` grows like a timestamp. The values of `a` in each round are higher than
    those in the previous round."""
    start, length = (0, 1_000_000) if round_ == 0 else (950_000 + 50_000 * round_, 50_000)
    return uniform(spark, rows, round_).withColumn("a", (F.col("a") % length + start).cast("int"))


def optimize(spark: SparkSession, folder: Path, *columns: str, full: bool = False) -> Any:
    how = f"FULL ZORDER BY ({', '.join(columns)})" if full else f"ZORDER BY ({', '.join(columns)})"
    return metrics(spark.sql(f"OPTIMIZE '{folder}' {how}"))


def clustered_table(spark: SparkSession, folder: Path, rows: DataFrame, files: int) -> Any:
    """Writes the rows, and clusters them by a and b into about `files` files. Returns the metrics
    of OPTIMIZE."""
    rows.write.parquet(str(folder))
    aim_at(spark, folder, files)
    return optimize(spark, folder, "a", "b")


def opened(folder: Path, *columns: str) -> float:
    """The share of the table's data that a lookup of an existing value reads, averaged over
    lookups. Which files a lookup opens is determined from the rows in the files, not from the
    index."""
    files = [pq.ParquetFile(path) for path in data_files(folder)]
    sizes = np.array([sum(f.metadata.row_group(g).total_byte_size
                          for g in range(f.metadata.num_row_groups)) for f in files])  # fmt: skip
    shares = []
    for column in columns:
        read = [f.read([column])[column].to_numpy() for f in files]
        low, high = np.array([v.min() for v in read]), np.array([v.max() for v in read])
        values = np.concatenate(read)[:: len(files) * 5]
        hit = (low[None] <= values[:, None]) & (values[:, None] <= high[None])
        shares.append(float((hit * sizes).sum(axis=1).mean() / sizes.sum()))
    return float(np.mean(shares))


@pytest.mark.parametrize(("rows", "limit"), [(uniform, 1.5), (later, 1.25)])
def test_appends(spark: SparkSession, tmp_path: Path, rows: Any, limit: float) -> None:
    folder = tmp_path / "t"
    clustered_table(spark, folder, rows(spark, ROWS, 0), FILES)
    for round_ in range(1, 1 + ROUNDS):
        rows(spark, ROWS // 20, round_).write.mode("append").parquet(str(folder))
        before = size_of(folder)
        done = optimize(spark, folder, "a", "b")
        assert 0 < done["filesRemoved"]["totalSize"] < 0.20 * before, round_
        assert done["totalConsideredFiles"] - done["totalFilesSkipped"] == done["numFilesRemoved"]
        again = optimize(spark, folder, "a", "b")
        assert (again["numFilesAdded"], again["numFilesRemoved"]) == (0, 0)
    incremental = opened(folder, "a", "b")
    table = spark.read.parquet(str(folder))
    assert table.count() == ROWS + ROUNDS * (ROWS // 20)
    checksum = table.select(F.sum(F.xxhash64("a", "b", "payload").cast("decimal(38)"))).collect()
    optimize(spark, folder, "a", "b", full=True)
    assert incremental <= limit * opened(folder, "a", "b")
    table = spark.read.parquet(str(folder))
    assert checksum == table.select(
        F.sum(F.xxhash64("a", "b", "payload").cast("decimal(38)"))).collect()  # fmt: skip


def test_new_files_join_what_they_spoil(spark: SparkSession, tmp_path: Path) -> None:
    """OPTIMIZE rewrites all new files. `rewriteFactor` limits the total size of the clustered files
    that are rewritten with them. If `rewriteFactor` is 0, all clustered files are kept."""
    folder = tmp_path / "t"
    clustered_table(spark, folder, uniform(spark, 50_000, 0), 32)
    clustered = set(data_files(folder))
    uniform(spark, 2_500, 1).write.mode("append").parquet(str(folder))
    new = set(data_files(folder)) - clustered
    expected = rows_of(spark.read.parquet(str(folder)))
    spark.conf.set("spark.sql.zorder.optimize.rewriteFactor", "0")
    done = optimize(spark, folder, "a", "b")
    left = set(data_files(folder))
    assert left & new == set() and clustered <= left
    assert done["numFilesRemoved"] == len(new)
    assert done["numFilesAdded"] >= 4  # added files do not overlap the kept files
    assert done["zOrderStats"]["inputCubeFiles"]["num"] == len(clustered)
    assert done["zOrderStats"]["inputOtherFiles"]["num"] == len(new)
    assert rows_of(spark.read.parquet(str(folder))) == expected


def test_files_that_gain_nothing_stay(spark: SparkSession, tmp_path: Path) -> None:
    """If all new values are higher than the old ones, no clustered file is rewritten, even if
    `rewriteFactor` would allow it."""
    folder = tmp_path / "t"
    uniform(spark, 50_000, 0).write.parquet(str(folder))
    aim_at(spark, folder, 32)
    optimize(spark, folder, "a")
    later(spark, 10_000, 2).write.mode("append").parquet(str(folder))
    assert optimize(spark, folder, "a")["numFilesRemoved"] == 2
    assert opened(folder, "a") <= 1.05 / len(data_files(folder))


def test_tiny_appends_do_not_pile_up(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    clustered_table(spark, folder, uniform(spark, 40_000, 0), 8)
    files = len(data_files(folder))
    for round_ in range(1, 13):
        uniform(spark, 100, round_).coalesce(1).write.mode("append").parquet(str(folder))
        optimize(spark, folder, "a", "b")
    assert len(data_files(folder)) <= files + 5
    assert spark.read.parquet(str(folder)).count() == 40_000 + 12 * 100


def test_clustered_files_that_came_out_too_small_are_joined(
    spark: SparkSession, tmp_path: Path
) -> None:
    """OPTIMIZE merges clustered files that are too small. Such files occur because a clustering
    write cannot predict the size of its files on disk."""
    folder = tmp_path / "t"
    clustered_table(spark, folder, uniform(spark, 20_000, 0), 48)
    aim_at(spark, folder, 4)
    assert optimize(spark, folder, "a", "b")["numFilesRemoved"] == 48
    assert len(data_files(folder)) == 4
    assert optimize(spark, folder, "a", "b")["numFilesRemoved"] == 0


def test_a_badly_clustered_rest_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    spark.conf.set("spark.sql.zorder.optimize.rewriteFactor", "0")
    assert clustered_table(spark, folder, uniform(spark, 40_000, 0), 16)["remark"] is None
    for round_ in range(1, 5):
        uniform(spark, 16_000, round_).coalesce(1).write.mode("append").parquet(str(folder))
        optimize(spark, folder, "a", "b")
    idle = optimize(spark, folder, "a", "b")
    assert idle["numFilesAdded"] == 0
    assert "FULL" in idle["remark"]
    described = spark.sql(f"DESCRIBE SKIPPING INDEX ON '{folder}'").collect()
    (statement,) = {row["advice"] for row in described}
    files = len(data_files(folder))
    assert metrics(spark.sql(statement))["numFilesRemoved"] == files
    assert "FULL" not in optimize(spark, folder, "a", "b")["remark"]


def test_a_tiny_target_size_promises_no_faster_lookups(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    clustered_table(spark, folder, uniform(spark, 1_000, 0), 2)
    target_size(spark, 1)
    spark.conf.set("spark.sql.zorder.optimize.rewriteFactor", "0")
    idle = "Nothing to do: the files are already clustered by a, b."
    assert optimize(spark, folder, "a", "b")["remark"] == idle


@pytest.mark.parametrize(("curve", "method"), [("linear", "boundaries"), ("zorder", "direct")])
def test_full_is_not_advised_where_it_brings_nothing(
    spark: SparkSession, tmp_path: Path, curve: str, method: str
) -> None:
    folder = tmp_path / "t"
    spark.conf.set("spark.sql.zorder.optimize.curve", curve)
    spark.conf.set("spark.sql.zorder.optimize.method", method)

    def described() -> Row:
        rows = spark.sql(f"DESCRIBE SKIPPING INDEX ON '{folder}'").collect()
        return {row["column"]: row for row in rows}["a"]

    clustered_table(spark, folder, uniform(spark, 40_000, 0), 16)
    idle = "Nothing to do: the files are already clustered by a, b."
    assert optimize(spark, folder, "a", "b")["remark"] == idle
    assert (described().verdict, described().advice) == (idle, None)
    uniform(spark, 400, 1).coalesce(1).write.mode("append").parquet(str(folder))
    said = described().verdict
    others = optimize(spark, folder, "a", "b")["numFilesRemoved"] - 1
    rest = f" together with {others} that are already clustered" if others else "."
    assert f"1 new file{rest}" in said


def nulls(spark: SparkSession, rows: int, round_: int) -> DataFrame:
    return uniform(spark, rows, round_).selectExpr(
        "if(a % 3 = 0, NULL, a) AS a", "if(b % 2 = 0, 'x', 'y') AS b", "payload"
    )


def strings(spark: SparkSession, rows: int, round_: int) -> DataFrame:
    return uniform(spark, rows, round_).selectExpr(
        "concat('https://example.org/', a) AS a",
        "if(b % 10 = 0, double('NaN'), b / 7.0D) AS b", "payload")  # fmt: skip


def constant(spark: SparkSession, rows: int, round_: int) -> DataFrame:
    return uniform(spark, rows, round_).selectExpr("1 AS a", "CAST(NULL AS INT) AS b", "payload")


@pytest.mark.parametrize(
    ("rows", "curve", "provider"),
    [
        (nulls, "zorder", "orc"),
        (strings, "hilbert", "parquet"),
        (strings, "linear", "orc"),
        (constant, "zorder", "parquet"),
    ],
)
def test_hard_columns(
    spark: SparkSession, tmp_path: Path, rows: Any, curve: str, provider: str
) -> None:
    folder = tmp_path / "t"
    spark.conf.set("spark.sql.zorder.optimize.curve", curve)
    rows(spark, 20_000, 0).write.format(provider).save(str(folder))
    size = aim_at(spark, folder, 16)
    table = f"{provider}.`{folder}`"
    statement = f"OPTIMIZE {table} ZORDER BY (a, b)"
    spark.sql(statement)
    rows(spark, 1_000, 1).write.mode("append").format(provider).save(str(folder))
    expected = rows_of(spark.sql(f"SELECT * FROM {table}"))
    done = metrics(spark.sql(statement))
    assert 0 < done["filesRemoved"]["totalSize"] < 0.3 * size
    assert metrics(spark.sql(statement))["numFilesRemoved"] == 0
    assert rows_of(spark.sql(f"SELECT * FROM {table}")) == expected
