"""Measures the overhead of the extension on tiny tables, and on a small table with many files.

    python benchmarks/small_tables.py [--rounds 60]

The tiny tables are optimized and have 3 files of 10 rows each. In a single session, each query is
run in pairs: one run with skipping and one without. The result is the median, over all pairs, of
the ratio of the two times. The same is done with and without recording the workload. The small
table is about 100 MB in size. With the default file size, OPTIMIZE writes it as at most 32 files of
at least 1 MiB each. The time to read the whole table is compared with the time to read the same
rows from one file. The benchmark fails if skipping makes a join MOST times as slow, or if recording
adds MOST_RECORDING milliseconds to a query, in the median over all of them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import datasets
import report
from pyspark.sql import SparkSession

import pyzorder

QUERIES = {
    "lookup": "SELECT * FROM fact WHERE a = {i}",
    "range": "SELECT count(*), max(c) FROM fact WHERE a BETWEEN {i} AND {i} + 3 AND b > 2",
    "whole table": "SELECT sum(c) FROM fact WHERE {i} >= 0",
    "join": "SELECT count(*) FROM fact JOIN dim ON fact.a = dim.a WHERE dim.b = {i}",
    "star join": "SELECT sum(fact.c) FROM fact JOIN dim ON fact.a = dim.a "
    "JOIN dim2 ON fact.b = dim2.a WHERE dim.c = {i} AND dim2.c < 20",
    "join without a filter": "SELECT count(*) FROM fact JOIN dim ON fact.a = dim.a AND {i} >= 0",
    "self join": "SELECT count(*) FROM fact x JOIN fact y ON x.a = y.b WHERE x.c = {i}",
}
SKIPPING = "spark.sql.zorder.skipping.enabled"
RECORDING = "spark.sql.zorder.workload.record"
#: The maximum ratio of a join's time with skipping to its time without skipping.
MOST = 1.05
#: The maximum number of milliseconds that recording the workload may add to a query.
MOST_RECORDING = 1.0


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def figures(taken: list[float], beside: list[float]) -> list[str]:
    """Returns the median of `beside` in milliseconds, and the median ratio of `taken` to
    `beside`."""
    ratio = statistics.median(a / b for a, b in zip(taken, beside, strict=True))
    return [f"{1000 * statistics.median(beside):.1f} ms", f"{ratio:.3f}"]


def write(spark: SparkSession) -> None:
    """Writes the tiny tables."""
    for name in ("fact", "dim", "dim2"):
        spark.range(0, 30, 1, 3).selectExpr(
            "CAST(id AS INT) AS a", "CAST(id * 7 % 30 AS INT) AS b", "CAST(id % 10 AS INT) AS c"
        ).write.saveAsTable(name)
        spark.sql(f"OPTIMIZE {name} ZORDER BY (a, b)")


def pairs(
    spark: SparkSession, setting: str, text: str, rounds: int
) -> tuple[list[float], list[float]]:
    """Runs a query in pairs, with a setting on and off. Returns the times with it and without it,
    except those of the first half of the pairs."""
    taken: dict[str, list[float]] = {"true": [], "false": []}
    for i in range(2 * rounds):
        for on in ("true", "false") if i % 2 else ("false", "true"):
            spark.conf.set(setting, on)
            query = text.format(i=i % 30)
            taken[on].append(seconds(lambda query=query: spark.sql(query).collect()))
    spark.conf.unset(setting)
    return taken["true"][rounds:], taken["false"][rounds:]


def costs(spark: SparkSession, rounds: int) -> list[list[str]]:
    """Returns a row for each query: its time without skipping, and the ratio of its time with
    skipping to its time without skipping."""
    rows = [["query", "without", "with / without"]]
    for name, text in QUERIES.items():
        rows.append([name, *figures(*pairs(spark, SKIPPING, text, rounds))])
        print(" | ".join(rows[-1]), flush=True)
    return rows


def recording(spark: SparkSession, rounds: int) -> tuple[list[list[str]], float]:
    """Returns a row for each query: its time without recording, and the ratio of its time with
    recording to its time without it. Also returns the median difference over all pairs of all
    queries in milliseconds. The differences of a single query vary too much."""
    rows: list[list[str]] = []
    differences: list[float] = []
    for name, text in QUERIES.items():
        taken, beside = pairs(spark, RECORDING, text, rounds)
        added = [1000 * (a - b) for a, b in zip(taken, beside, strict=True)]
        differences += added
        rows.append([f"{name}, recorded", *figures(taken, beside)])
        print(" | ".join(rows[-1]), f"({statistics.median(added):.2f} ms)", flush=True)
    return rows, statistics.median(differences)


def finer(spark: SparkSession, rounds: int) -> list[str]:
    """Returns a row that compares reading lineitem after OPTIMIZE with reading it from one file."""
    rows = datasets.DATASETS[0].read(spark)
    rows.where("l_orderkey % 3 = 0").coalesce(1).write.saveAsTable("one")
    rows.where("l_orderkey % 3 = 0").coalesce(1).write.saveAsTable("cut")
    spark.sql("OPTIMIZE cut ZORDER BY (l_partkey, l_shipdate)")
    files = len(spark.table("cut").inputFiles())
    taken: dict[str, list[float]] = {"one": [], "cut": []}
    for i in range(rounds):
        for table in ("one", "cut") if i % 2 else ("cut", "one"):
            read = spark.table(table).write.format("noop").mode("overwrite")
            taken[table].append(seconds(read.save))
    return [f"reading a whole table from {files} files instead of one",
            *figures(taken["cut"][3:], taken["one"][3:])]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        spark = pyzorder.configure(
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "4g")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", str(Path(folder)))
        ).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        write(spark)
        rows = costs(spark, rounds)
        recorded, added = recording(spark, rounds)
        rows += recorded
        rows.append(finer(spark, max(10, rounds // 3)))
        spark.stop()
    print(" | ".join(rows[-1]))
    report.write(
        "small_tables", "What the extension costs on small tables",
        "The last column is the time with skipping, divided by the time without it. It is the "
        "median over pairs of runs in one session. In the lines with `recorded`, it is the time "
        "with recording the workload, divided by the time without it. The last line compares "
        "reading a table that OPTIMIZE has written with reading the same rows from one file.",
        rows)  # fmt: skip
    worst = max(float(row[2]) for row in rows[1:] if row[0] in QUERIES and "join" in row[0])
    print(f"joins: at most {worst:.3f}; {MOST} is the limit")
    print(f"recording: {added:.2f} ms; {MOST_RECORDING} ms is the limit")
    return 0 if worst <= MOST and added <= MOST_RECORDING else 1


if __name__ == "__main__":
    raise SystemExit(main())
