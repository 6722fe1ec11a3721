"""Measures how the cost of an index grows with the number of files in a table.

    python benchmarks/scale.py [--files 1000,20000,100000,1000000]

The files of a table are hard links, as in many_files.py. For each table, one process creates the
index. A fresh process then runs queries, which take the list of files from the index (maxStaleness
= 1h), plans more queries, appends three files, and runs an OPTIMIZE that merges these. The figures
are the sizes of the index on disk and of the driver's heap, and the times of these steps.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import many_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Number of queries, including the first.
QUERIES = 20
#: Number of files that are appended. The last INSERT is timed, because it changes a loaded index.
APPENDED = 3


def timed(spark: SparkSession, sql: str) -> float:
    """Runs a statement, and returns how many seconds it takes."""
    begun = time.perf_counter()
    spark.sql(sql).collect()
    return time.perf_counter() - begun


def heap(spark: SparkSession) -> int:
    """The number of bytes of the driver's heap that are in use after a garbage collection."""
    memory = spark._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    memory.gc()
    return int(memory.getHeapMemoryUsage().getUsed())


def session(folder: Path, home: Path) -> SparkSession:
    """Starts a session that has the files as table t."""
    spark = many_files.start("pyzorder", home)
    spark.sparkContext.setLogLevel("ERROR")
    spark.sql("SELECT sum(id) FROM range(1000)").collect()
    spark.sql(f"CREATE TABLE t (id BIGINT, v BIGINT) USING parquet LOCATION '{folder}'")
    return spark


def create(folder: Path, home: Path) -> dict[str, float]:
    """Creates the index. Returns its size in bytes, and how many seconds this took."""
    spark = session(folder, home)
    taken = timed(spark, "CREATE SKIPPING INDEX ON t (id, v)")
    spark.stop()
    index = folder / "_zorder" / "_index"
    return {"create": taken, "disk": max(path.stat().st_size for path in index.iterdir())}


def use(folder: Path, home: Path, files: int) -> dict[str, float]:
    """Returns the growth of the heap in bytes, and the seconds that each step takes."""
    spark = session(folder, home)
    spark.conf.set(many_files.STALENESS, "1h")
    before = heap(spark)

    def condition(number: int) -> str:
        return f"id = {number * 7919 % (files // many_files.LINKS) * many_files.ROWS}"

    def query(number: int) -> float:
        return timed(spark, f"SELECT count(*), min(v) FROM t WHERE {condition(number)}")

    def planning(number: int) -> float:
        begun = time.perf_counter()
        plan = spark.sql(f"SELECT v FROM t WHERE {condition(number)}")._jdf.queryExecution()
        plan.toRdd().getNumPartitions()  # selects files and splits them, and starts no job
        return time.perf_counter() - begun

    found = {"first": query(0)}
    found["later"] = statistics.median(query(number) for number in range(1, QUERIES))
    found["planning"] = statistics.median(planning(number) for number in range(QUERIES))
    found["heap"] = heap(spark) - before
    for _ in range(APPENDED):
        found["insert"] = timed(spark, "INSERT INTO t VALUES (-1, 1)")
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", "900")  # only these are smaller
    found["optimize"] = timed(spark, "OPTIMIZE t")
    spark.stop()
    return found


def rows(sizes: list[int]) -> Iterator[list[str]]:
    """Yields a row for each table."""
    with tempfile.TemporaryDirectory() as folder:
        home, source = Path(folder) / "home", Path(folder) / "source"
        many_files.child(many_files.__file__, "source", source, max(sizes) // many_files.LINKS)
        for size in sizes:
            many_files.link(source, home / "files", size // many_files.LINKS)
            steps = [("create", home / "files", home), ("use", home / "files", home, size)]
            found: dict[str, float] = {}
            for step in steps:
                found |= json.loads(many_files.child(__file__, *step))
            shutil.rmtree(home)
            yield [
                f"{size:,}", *(f"{found[name] / 2**20:,.1f} MiB" for name in ("disk", "heap")),
                *(f"{found[name]:,.2f} s"
                  for name in ("create", "first", "later", "planning", "insert", "optimize")),
            ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--files", default="1000,20000,100000,1000000", help="numbers of files, with commas"
    )
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    match arguments.child:
        case ["create", folder, home]:
            print(json.dumps(create(Path(folder), Path(home))))
        case ["use", folder, home, files]:
            print(json.dumps(use(Path(folder), Path(home), int(files))))
        case _:
            import report

            table = [["files", "index on disk", "driver's heap", "CREATE SKIPPING INDEX",
                      "first query", "later queries", "planning", "INSERT",
                      "OPTIMIZE"]]  # fmt: skip
            for row in rows([int(size) for size in arguments.files.split(",")]):
                table.append(row)
                print(" | ".join(row), flush=True)
            report.write(
                "scale", "How the cost of an index grows",
                f"Each query reads {many_files.LINKS} files and takes the list of files from the "
                "index (`maxStaleness = 1h`). The heap is what a fresh driver holds after "
                f"{2 * QUERIES} queries, compared with before the first. `planning` is the time "
                "from a query's text to its tasks, after the first query. INSERT appends one file. "
                f"OPTIMIZE merges {APPENDED} small files.",
                table)  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
