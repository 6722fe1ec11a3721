"""Measures how much data OPTIMIZE rewrites after appends, and how much data lookups then read.

    python benchmarks/appends.py [--rounds 10] [--files 64]

The table has a million rows, clustered by (a, b). Each append adds 5% of that number. In one
series, the appended rows are spread over all values of `a` and `b`. In the other series, `a` acts
as a timestamp, so the appended values of `a` are higher than all existing ones. A lookup opens the
files whose bounds in the Parquet footers contain the value, so the figures do not vary between
runs. The last line of each series shows the effect of OPTIMIZE FULL. Prints a table, and writes it
to benchmarks/results/appends.md.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import report
from datasets import FOLDER, size_of
from opened import footers
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyzorder import ZOrderTable, demo

ROWS, ASKED = 1_000_000, 2000
COLUMNS = ("a", "b")

FINGERPRINT = "count(*)", "sum(CAST(xxhash64(*) AS DECIMAL(38,0)))"


def uniform(spark: SparkSession, rows: int, round_: int) -> DataFrame:
    """Returns random rows that differ from round to round. Round 0 is the initial table."""
    a, b = (f"CAST(rand({2 * round_ + i}) * 1000000 AS INT)" for i in (1, 2))
    return spark.range(0, rows, 1, 4).selectExpr(f"{a} AS a", f"{b} AS b", "uuid() AS payload")


def in_time(spark: SparkSession, rows: int, round_: int) -> DataFrame:
    """Returns rows in which `a` acts as a timestamp. In each round, `a` has higher values than in
    the previous round."""
    start, length = (0, 1_000_000) if round_ == 0 else (950_000 + 50_000 * round_, 50_000)
    return uniform(spark, rows, round_).withColumn("a", (F.col("a") % length + start).cast("int"))


def opened(spark: SparkSession, folder: Path) -> float:
    """Returns the size of the files that a lookup opens, as a share of the table's size, averaged
    over existing values."""
    files, _ = footers(folder, COLUMNS)
    sizes = np.array([size for _, size in files])
    some = spark.read.parquet(str(folder)).select(*COLUMNS).orderBy(F.xxhash64(*COLUMNS))
    values = some.limit(ASKED).toPandas()
    shares = []
    for c, name in enumerate(COLUMNS):
        low, high = (np.array([bounds[c][end] for bounds, _ in files]) for end in (0, 1))
        value = values[name].to_numpy()[:, None]
        shares.append(((low <= value) & (value <= high)) @ sizes / sizes.sum())
    return float(np.mean(shares))


def fingerprint(spark: SparkSession, folder: Path) -> Any:
    return spark.read.parquet(str(folder)).selectExpr(*FINGERPRINT).collect()


def measure(
    spark: SparkSession, rows: Callable[[SparkSession, int, int], DataFrame], arguments: Any
) -> list[list[str]]:
    """Returns one line per round. Raises AssertionError if a row is lost or duplicated."""
    folder = FOLDER / "appended to"
    shutil.rmtree(folder, ignore_errors=True)
    rows(spark, ROWS, 0).write.parquet(str(folder))
    spark.conf.set(
        "spark.sql.zorder.optimize.targetFileSize", str(size_of(folder) // arguments.files)
    )
    table = ZOrderTable.forPath(spark, str(folder))
    table.optimize().executeZOrderBy(*COLUMNS)
    lines = []
    for round_ in range(1, arguments.rounds + 2):
        if round_ <= arguments.rounds:
            rows(spark, ROWS // 20, round_).write.mode("append").parquet(str(folder))
        before, expected = size_of(folder), fingerprint(spark, folder)
        optimize = table.optimize()
        if round_ > arguments.rounds:
            optimize = optimize.full()
        done = optimize.executeZOrderBy(*COLUMNS).collect()[0]["metrics"]
        assert fingerprint(spark, folder) == expected
        again = table.optimize().executeZOrderBy(*COLUMNS).collect()[0]["metrics"]
        lines.append([
            rows.__name__.replace("_", " "), str(round_) if round_ <= arguments.rounds else "FULL",
            str(len(footers(folder, COLUMNS)[0])),
            f"{done['filesRemoved']['totalSize'] / before:.3f}", str(again["numFilesRemoved"]),
            f"{opened(spark, folder):.3f}",
        ])  # fmt: skip
        print("  ".join(lines[-1]), flush=True)
    full = float(lines[-1][-1])
    return [[*line, f"{float(line[-1]) / full:.2f}"] for line in lines]


HEADER = ["appends", "round", "files", "bytes rewritten", "files rewritten by a second OPTIMIZE",
          "bytes a lookup reads", "relative to FULL at the end"]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--files", type=int, default=64)
    arguments = parser.parse_args()
    spark = demo.start_spark()
    lines = [line for rows in (uniform, in_time) for line in measure(spark, rows, arguments)]
    spark.stop()
    report.write(
        "appends", "OPTIMIZE after appends",
        f"The table has a million rows in {arguments.files} files. Each append adds 5% of that "
        "number of rows. Byte counts are fractions of the table's size. Measured by "
        "`make bench-appends`.",
        [HEADER, *lines])  # fmt: skip
    print("\n".join("  ".join(line) for line in [HEADER, *lines]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
