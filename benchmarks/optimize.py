"""Compares the cost of OPTIMIZE with the cost of ORDER BY and of a plain rewrite.

    python benchmarks/optimize.py [--rounds 5] [--files 64] [--scales 1,10]

The table is TPC-H lineitem in 64 files, with rows in their original order. OPTIMIZE and ORDER BY
cluster the table by (l_partkey, l_shipdate, l_suppkey) into the same number of files. The JVM has a
heap of 2 GiB. A plain rewrite runs one task per file, and each task writes one new file. Each round
measures every kind of rewrite once. The reported time is the minimum over all rounds. Only the
ratios of these times matter. At larger scale factors, only the plain rewrite and pyzorder are
measured, with files of the same size and a third as many rounds. Other projects are measured on the
newest Spark version that they support. Runs of their OPTIMIZE alternate with runs of pyzorder's.
Prints the results, and writes them to benchmarks/results/optimize.md and optimize_peers.md.
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
import peers
import pyarrow.parquet as pq
import report
from datasets import FOLDER, data_files, lineitem, size_of
from pyspark.sql import SparkSession

import pyzorder
from pyzorder import demo

COLUMNS = ("l_partkey", "l_shipdate", "l_suppkey")


@dataclass
class Cost:
    """The cost of a kind of rewrite. All figures except the seconds are from the last round."""

    seconds: list[float] = field(default_factory=list)
    jobs: int = 0
    shuffled: int = 0
    heap: int = 0
    sizes: list[int] = field(default_factory=list)


def source(spark: SparkSession, scale: int, files: int) -> Path:
    """Returns a folder with lineitem in about `files` files. Creates the folder if needed."""
    folder = FOLDER / f"lineitem_{scale}_{files}"
    if not (folder / "_SUCCESS").exists():
        rows = lineitem(spark, scale)
        per_file = rows.count() // files + 1
        rows.write.option("maxRecordsPerFile", per_file).parquet(str(folder))
    return folder


def plain(spark: SparkSession, source: Path, files: int, folder: Path) -> Callable[[], None]:
    """Rewrites each file in its own task."""
    greatest = max(file.stat().st_size for file in data_files(source))
    keys = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")

    def run() -> None:
        for key in keys:
            spark.conf.set(key, str(greatest))
        try:
            spark.read.parquet(str(source)).write.parquet(str(folder))
        finally:
            for key in keys:
                spark.conf.unset(key)

    return run


def order_by(spark: SparkSession, source: Path, files: int, folder: Path) -> Callable[[], None]:
    rows = spark.read.parquet(str(source)).repartitionByRange(files, *COLUMNS)
    return lambda: rows.sortWithinPartitions(*COLUMNS).write.parquet(str(folder))


def optimize(spark: SparkSession, source: Path, files: int, folder: Path) -> Callable[[], None]:
    """Runs OPTIMIZE on a copy of the table. The copy is created before the measurement."""
    shutil.copytree(source, folder)
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", str(size_of(folder) // files))
    table = pyzorder.ZOrderTable.forPath(spark, str(folder))
    return lambda: table.optimize().executeZOrderBy(*COLUMNS)


def delta_rs(spark: SparkSession, source: Path, files: int, folder: Path) -> Callable[[], None]:
    size = size_of(source) // files
    for file in data_files(source):
        deltalake.write_deltalake(str(folder), pq.read_table(file), mode="append")
    table = deltalake.DeltaTable(str(folder))
    return lambda: table.optimize.z_order(list(COLUMNS), target_size=size)


WAYS = {
    "plain rewrite": plain,
    "ORDER BY": order_by,
    "pyzorder": optimize,
    f"delta-rs {deltalake.__version__}": delta_rs,
}


class Meter:
    """Measures a run's duration, number of jobs, shuffled bytes and peak heap."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._store = spark.sparkContext._jsc.sc().statusStore()
        self._no_quantiles = spark.sparkContext._gateway.new_array(self._jvm.double, 0)

    def _pools(self) -> list[Any]:
        beans = self._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        return [bean for bean in beans if bean.getType().name() == "HEAP"]

    def _totals(self) -> tuple[int, int]:
        jobs = self._store.jobsList(None)
        stages = self._store.stageList(None, False, False, self._no_quantiles, None)
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


