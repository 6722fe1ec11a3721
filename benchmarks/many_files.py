"""Measures the total time of queries on tables with many files, including listing and planning.

    python benchmarks/many_files.py [--files 1000,20000,100000] [--queries 100] [--peers]

The files of a table are hard links. There are 100 links to each distinct Parquet file, and each
distinct file has 100 rows. Every query reads the 200 links to two of the distinct files. Different
queries read different files, except in the smallest table, where every query reads all 200 files.
For each table and each way to read it, a fresh process runs one query after another. The figures
are the times of the first and the second query, and the median time of the last ten. On large
tables, plain Spark runs only five queries, because it opens every file in each of them.

With --peers, Delta and Iceberg also read the same files, each on the newest Spark version that it
supports (see benchmarks/peers.py). The files are converted for Delta (CONVERT TO DELTA) and added
to an Iceberg table (add_files). Iceberg records minima and maxima only of files whose columns have
field ids, so the files have them. pyzorder is measured again on these Spark versions.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import peers
    from pyspark.sql import SparkSession

#: Number of hard links to each distinct file, and number of rows in the file.
LINKS, ROWS = 100, 100
#: Number of distinct files that each query reads.
READ = 2

#: Number of queries whose median time is the time of the hundredth query.
LAST = 10

#: Number of queries of plain Spark on tables with more than SMALL files.
PLAIN, SMALL = 5, 1000

STALENESS = "spark.sql.zorder.index.maxStaleness"

#: The ways to read a table. `convert` sets up a table for each of them.
OURS = ("plain Spark", "pyzorder, 0s", "pyzorder, 1h")
DELTA, ICEBERG = "Delta 4.4.0", "Iceberg 1.12.0"


def write(spark: SparkSession, folder: Path, distinct: int) -> None:
    """Writes the distinct files."""
    rows = spark.range(0, distinct * ROWS, 1, distinct).selectExpr("id", "-id AS v")
    numbered = [
        rows[name].alias(name, metadata={"parquet.field.id": number})
        for number, name in enumerate(rows.columns, 1)
    ]
    rows.select(numbered).write.parquet(str(folder))


def link(source: Path, folder: Path, distinct: int, first: int = 0) -> None:
    """Fills a folder with LINKS hard links to each distinct file, starting with file `first`."""
    folder.mkdir(parents=True)
    files = sorted(source.glob("*.parquet"))[first : first + distinct]
    for number, file in enumerate(files, first):
        for copy in range(LINKS):
            os.link(file, folder / f"part-{copy:03}-{number:06}.parquet")


def start(name: str, home: Path) -> SparkSession:
    """Starts a session for one of the ways to read a table."""
    import peers
    from pyspark.sql import SparkSession

    import pyzorder

    if name in peers.READERS:
        return peers.session_builder(peers.READERS[name], str(home)).getOrCreate()
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "6g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(home))
    )
    return (builder if name == "plain Spark" else pyzorder.configure(builder)).getOrCreate()


def convert(spark: SparkSession, name: str, location: str) -> None:
    """Sets up the files in a folder as a table for one of the ways to read tables."""
    if name == DELTA:
        spark.sql(f"CONVERT TO DELTA parquet.`{location}`").collect()
    elif name == ICEBERG:
        spark.sql("CREATE TABLE peer.db.t (id BIGINT, v BIGINT) USING iceberg")
        spark.sql(
            "CALL peer.system.add_files(table => 'db.t', parallelism => 2,"
            f" source_table => '`parquet`.`{location}`')"
        ).collect()
    elif name != "plain Spark":
        spark.sql(f"CREATE SKIPPING INDEX ON {register(spark, name, location)} (id, v)").collect()
    spark.stop()


def register(spark: SparkSession, name: str, location: str) -> str:
    """Makes the files in a folder available to queries, and returns the table's name."""
    if name == ICEBERG:
        return "peer.db.t"
    columns = "" if name == DELTA else "(id BIGINT, v BIGINT)"
    provider = "delta" if name == DELTA else "parquet"
    spark.sql(f"CREATE TABLE t {columns} USING {provider} LOCATION '{location}'")
    if name.endswith("1h"):
        spark.conf.set(STALENESS, "1h")
    return "t"


