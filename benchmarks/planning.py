"""Measures how much time the index adds to query planning as a table grows.

    python benchmarks/planning.py [--files 10000,100000,1000000]

The tables are synthetic. Each has one of the given numbers of files, and an index on four columns.
Measures how much memory the index takes, and how many milliseconds each of three steps takes:
loading the index, finding the entries for the files in a listing, and pruning the listing once the
entries are known. The code is in io.pyzorder.skipping.files.PlanningBenchmark (jvm/src/bench). For
a small table without an index, measures the time to plan a query with and without the extension, in
separate processes.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jvm_loops
from pyspark.sql import SparkSession

import pyzorder

#: For each number of files, the maximum times for warm pruning and for a cold load, in
#: milliseconds.
TARGETS = {10_000: (5, 150), 100_000: (10, 1_000), 1_000_000: (50, 1_000)}
#: The maximum time to match entries, in milliseconds, and the maximum memory, in MiB. Both are for
#: a million files.
MATCHING, MEMORY = 500, 128
#: The maximum time in milliseconds that the extension may add to the planning of a query on an
#: unindexed table.
OVERHEAD = 2.0


def builder() -> SparkSession.Builder:
    """Returns a builder of sessions with one thread and enough memory for the synthetic entries."""
    return (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "8g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", tempfile.mkdtemp())
    )


def grown(sizes: list[int]) -> bool:
    """Prints a line for each size, and returns whether all targets are met."""
    spark = pyzorder.configure(builder()).getOrCreate()
    helpers = jvm_loops.load(spark)
    print("    files  selected   pruning  matching  cold load    memory")
    fine = True
    for size in sizes:
        made = helpers.skipping.files.PlanningBenchmark(spark._jsparkSession, size)
        matching, pruning, cold = made.matching(), made.pruning(), made.coldLoad()
        memory = made.estimatedBytes() / 2**20
        print(f"{size:>9} {made.selected():>9} {pruning:>6.1f} ms {matching:>6.0f} ms "
              f"{cold:>7.0f} ms {memory:>5.1f} MiB")  # fmt: skip
        most = TARGETS.get(size, (float("inf"), float("inf")))
        fine &= pruning <= most[0] and cold <= most[1]
        fine &= size < 1_000_000 or (matching <= MATCHING and memory <= MEMORY)
    spark.stop()
    return fine


def plan_in_turns(with_extension: bool) -> None:
    """Plans 100 queries for each line of standard input, and prints the median time in
    milliseconds.

    The queries read an unindexed table of 20 files.
    """
    made = pyzorder.configure(builder()) if with_extension else builder()
    spark = made.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        table = str(Path(folder) / "t")
        spark.range(0, 2000, 1, 20).selectExpr("id", "id % 7 AS k").write.parquet(table)
        spark.read.parquet(table).createOrReplaceTempView("t")
        for _ in sys.stdin:
            seconds = []
            for i in range(100):
                start = time.perf_counter()
                query = spark.sql(f"SELECT count(k) FROM t WHERE id BETWEEN {i} AND {i + 9}")
                query._jdf.queryExecution().executedPlan()
                seconds.append(time.perf_counter() - start)
            print(f"planned in {1000 * statistics.median(seconds)}", flush=True)
    spark.stop()


def overhead(turns: int) -> tuple[float, float]:
    """Returns the median planning time without the extension, and the time that the extension
    adds, both in milliseconds.

    Alternates between two processes, one with and one without the extension.
    """
    command = [sys.executable, __file__, "--plan"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    taken: dict[str, list[float]] = {"without": [], "with": []}
    processes = {how: subprocess.Popen([*command, how], **pipes) for how in taken}
    for _ in range(turns):
        for how, process in processes.items():
            process.stdin.write("go\n")
            process.stdin.flush()
            line = process.stdout.readline()
            while not line.startswith("planned in "):
                line = process.stdout.readline()
            taken[how].append(float(line.removeprefix("planned in ")))
    for process in processes.values():
        process.stdin.close()
        process.wait()
    warm = {how: times[turns // 3 :] for how, times in taken.items()}
    added = [a - b for a, b in zip(warm["with"], warm["without"], strict=True)]
    return statistics.median(warm["without"]), statistics.median(added)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--files", default="10000,100000,1000000", help="numbers of files, separated by commas"
    )
    parser.add_argument("--plan", choices=["with", "without"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plan:
        plan_in_turns(arguments.plan == "with")
        return 0
    fine = grown([int(size) for size in arguments.files.split(",")])
    without, added = overhead(turns=24)
    print(f"planning a query on an unindexed table: {without:.2f} ms without the extension, "
          f"{added:+.2f} ms with it")  # fmt: skip
    fine &= added <= OVERHEAD
    print("within the targets" if fine else "a target was missed")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