def measure(spark: SparkSession, scale: int, files: int, rounds: int) -> list[list[str]]:
    """Returns one line per kind of rewrite."""
    table = source(spark, scale, files * scale)
    count = spark.read.parquet(str(table)).count()
    meter = Meter(spark)
    ways = WAYS if scale == 1 else {name: WAYS[name] for name in ("plain rewrite", "pyzorder")}
    costs = {name: Cost() for name in ways}
    folder = FOLDER / "rewritten"
    for _ in range(rounds if scale == 1 else max(1, rounds // 3)):
        for name, way in ways.items():
            shutil.rmtree(folder, ignore_errors=True)
            run = way(spark, table, files * scale, folder)
            before = set(data_files(folder))
            meter.measure(costs[name], run)
            new = [f for f in data_files(folder) if f not in before]
            costs[name].sizes = [f.stat().st_size for f in new]
            print(f"{name}, scale factor {scale}: {costs[name].seconds[-1]:.1f} s", flush=True)
    shutil.rmtree(folder)
    plainly = costs["plain rewrite"]
    rows = []
    for name, cost in costs.items():
        sizes = np.array(cost.sizes or [0], dtype=float)
        variation = sizes.std() / sizes.mean() if sizes.mean() else 0.0
        rows.append([
            str(scale), name, f"{min(cost.seconds):.1f}", f"{min(cost.seconds) / count * 1e6:.2f}",
            f"{min(cost.seconds) / min(plainly.seconds):.2f}", str(cost.jobs),
            f"{cost.shuffled / 1e6:.0f}", f"{cost.heap / 1e6:.0f}", str(len(cost.sizes)),
            f"{variation:.2f}", f"{sizes.sum() / sum(plainly.sizes):.2f}",
        ])  # fmt: skip
    return rows


HEADER = ["scale factor", "operation", "seconds", "µs per row", "vs. plain rewrite", "jobs",
          "shuffled MB", "peak heap MB", "files", "file size variation",
          "bytes vs. plain rewrite"]  # fmt: skip


def against_peers(table: Path, files: int, rows: list[list[str]]) -> None:
    """Measures the peers that `make peers` has fetched, and writes results/optimize_peers.md.

    Args:
        rows: existing results. Peers that are missing from these are measured and added.
    """
    for name, peer in peers.PEERS.items():
        if any(row[0] == name for row in rows):
            continue
        if not peer.is_there:
            print(f"Left out, because `make peers` has not fetched it: {name}")
            continue
        taken = peers.seconds(name, table, FOLDER / "scratch", COLUMNS, files)
        least = {way: min(seconds) for way, seconds in taken.items()}
        rows.append([
            name, peer.spark, *(f"{least[way]:.1f}" for way in ("plain rewrite", "pyzorder", name)),
            f"{least[name] / least['pyzorder']:.2f}",
        ])  # fmt: skip
        print("  ".join(rows[-1]), flush=True)
        report.write(
            "optimize_peers", "OPTIMIZE compared with other projects",
            "The table is TPC-H `lineitem` at scale factor 1. Runs of pyzorder and of the peer "
            "alternate, on the peer's Spark version. Measured by `make peers bench-optimize`.",
            [PEERS_HEADER, *rows])  # fmt: skip


PEERS_HEADER = ["peer", "Spark", "plain rewrite, s", "pyzorder, s", "peer, s", "peer / pyzorder"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=64, help="number of files at scale factor 1")
    parser.add_argument(
        "--scales",
        default="1,10",
        help="TPC-H scale factors, separated by commas; '' for peers only",
    )
    parser.add_argument("--resume", action="store_true", help="keep existing results of peers")
    arguments = parser.parse_args()
    spark = demo.start_spark()
    rows = [
        row
        for scale in map(int, filter(None, arguments.scales.split(",")))
        for row in measure(spark, scale, arguments.files, arguments.rounds)
    ]
    table = source(spark, 1, arguments.files)
    spark.stop()
    if rows:
        report.write(
            "optimize", "What OPTIMIZE costs",
            "The table is TPC-H `lineitem`, and the JVM has a heap of 2 GiB. Measured by "
            "`make bench-optimize`.",
            [HEADER, *rows])  # fmt: skip
        print("\n".join("  ".join(row) for row in [HEADER, *rows]))
    against_peers(table, arguments.files, report.read("optimize_peers") if arguments.resume else [])
    return 0


if __name__ == "__main__":
    sys.exit(main())
