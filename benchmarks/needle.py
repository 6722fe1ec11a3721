"""Measures lookups by columns that a table is not clustered by.

    python benchmarks/needle.py [--files 1000] [--rows 20000] [--queries 20] [--peers]

Every row has a UUID, an e-mail address and a device in a VARIANT, all of them unique. OPTIMIZE
Z-orders the table by two other columns. The index has sketches of the UUID, of the address in lower
case, and of the device. The same rows are also written with Parquet's own Bloom filters of the UUID
and the address, for plain Spark. Each figure is the mean, and each time the median, over all
queries after the first two. `bytes` counts everything that the process reads.

With --peers, Hudi writes the same rows with its record index of the UUID and its Bloom filter index
of the address in lower case (see needle_hudi.py).

A lookup may open the files that contain a value, and 1% of the other files. The sketches of a
column may take 2% of the data's size, which is twice the default because the rows are short, and
finding the files of one value 20 ms and 1 MB. OPTIMIZE with sketches may take 5% longer than
without. The benchmark fails if one of these limits is exceeded.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers
import report
from datasets import size_of
from many_files import child
from pyspark.sql import DataFrame, SparkSession

import pyzorder
from pyzorder import demo

INDEXED = ("k1", "k2", "uid", "lower(email)", "variant_get(event, '$.device', 'string')")
#: The indexed columns with sketches.
SKETCHED = INDEXED[2:]

BUDGET = "spark.sql.zorder.index.sketchBudget"
TARGET = "spark.sql.zorder.optimize.targetFileSize"
SKIPPING = "spark.sql.zorder.skipping.enabled"

#: The limits described above: shares of files, of the data's size and of OPTIMIZE's time, and the
#: milliseconds and bytes of finding the files of one value.
OPENED, SIZE, LONGER, MILLISECONDS, BYTES = 0.01, 0.02, 1.05, 20, 1 << 20

#: The numbers of queries that are not measured, of pairs of OPTIMIZE, and of files in these pairs.
WARM, PAIRS, COMPARED = 2, 5, 100

#: Who answers the queries.
OURS, PARQUET, HUDI = "pyzorder", "Parquet's Bloom filters", "Hudi 1.2.0"
ALL = (OURS, PARQUET, HUDI)

#: The number of files in which the rows are written at first.
TASKS = 16

#: The number of values in IN, and of keys in a join.
LISTED, JOINED = 100, 1000


def start_spark(home: Path) -> SparkSession:
    """Starts a session whose tables lie in the folder `home`."""
    spark = pyzorder.configure(
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "8g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.warehouse.dir", str(home))
    ).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def value(name: str, row: str) -> str:
    """Returns SQL for the value of a column in a row, which is given by its number as SQL."""
    digest = f"md5(concat('{name}', {row}))"
    match name:
        case "uid":
            parts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
            return f"concat_ws('-', {', '.join(f'substr({digest}, {a}, {n})' for a, n in parts)})"
        case "email":
            return f"concat('User.', substr({digest}, 1, 20), '@Example.org')"
        case _:
            return digest


def rows_of(spark: SparkSession, rows: int, tasks: int, with_event: bool = True) -> DataFrame:
    """Returns the rows in an order that no column follows."""
    columns = [
        "CAST(pmod(xxhash64(id, 1), 100000) AS INT) AS k1",
        "CAST(pmod(xxhash64(id, 2), 100000) AS INT) AS k2",
        f"{value('uid', 'id')} AS uid",
        f"{value('email', 'id')} AS email",
    ]
    device = f"""concat('{{"device":"', {value("device", "id")}, '","n":', id % 1000, '}}')"""
    event = [f"parse_json({device}) AS event"] if with_event else []
    return spark.range(0, rows, 1, tasks).selectExpr(*columns, *event)


def index(spark: SparkSession, folder: Path) -> None:
    """Creates an index without sketches. The next OPTIMIZE adds the sketches."""
    spark.conf.set(BUDGET, "0")
    spark.sql(f"CREATE SKIPPING INDEX ON '{folder}' ({', '.join(INDEXED)})").collect()
    spark.conf.unset(BUDGET)


def optimize(spark: SparkSession, folder: Path, files: int) -> float:
    """Runs OPTIMIZE, and returns how many seconds it takes."""
    spark.conf.set(TARGET, str(size_of(folder) // files))
    begun = time.perf_counter()
    spark.sql(f"OPTIMIZE '{folder}' FULL ZORDER BY (k1, k2)").collect()
    return time.perf_counter() - begun


def building(spark: SparkSession, home: Path, rows: int) -> float:
    """Returns the time of OPTIMIZE with sketches, divided by its time without them. It is the
    median over PAIRS pairs."""
    rows_of(spark, COMPARED * rows, TASKS).write.parquet(str(home / "rows"))
    ratios = []
    for number in range(PAIRS + 1):
        taken = {}
        for budget in ("0", str(SIZE)) if number % 2 else (str(SIZE), "0"):
            folder = home / "copy"
            shutil.copytree(home / "rows", folder)
            index(spark, folder)
            spark.conf.set(BUDGET, budget)
            taken[budget] = optimize(spark, folder, COMPARED)
            spark.conf.unset(BUDGET)
            shutil.rmtree(folder)
        ratios.append(taken[str(SIZE)] / taken["0"])
    return statistics.median(ratios[1:])


def copy_with_bloom_filters(spark: SparkSession, source: Path, folder: Path, rows: int) -> None:
    """Writes each file of a table to another folder, with Bloom filters of `uid` and `email`."""
    spark.conf.set("spark.sql.files.openCostInBytes", str(1 << 40))  # one file per task
    writer = spark.read.parquet(str(source)).write
    for column in ("uid", "email"):
        writer = writer.option(f"parquet.bloom.filter.enabled#{column}", "true")
        writer = writer.option(f"parquet.bloom.filter.expected.ndv#{column}", str(rows))
    writer.parquet(str(folder))
    spark.conf.unset("spark.sql.files.openCostInBytes")


def lay_out(spark: SparkSession, home: Path, files: int, rows: int) -> dict[str, float]:
    """Writes the tables `t`, with sketches, and `bloom`, with Bloom filters. Returns the sizes of
    the sketches as shares of the data's size."""
    table = home / "t"
    rows_of(spark, files * rows, TASKS).write.parquet(str(table))
    index(spark, table)
    spark.conf.set(BUDGET, str(SIZE))
    optimize(spark, table, files)
    copy_with_bloom_filters(spark, table, home / "bloom", rows)
    described = spark.sql(f"DESCRIBE SKIPPING INDEX ON '{table}'").collect()
    return {
        row.column: row.sketch_bytes / size_of(table) for row in described if row.column in SKETCHED
    }


