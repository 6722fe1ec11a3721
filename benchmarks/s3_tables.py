"""Measures how long queries take on S3 tables with many files, and counts the requests they send.

    python benchmarks/s3_tables.py [--files 1000,10000,100000] [--seconds 0.1] [--queries 10]

The store is a local server (slow_listings.py). Like S3, it returns listings in pages of at most
1,000 names, and takes about 100 ms for each page. Each file has ten rows, and each query needs the
rows of two files. For each table and each way to read it, a fresh process runs one query after
another. Plain Spark runs only three, because it opens every file in each of them, and is left out
where that would take too long. With `0s`, every query checks that the skipped files have not
changed. With `1h`, queries take the list of files from the index.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).resolve().parent.parent))

import many_files
import slow_listings
from slow_listings import ROWS

from tests.stores import s3, s3_server
from tests.support.processes.servers import free_port, listens, process, wait

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Number of files that a query reads.
READ = 2
FOLDER = "t"

#: Number of queries of plain Spark, and the maximum number of files in its tables.
PLAIN, PLAIN_FILES = 3, 10_000


def start(name: str, port: int) -> SparkSession:
    """Starts a session for one of the ways to read a table. The session's table is called t."""
    from pyspark.sql import SparkSession

    import pyzorder

    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.host", "127.0.0.1")
    )
    for key, value in s3.settings(port).items():
        builder = builder.config(key, value)
    builder = builder if name == "plain Spark" else pyzorder.configure(builder)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    location = f"s3a://{s3_server.BUCKET}/{FOLDER}"
    spark.sql(f"CREATE TABLE t (id BIGINT, v BIGINT) USING parquet LOCATION '{location}'")
    return spark


def run(name: str, port: int, files: int, queries: int) -> list[tuple[float, int, int, int]]:
    """Returns each query's duration in seconds, and how many pages of the table's listing, other
    listings and other requests it needs."""
    endpoint = f"http://127.0.0.1:{port}"
    spark = start(name, port)
    if name.endswith("1h"):
        spark.conf.set(many_files.STALENESS, "1h")
    spark.sql("SELECT sum(id) FROM range(1000)").collect()
    found = []
    for number in range(queries):
        first = number * 7919 % (files - READ + 1) * ROWS
        last = first + READ * ROWS - 1
        s3_server.requests(endpoint)
        begun = time.perf_counter()
        sql = f"SELECT count(*), max(v) FROM t WHERE id BETWEEN {first} AND {last}"
        [(count, greatest)] = spark.sql(sql).collect()
        taken = time.perf_counter() - begun
        assert (count, greatest) == (READ * ROWS, last), (name, count, greatest)
        requests = s3_server.requests(endpoint)
        pages = sum(f"prefix={FOLDER}%2F&" in f"{one}&" for one in requests)
        listings = sum("list-type=2" in one for one in requests)
        found.append((taken, pages, listings - pages, len(requests) - listings))
    spark.stop()
    return found


def rows(sizes: list[int], queries: int, seconds: float) -> Iterator[list[str]]:
    """Yields a row for each table and each way to read it."""
    for files in sizes:
        with tempfile.TemporaryDirectory() as home:
            port = free_port()
            arguments = [str(port), FOLDER, str(files), str(seconds)]
            command = [sys.executable, slow_listings.__file__, *arguments]
            with process(command, Path(home), "s3.log") as server:
                wait(lambda at=port: listens(at), server, Path(home) / "s3.log")
                many_files.child(__file__, "index", port)
                for name in many_files.OURS:
                    is_plain = name == "plain Spark"
                    if is_plain and files > PLAIN_FILES:
                        continue
                    number = PLAIN if is_plain else queries
                    said = many_files.child(__file__, "run", name, port, files, number)
                    found = json.loads(said)
                    times = [found[0][0], found[1][0], statistics.median(f[0] for f in found[2:])]
                    pages = [found[0][1], statistics.median_high(f[1] for f in found[2:])]
                    others = [statistics.median_high(f[i] for f in found[2:]) for i in (2, 3)]
                    yield [
                        f"{files:,}", name, *(f"{1000 * t:,.0f} ms" for t in times),
                        *map(str, pages + others),
                    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--files", default="1000,10000,100000", help="numbers of files, separated by commas"
    )
    parser.add_argument("--queries", type=int, default=10, help="queries for each table")
    parser.add_argument("--seconds", type=float, default=0.1, help="delay per page of a listing")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    match arguments.child:
        case ["index", port]:
            start("pyzorder", int(port)).sql("CREATE SKIPPING INDEX ON t (id, v)").collect()
        case ["run", name, port, files, queries]:
            print(json.dumps(run(name, int(port), int(files), int(queries))))
        case _:
            import report

            sizes = [int(size) for size in arguments.files.split(",")]
            table = [["files", "reader", "first query", "second query", "later queries",
                      "pages, first query", "pages, later query", "other listings",
                      "other requests"]]  # fmt: skip
            for row in rows(sizes, arguments.queries, arguments.seconds):
                table.append(row)
                print(" | ".join(row), flush=True)
            report.write(
                "s3_tables", "Queries on tables with many files on S3",
                f"Each query reads {READ} files. The store waits {1000 * arguments.seconds:.0f} ms "
                "before it returns a page of the listing of the table's folder. The two columns "
                "with `pages` count these pages. The last two columns count the other requests of "
                "a later query. Other listings are those of pyzorder's own folders.",
                table)  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
