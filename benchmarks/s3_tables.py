"""Measures how long queries take on S3 tables with many files, and counts the requests they send.

    python benchmarks/s3_tables.py [--files 10000,100000] [--seconds 0.1] [--queries 100]
                                   [--peers]

The store is a local server (slow_listings.py). Like S3, it returns listings in pages of at most
1,000 names, and takes about 100 ms for each page. Each file has ten rows, and each query needs the
rows of two files. For each table and each way to read it, a fresh process runs one query after
another. Plain Spark runs only three, because it opens every file in each of them, and is left out
where that would take too long. With `0s`, every query checks that the skipped files have not
changed. With `1h`, queries take the list of files from the index.

With --peers, Delta and Iceberg also read the same files, as in many_files.py, with their metadata
in the same store. They are left out where converting the files would take too long.
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

LOCATION = f"s3a://{s3_server.BUCKET}/{FOLDER}"

#: Number of queries of plain Spark, and the maximum number of files in tables that plain Spark and
#: the peers, and pyzorder in their environments, read.
PLAIN, OTHERS_FILES = 3, 10_000


def start(name: str, port: int, home: Path) -> SparkSession:
    """Starts a session for one of the ways to read a table."""
    import peers
    from pyspark.sql import SparkSession

    import pyzorder

    if name in peers.READERS:
        warehouse = {"spark.sql.catalog.peer.warehouse": f"s3a://{s3_server.BUCKET}/peer"}
        settings = {**s3.settings(port), **warehouse}
        return peers.session_builder(peers.READERS[name], str(home), settings).getOrCreate()
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(home))
    )
    for key, value in s3.settings(port).items():
        builder = builder.config(key, value)
    return (builder if name == "plain Spark" else pyzorder.configure(builder)).getOrCreate()


def run(name: str, port: int, home: Path, files: int, queries: int) -> list[list[float]]:
    """Returns each query's duration in seconds, and how many pages of the table's listing, other
    listings and other requests it needs."""
    endpoint = f"http://127.0.0.1:{port}"
    spark = start(name, port, home)
    spark.sparkContext.setLogLevel("ERROR")
    table = many_files.register(spark, name, LOCATION)
    spark.sql("SELECT sum(id) FROM range(1000)").collect()
    found = []
    for number in range(queries):
        first = number * 7919 % (files - READ + 1) * ROWS
        last = first + READ * ROWS - 1
        s3_server.requests(endpoint)
        begun = time.perf_counter()
        sql = f"SELECT count(*), max(v) FROM {table} WHERE id BETWEEN {first} AND {last}"
        [(count, greatest)] = spark.sql(sql).collect()
        taken = time.perf_counter() - begun
        assert (count, greatest) == (READ * ROWS, last), (name, count, greatest)
        requests = s3_server.requests(endpoint)
        pages = sum(f"prefix={FOLDER}%2F&" in f"{one}&" for one in requests)
        listings = sum("list-type=2" in one for one in requests)
        found.append([taken, pages, listings - pages, len(requests) - listings])
    spark.stop()
    return found


def rows(sizes: list[int], queries: int, seconds: float, with_peers: bool) -> Iterator[list[str]]:
    """Yields a row for each table and each way to read it."""
    import peers

    # The peers come last, because pyzorder does not read a table of Delta's.
    ways = sorted(
        many_files.ways(many_files.OURS, with_peers), key=lambda way: way[0] in peers.READERS
    )
    for files in sizes:
        with tempfile.TemporaryDirectory() as home:
            port = free_port()
            arguments = [str(port), FOLDER, str(files), str(seconds)]
            command = [sys.executable, slow_listings.__file__, *arguments]
            with process(command, Path(home), "s3.log") as server:
                wait(lambda at=port: listens(at), server, Path(home) / "s3.log")
                many_files.child(__file__, "prepare", many_files.OURS[-1], port, home)
                for name, peer in ways:
                    is_plain, is_peer = name == many_files.OURS[0], name in peers.READERS
                    if (is_plain or peer) and files > OTHERS_FILES:
                        continue
                    environment = peer.environment if peer else None
                    if is_peer:
                        many_files.child(
                            __file__, "prepare", name, port, home, environment=environment
                        )
                    number = PLAIN if is_plain else queries
                    said = many_files.child(
                        __file__, "run", name, port, home, files, number, environment=environment
                    )
                    found = json.loads(said)
                    later = found[2:][-many_files.LAST :]
                    times = [found[0][0], found[1][0], statistics.median(f[0] for f in later)]
                    pages = [found[0][1], statistics.median_high(f[1] for f in later)]
                    others = [statistics.median_high(f[i] for f in later) for i in (2, 3)]
                    yield [
                        f"{files:,}", f"{name} (Spark {peer.spark})" if peer else name,
                        *(f"{1000 * t:,.0f} ms" for t in times), *map(str, pages + others),
                    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--files", default="10000,100000", help="numbers of files, separated by commas"
    )
    parser.add_argument("--queries", type=int, default=100, help="queries for each table")
    parser.add_argument("--seconds", type=float, default=0.1, help="delay per page of a listing")
    parser.add_argument(
        "--peers", action="store_true", help="also read the files with Delta and Iceberg"
    )
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    match arguments.child:
        case ["prepare", name, port, home]:
            many_files.convert(start(name, int(port), Path(home)), name, LOCATION)
        case ["run", name, port, home, files, queries]:
            print(json.dumps(run(name, int(port), Path(home), int(files), int(queries))))
        case _:
            import report

            sizes = [int(size) for size in arguments.files.split(",")]
            table = [["files", "reader", "first query", "second query", "hundredth query",
                      "pages, first query", "pages, hundredth query", "other listings",
                      "other requests"]]  # fmt: skip
            for row in rows(sizes, arguments.queries, arguments.seconds, arguments.peers):
                table.append(row)
                print(" | ".join(row), flush=True)
            report.write(
                "s3_tables", "Queries on tables with many files on S3",
                f"Each query reads {READ} files. The store waits {1000 * arguments.seconds:.0f} ms "
                "before it returns a page of the listing of the table's folder. The two columns "
                "with `pages` count these pages. The last two columns count the other requests of "
                "the hundredth query. Other listings are those of pyzorder's, Delta's or Iceberg's "
                f"own folders. `hundredth query` has the medians of the last {many_files.LAST} of "
                f"{arguments.queries} queries; plain Spark runs only {PLAIN} queries.",
                table)  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