@dataclass(frozen=True)
class Query:
    """A kind of query.

    Attributes:
        condition: SQL in which `{}` stands for the values, or `JOIN keys`, a table of the values.
        column: the column to which the values belong; see `value`.
        values: how many values each query looks for.
        present: whether there are rows with the values.
        readers: who can answer the query without opening all files.
    """

    name: str
    condition: str
    column: str
    values: int = 1
    present: bool = True
    readers: tuple[str, ...] = (OURS,)


QUERIES = [
    Query("uid = value", "WHERE uid = {}", "uid", readers=ALL),
    Query("uid = absent value", "WHERE uid = {}", "uid", present=False, readers=ALL),
    Query(f"uid IN ({LISTED} values)", "WHERE uid IN ({})", "uid", LISTED, readers=ALL),
    Query("lower(email) = value", "WHERE lower(email) = lower({})", "email", readers=(OURS, HUDI)),
    Query("variant_get(…) = value", f"WHERE {SKETCHED[2]} = {{}}", "device"),
    Query(f"join with {JOINED:,} keys", "JOIN keys ON uid = key", "uid", JOINED),
]


@dataclass(frozen=True)
class Cost:
    """What a query opens and reads.

    Attributes:
        holding: the number of files with a matching row.
        bytes: the bytes that the process reads.
        milliseconds: how long it takes to find the files to open.
        found_by: the bytes that are read to find these files.
    """

    opened: float
    holding: float
    seconds: float
    bytes: float
    milliseconds: float
    found_by: float


def bytes_read(spark: SparkSession) -> int:
    """Returns how many bytes the process has read through Hadoop."""
    jvm: Any = spark._jvm
    return sum(s.getBytesRead() for s in jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics())


def scan_of(node: Any) -> Any:
    """Returns the scan with skipping in an executed plan, or any scan of files."""
    match node.nodeName():
        case "AdaptiveSparkPlan":
            return scan_of(node.executedPlan())
        case name if name.endswith("QueryStage"):
            return scan_of(node.plan())
        case name if name.startswith("Scan") and node.metrics().contains("numFiles"):
            return node
    children = node.children()
    found = (scan_of(children.apply(i)) for i in range(children.size()))
    return next((scan for scan in found if scan is not None), None)


def text_of(spark: SparkSession, query: Query, number: int, total: int) -> str:
    """Returns FROM and WHERE of a query, and creates the view `keys`. Queries with different
    numbers look for different values."""
    numbers = [
        (number * query.values + i) * 7919 % total + (0 if query.present else total)
        for i in range(query.values)
    ]
    keys = ", ".join(f"({n})" for n in numbers)
    spark.sql(
        f"SELECT {value(query.column, 'n')} AS key FROM VALUES {keys} AS v(n)"
    ).createOrReplaceTempView("keys")
    values = ", ".join(f"'{row.key}'" for row in spark.table("keys").collect())
    return f"FROM t {query.condition.format(values)}"