def run(name: str, folder: Path, home: Path, distinct: int, queries: int) -> list[float]:
    """Returns how many seconds each query takes in a session that has not used the table before."""
    spark = start(name, home)
    spark.sparkContext.setLogLevel("ERROR")
    spark.sql("SELECT sum(id) FROM range(1000)").collect()
    table = register(spark, name, str(folder))
    taken = []
    for number in range(queries):
        first = (number * 7919 % (distinct - READ + 1)) * ROWS
        last = first + READ * ROWS - 1
        begun = time.perf_counter()
        rows = spark.sql(
            f"SELECT count(*), min(v) FROM {table} WHERE id BETWEEN {first} AND {last}"
        )
        [(count, least)] = rows.collect()
        taken.append(time.perf_counter() - begun)
        assert (count, least) == (READ * ROWS * LINKS, -last), (name, count, least)
    spark.stop()
    return taken


def child(script: str, what: str, *arguments: object, environment: Path | None = None) -> str:
    """Runs a step of a benchmark script in a fresh process, and returns the last line that the
    step prints. By default, the process uses the current environment."""
    python = [environment / "bin/with-java", environment / "bin/python"] if environment else [
        sys.executable]  # fmt: skip
    said = subprocess.run(
        [*python, script, "--child", what, *map(str, arguments)],
        check=True, stdout=subprocess.PIPE, text=True,
    ).stdout  # fmt: skip
    return said.splitlines()[-1] if said else ""


def measure(
    name: str, source: Path, home: Path, distinct: int, queries: int, environment: Path | None
) -> list[float]:
    """Prepares a table, and returns how many seconds each query on it takes."""
    folder = home / "files"
    link(source, folder, distinct)
    try:
        child(__file__, "prepare", name, folder, home, environment=environment)
        found: list[float] = json.loads(
            child(__file__, "run", name, folder, home, distinct, queries, environment=environment)
        )
        return found
    finally:
        shutil.rmtree(home)


def ways(ours: Sequence[str], with_peers: bool) -> Iterator[tuple[str, peers.Peer | None]]:
    """Yields each way to read tables, with the peer in whose environment it runs. pyzorder also
    runs in the environments of the peers."""
    import peers

    for name in ours:
        yield name, None
    for name, peer in peers.READERS.items() if with_peers else ():
        for way in (*ours[1:], name):
            yield way, peer


def rows(sizes: list[int], queries: int, with_peers: bool) -> Iterator[list[str]]:
    """Yields a row for each table and each way to read it."""
    with tempfile.TemporaryDirectory() as folder:
        home, source = Path(folder) / "home", Path(folder) / "source"
        child(__file__, "source", source, max(sizes) // LINKS)
        for size in [READ * LINKS, *sizes]:
            for name, peer in ways(OURS, with_peers):
                asked = PLAIN if name == OURS[0] and size > SMALL else queries
                environment = peer.environment if peer else None
                taken = measure(name, source, home, size // LINKS, asked, environment)
                shown = f"{name} (Spark {peer.spark})" if peer else name
                later = statistics.median(taken[2:][-LAST:])
                yield [f"{size:,}", shown, *(f"{1000 * t:,.0f} ms" for t in (*taken[:2], later))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--files", default="1000,20000,100000", help="numbers of files, separated by commas"
    )
    parser.add_argument("--queries", type=int, default=100, help="queries for each table")
    parser.add_argument(
        "--peers", action="store_true", help="also read the files with Delta and Iceberg"
    )
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    match arguments.child:
        case ["source", folder, distinct]:
            spark = start("plain Spark", Path(folder).parent)
            write(spark, Path(folder), int(distinct))
        case ["prepare", name, folder, home]:
            convert(start(name, Path(home)), name, folder)
        case ["run", name, folder, home, distinct, queries]:
            print(json.dumps(run(name, Path(folder), Path(home), int(distinct), int(queries))))
        case _:
            import report

            sizes = [int(size) for size in arguments.files.split(",")]
            table = [["files", "reader", "first query", "second query", "hundredth query"]]
            for row in rows(sizes, arguments.queries, arguments.peers):
                table.append(row)
                print(" | ".join(row), flush=True)
            report.write(
                "many_files", "Whole queries on tables with many files",
                f"Each query reads {READ * LINKS} files. `first query` is the first query of a "
                "fresh process. `hundredth query` is the median time of the last ten of "
                f"{arguments.queries} queries. On large tables, plain Spark runs only {PLAIN} "
                "queries; the figure is the median of the last three.",
                table)  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
