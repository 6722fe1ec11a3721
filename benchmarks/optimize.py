"""What an OPTIMIZE costs, against an ORDER BY and a plain rewrite of the same table.

    python benchmarks/optimize.py [--rounds 3] [--files 64] [--scale 1]

TPC-H lineitem, clustered by (l_partkey, l_shipdate, l_suppkey). Seconds are the least of the
rounds, which take turns; what counts are their ratios. Prints a table, and writes it to
benchmarks/results/optimize.md.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow.parquet as pq
import report
from datasets import FOLDER, data_files, lineitem, size_of
from pyspark.sql import DataFrame, SparkSession

import pyzorder
from pyzorder import demo

COLUMNS = ("l_partkey", "l_shipdate", "l_suppkey")


@dataclass
class Cost:
    """What a way of rewriting took: seconds of each round, the rest of the last one."""

    seconds: list[float] = field(default_factory=list)
    jobs: int = 0
    shuffled: int = 0
    heap: int = 0
    sizes: list[int] = field(default_factory=list)


def plain(df: DataFrame, files: int, folder: Path) -> Callable[[], None]:
    """Reads and writes as many files as the input has."""
    return lambda: df.write.parquet(str(folder))


def order_by(df: DataFrame, files: int, folder: Path) -> Callable[[], None]:
    def run() -> None:
        df.repartitionByRange(files, *COLUMNS).sortWithinPartitions(*COLUMNS).write.parquet(
            str(folder))  # fmt: skip

    return run


def optimize(df: DataFrame, files: int, folder: Path) -> Callable[[], None]:
    """OPTIMIZE of a copy of the table, made before the clock starts."""
    df.write.parquet(str(folder))
    size = size_of(folder)
    spark = df.sparkSession
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", str(size // files))
    table = pyzorder.ZOrderTable.forPath(spark, str(folder))
    return lambda: table.optimize().executeZOrderBy(*COLUMNS)


def delta_rs(df: DataFrame, files: int, folder: Path) -> Callable[[], None]:
    source = folder.with_name("source")
    shutil.rmtree(source, ignore_errors=True)
    df.write.parquet(str(source))
    deltalake.write_deltalake(str(folder), pq.read_table(source))
    table = deltalake.DeltaTable(str(folder))
    size = size_of(folder)
    shutil.rmtree(source)
    return lambda: table.optimize.z_order(list(COLUMNS), target_size=size // files)


WAYS = {
    "plain rewrite": plain,
    "ORDER BY": order_by,
    "pyzorder": optimize,
    f"delta-rs {deltalake.__version__}": delta_rs,
}


class Meter:
    """Jobs, shuffled bytes and the heap's peak between two moments."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._store = spark.sparkContext._jsc.sc().statusStore()

    def _pools(self) -> list[Any]:
        beans = self._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        return [bean for bean in beans if bean.getType().name() == "HEAP"]

    def _totals(self) -> tuple[int, int]:
        jobs = self._store.jobsList(None)
        stages = self._store.stageList(None, False, False, [], None)
        shuffled = sum(stages.apply(i).shuffleWriteBytes() for i in range(stages.size()))
        return jobs.size(), shuffled

    def measure(self, cost: Cost, run: Callable[[], None]) -> None:
        self._jvm.java.lang.System.gc()
        for pool in self._pools():
            pool.resetPeakUsage()
        jobs, shuffled = self._totals()
        started = time.monotonic()
        run()
        cost.seconds.append(time.monotonic() - started)
        cost.heap = sum(pool.getPeakUsage().getUsed() for pool in self._pools())
        after = self._totals()
        cost.jobs, cost.shuffled = after[0] - jobs, after[1] - shuffled


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--scale", type=int, default=1, help="TPC-H scale factor")
    arguments = parser.parse_args()
    spark = demo.start_spark()
    df = lineitem(spark, arguments.scale)
    meter = Meter(spark)
    costs = {name: Cost() for name in WAYS}
    folder = FOLDER / "rewritten"
    for _ in range(arguments.rounds):
        for name, way in WAYS.items():
            shutil.rmtree(folder, ignore_errors=True)
            run = way(df, arguments.files, folder)
            before = set(data_files(folder))
            meter.measure(costs[name], run)
            new = [f for f in data_files(folder) if f not in before]
            costs[name].sizes = [f.stat().st_size for f in new]
            print(f"{name}: {costs[name].seconds[-1]:.1f} s", flush=True)
    spark.stop()
    show(costs, arguments.scale)
    return 0


def show(costs: dict[str, Cost], scale: int) -> None:
    """Prints the table, and writes it."""
    plainly = costs["plain rewrite"]
    rows = [["way", "seconds", "of a plain rewrite", "jobs", "shuffled MB", "peak heap MB", "files",
             "sizes' variation", "bytes of a plain rewrite"]]  # fmt: skip
    for name, cost in costs.items():
        sizes = np.array(cost.sizes or [0], dtype=float)
        variation = sizes.std() / sizes.mean() if sizes.mean() else 0.0
        rows.append([
            name, f"{min(cost.seconds):.1f}", f"{min(cost.seconds) / min(plainly.seconds):.2f}",
            str(cost.jobs), f"{cost.shuffled / 1e6:.0f}", f"{cost.heap / 1e6:.0f}",
            str(len(cost.sizes)), f"{variation:.2f}", f"{sizes.sum() / sum(plainly.sizes):.2f}",
        ])  # fmt: skip
    report.write(
        "optimize", "What an OPTIMIZE costs",
        f"TPC-H lineitem at scale factor {scale}; `make bench-optimize`.", rows)  # fmt: skip
    print("\n".join("  ".join(row) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