def ask(spark: SparkSession, query: Query, queries: int, total: int) -> Iterator[Cost]:
    """Runs a kind of query several times on the view `t`, and yields the cost of each run. The
    cost of finding the files is that of another query of this kind, which is only explained."""
    for number in range(queries):
        text = text_of(spark, query, number, total)
        before, begun = bytes_read(spark), time.perf_counter()
        frame = spark.sql(f"SELECT count(*), count(DISTINCT file_name) {text}")
        [(count, holding)] = frame.collect()
        taken, read = time.perf_counter() - begun, bytes_read(spark) - before
        assert count == (query.values if query.present else 0), (query.name, count)
        metrics = scan_of(frame._jdf.queryExecution().executedPlan()).metrics()
        finding, found_by = 0.0, 0
        if spark.conf.get(SKIPPING, "false") == "true":
            other = text_of(spark, query, queries + number, total)
            before = bytes_read(spark)
            [scan] = pyzorder.explain(spark.sql(f"SELECT file_name {other}"))
            finding, found_by = scan.details["milliseconds"], bytes_read(spark) - before
        yield Cost(metrics.apply("numFiles").value(), holding, taken, read, finding, found_by)


def summary(costs: Sequence[Cost]) -> Cost:
    """Returns the mean of each cost, and the median of each time, without the first queries."""
    later = costs[WARM:]
    return Cost(
        statistics.mean(c.opened for c in later),
        statistics.mean(c.holding for c in later),
        statistics.median(c.seconds for c in later),
        statistics.mean(c.bytes for c in later),
        statistics.median(c.milliseconds for c in later),
        statistics.mean(c.found_by for c in later),
    )


def exceeded(query: Query, cost: Cost, files: int) -> Iterator[str]:
    """Describes the limits that a kind of query exceeds."""
    if cost.opened > cost.holding + OPENED * files:
        yield f"{query.name}: opens {cost.opened:.1f} files"
    if query.values == 1 and cost.milliseconds > MILLISECONDS:
        yield f"{query.name}: takes {cost.milliseconds:.0f} ms to find the files"
    if query.values == 1 and cost.found_by > BYTES:
        yield f"{query.name}: reads {cost.found_by:,.0f} bytes to find the files"


#: A kind of query, who answered it, the number of files, and the cost.
Result = tuple[str, str, int, Cost]


def results(spark: SparkSession, reader: str, files: int, rows: int, queries: int) -> list[Result]:
    """Runs all kinds of queries that the reader can answer on the view `t`."""
    found = []
    for query in QUERIES:
        if reader in query.readers:
            cost = summary(list(ask(spark, query, queries, files * rows)))
            found.append((query.name, reader, len(spark.table("t").inputFiles()), cost))
            print(" | ".join(shown(*found[-1])), flush=True)
    return found


def shown(query: str, reader: str, files: int, cost: Cost) -> list[str]:
    """Returns a row of the results."""
    finding = reader == OURS
    return [
        query, reader, f"{cost.holding:.1f}", f"{cost.opened:.1f}", f"{files:,}",
        f"{1000 * cost.seconds:,.0f} ms", f"{cost.bytes / 1e6:,.1f} MB",
        f"{cost.milliseconds:.0f} ms" if finding else "-",
        f"{cost.found_by / 1e6:.2f} MB" if finding else "-",
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=20_000, help="rows per file")
    parser.add_argument("--queries", type=int, default=20, help="queries of each kind")
    parser.add_argument("--peers", action="store_true", help="also measure Hudi")
    arguments = parser.parse_args()
    files, rows, queries = arguments.files, arguments.rows, arguments.queries
    demo.OUTPUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=demo.OUTPUT) as folder:
        home = Path(folder).resolve()
        spark = start_spark(home)
        longer = building(spark, home, rows)
        sizes = lay_out(spark, home, files, rows)
        found = []
        for reader, path in ((OURS, "t"), (PARQUET, "bloom")):
            read = spark.read.parquet(str(home / path)).select("*", "_metadata.file_name")
            read.createOrReplaceTempView("t")
            spark.conf.set(SKIPPING, str(reader == OURS).lower())
            found += results(spark, reader, files, rows, queries)
        spark.stop()
    if arguments.peers:
        environment = peers.PEERS[HUDI].environment
        script = Path(__file__).with_name("needle_hudi.py")
        said = child(str(script), str(files), rows, queries, environment=environment)
        found += [(*result[:3], Cost(**result[3])) for result in json.loads(said)]
    header = ["query", "reader", "files with a match", "files opened", "of", "time", "bytes read",
              "finding the files", "bytes read for it"]  # fmt: skip
    shares = ", ".join(f"{100 * share:.2f}% for `{column}`" for column, share in sizes.items())
    report.write(
        "needle", "Lookups by columns that a table is not clustered by",
        "The last two columns show how much of the time and of the bytes is needed to find the "
        f"files. The sketches take these shares of the data's size: {shares}. "
        f"OPTIMIZE of {COMPARED} files with sketches takes {longer:.3f} times as long as without.",
        [header, *(shown(*result) for result in found)])  # fmt: skip
    problems = (
        [f"OPTIMIZE with sketches takes {longer:.3f} times as long"] if longer > LONGER else []
    )
    problems += [f"the sketches of {c} take {s:.2%}" for c, s in sizes.items() if s > SIZE]
    by_name = {query.name: query for query in QUERIES}
    for name, reader, number, cost in found:
        if reader == OURS:
            problems += exceeded(by_name[name], cost, number)
    for problem in problems:
        print(f"limit exceeded: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
