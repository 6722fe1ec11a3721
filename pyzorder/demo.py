"""Measures queries on TPC-DS store_sales before and after OPTIMIZE … ZORDER BY (`make demo`).

Generates store_sales at scale factor 1 (2,880,404 rows), writes it as an ordinary catalog table,
runs queries for single values, ranges and boxes, optimizes the table, runs the queries again, and
prints one table of results. Finally, runs three of the queries in DuckDB and Polars. Writes only to
the folder demo-output.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import pyzorder
from pyzorder import bridge, plot
from pyzorder.engines import demo_lookups
from pyzorder.pictures.themes import themed_svg
from pyzorder.text.wording import counted, size

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import DataFrame, SparkSession

OUTPUT = Path("demo-output")
COLUMNS = ("ss_customer_sk", "ss_cdemo_sk")
LOG = OUTPUT / "spark.log"
ROWS = 2_880_404
FILES = 100
LOOKUP = 49_969

console = Console(highlight=False, width=None if sys.stdout.isatty() else 80)


@dataclass(frozen=True)
class Query:
    """A query that runs before and after the OPTIMIZE."""

    name: str
    predicate: str


@dataclass(frozen=True)
class Answer:
    """The result of a query (row count and checksum over all columns), and its cost."""

    rows: int
    checksum: str
    opened: int
    total: int
    seconds: float


def queries(lowest: tuple[int, int], highest: tuple[int, int]) -> list[Query]:
    """Returns lookups of two values, ranges that span 1% of a column's values, and boxes that span
    10% of each column's values.

    The looked-up values come from an article on Z-ordering in Impala.
    """
    (a, b), spans = COLUMNS, [high - low for low, high in zip(lowest, highest, strict=True)]

    def between(column: int, start: float, share: float) -> str:
        first = lowest[column] + round(spans[column] * start)
        return f"{COLUMNS[column]} BETWEEN {first} AND {first + round(spans[column] * share)}"

    points = [Query(f"{a} = {LOOKUP}", f"{a} = {LOOKUP}"), Query(f"{b} = 961370", f"{b} = 961370")]
    ranges = [Query(f"1% of {COLUMNS[i]}", between(i, 0.4, 0.01)) for i in (0, 1)]
    boxes = [
        Query(f"10% x 10% at {x:.0%}, {y:.0%}", f"{between(0, x, 0.1)} AND {between(1, y, 0.1)}")
        for x, y in [(0.12, 0.12), (0.45, 0.45), (0.7, 0.25), (0.23, 0.81)]
    ]
    return [*points, *ranges, *boxes]


@contextmanager
def step(what: str) -> Iterator[None]:
    """Shows that a step is running and, once it is done, how long it took."""
    started = time.perf_counter()
    columns = SpinnerColumn(), TextColumn("{task.description} …"), TimeElapsedColumn()
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as progress:
        progress.add_task(what)
        yield
    console.print(f"[green]✓[/green] {what} [dim]{time.perf_counter() - started:.1f} s[/dim]")


def connect(benchmark: str, database: Path | None = None) -> DuckDBPyConnection:
    """Opens a DuckDB database, by default in memory, with the extension `tpcds` or `tpch`, which
    generates the benchmark's data."""
    import duckdb

    package = importlib.import_module(f"duckdb_extension_{benchmark}").__path__[0]
    extension = Path(
        package, "extensions", f"v{duckdb.__version__}", f"{benchmark}.duckdb_extension"
    )
    connection = duckdb.connect(
        str(database or ":memory:"), config={"allow_unsigned_extensions": "true"}
    )
    connection.execute(f"LOAD '{extension}'")
    return connection


def generate(*paths: Path, scale: float = 1) -> None:
    """Generates TPC-DS tables as Parquet files named after the tables, unless all of these files
    exist."""
    if all(path.exists() for path in paths):
        return
    with connect("tpcds") as connection:
        connection.execute(f"CALL dsdgen(sf = {scale:g})")
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".partial")
            connection.execute(f"COPY {path.stem} TO '{partial}' (FORMAT parquet)")
            partial.rename(path)


def start_spark(memory: str = "2g", options: Mapping[str, str] | None = None) -> SparkSession:
    """Starts a local Spark session with pyzorder and further options. Its tables and log are in the
    output folder."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[*]")
        .appName("pyzorder demo")
        .config("spark.driver.memory", memory)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", str((OUTPUT / "warehouse").absolute()))
    )
    for key, value in (options or {}).items():
        builder = builder.config(key, value)
    builder = pyzorder.configure(builder)
    if bridge.running_jvm() is None:
        OUTPUT.mkdir(exist_ok=True)
        with LOG.open("wb") as log:
            try:
                bridge.launch_jvm(builder._options, log)
            except Exception as failure:
                raise SystemExit(
                    f"Spark did not start; see {LOG} for the reason: {failure}"
                ) from failure
    return builder.getOrCreate()


def write_table(spark: SparkSession, source: Path) -> int:
    """Writes the rows in their original order to about 100 files. Returns the size in bytes."""
    folder = OUTPUT / "warehouse" / "store_sales"
    shutil.rmtree(folder, ignore_errors=True)
    rows = spark.read.parquet(str(source))
    rows.write.option("maxRecordsPerFile", ROWS // FILES + 1).saveAsTable("store_sales")
    return sum(file.stat().st_size for file in folder.glob("*.parquet"))


def ask(spark: SparkSession, query: Query) -> Answer:
    """Runs a query over all columns, and records how many files it opens."""
    from pyspark.sql import functions as f

    checksum = f.sum(f.xxhash64("*").cast("decimal(38,0)"))
    matching = spark.table("store_sales").where(query.predicate)
    answer = matching.agg(f.count("*"), checksum)
    scan = pyzorder.explain(answer)[0]
    started = time.perf_counter()
    rows, total = answer.collect()[0]
    seconds = time.perf_counter() - started
    return Answer(rows, str(total), scan.opened, scan.total, seconds)


def ask_all(spark: SparkSession, asked: list[Query]) -> list[Answer]:
    """Runs all queries, after warming up the JVM with the first two."""
    for query in asked[:2]:
        ask(spark, query)
    return [ask(spark, query) for query in asked]


def layout(spark: SparkSession) -> plot.Layout:
    """Reads the table's layout, including which files the first lookup opens."""
    return plot.read(spark, "store_sales", COLUMNS, f"{COLUMNS[0]} = {LOOKUP}")


def value_bounds(spark: SparkSession) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns the lowest and the highest values of the two columns."""
    (a, b) = COLUMNS
    row = spark.sql(f"SELECT min({a}), min({b}), max({a}), max({b}) FROM store_sales").head()
    assert row is not None
    return (row[0], row[1]), (row[2], row[3])


def optimize(spark: SparkSession, written: int) -> DataFrame:
    """Runs OPTIMIZE … ZORDER BY with a hundredth of the table's size as the target file size."""
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", str(written // FILES))
    table = pyzorder.ZOrderTable.forName(spark, "store_sales")
    return table.optimize().executeZOrderBy(*COLUMNS)


def print_answers(asked: list[Query], before: list[Answer], after: list[Answer]) -> None:
    """Prints the results as a table that fits into 80 columns."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title_justify="left", title="Files opened")
    table.add_column("WHERE")
    for name in ("before", "after", "rows", "seconds before", "after"):
        table.add_column(name, justify="right", no_wrap=True)
    for query, old, new in zip(asked, before, after, strict=True):
        table.add_row(
            query.name,
            f"{old.opened} of {old.total}",
            f"[bold]{new.opened}[/bold] of {new.total}",
            f"{new.rows:,}",
            f"{old.seconds:.2f}",
            f"{new.seconds:.2f}",
        )
    console.print(table)


def print_others(asked: list[Query], after: list[Answer]) -> bool:
    """Prints how many files DuckDB and Polars open. Returns whether they find as many rows as
    Spark."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title_justify="left", title="In other engines")
    for name in ("WHERE", "DuckDB", "Polars", "rows"):
        table.add_column(name, justify="left" if name == "WHERE" else "right", no_wrap=True)
    same = True
    for query, answer in zip(asked, after, strict=True):
        found = demo_lookups.ask(OUTPUT / "warehouse" / "store_sales", query.predicate)
        opened = [f"[bold]{one.opened}[/bold] of {answer.total}" for one in found]
        table.add_row(query.name, *opened, f"{found[0].rows:,}")
        same &= all(one.rows == answer.rows for one in found)
    console.print(table)
    return same


def print_metrics(metrics: dict[str, Any]) -> None:
    """Prints what OPTIMIZE did."""
    removed, added = (files_of(metrics[name]) for name in ("filesRemoved", "filesAdded"))
    seconds = (metrics["endTimeMs"] - metrics["startTimeMs"]) / 1000
    console.print(f"OPTIMIZE replaced {removed} with {added} in {seconds:.0f} s.")


def files_of(found: dict[str, Any]) -> str:
    """Formats a number of files and their size, for example as `101 files (133 MiB)`."""
    return f"{counted(found['totalFiles'], 'file')} ({size(found['totalSize'])})"


def main() -> None:
    started = time.perf_counter()
    source = OUTPUT / "store_sales.parquet"
    made = "" if source.exists() else f" and generate {ROWS:,} rows of TPC-DS (about 30 s)"
    with step(f"start Spark{made}"), ThreadPoolExecutor() as pool:
        generated = pool.submit(generate, source)
        spark = start_spark()
        generated.result()
    with step(f"write a table of about {FILES} plain Parquet files, in arrival order"):
        written = write_table(spark, source)
    asked = queries(*value_bounds(spark))
    with step("run the queries before OPTIMIZE"):
        before, layout_before = ask_all(spark, asked), layout(spark)
    with step(f"OPTIMIZE store_sales ZORDER BY ({', '.join(COLUMNS)})"):
        row = optimize(spark, written).head()
    with step("run the queries after OPTIMIZE"):
        after, layout_after = ask_all(spark, asked), layout(spark)
    picture = OUTPUT / "store_sales.png"
    with step(f"draw {picture}"):
        layouts = {"Before": layout_before, "After OPTIMIZE … ZORDER BY": layout_after}
        plot.save(plot.compare(layouts), picture)
        drawn = plot.draw_rectangles(layouts, ranks=False, bare=True)
        picture.with_suffix(".svg").write_text(themed_svg(drawn), encoding="utf-8")
    print_answers(asked, before, after)
    if row is not None:
        print_metrics(row["metrics"].asDict(recursive=True))
    spark.stop()
    same = print_others(asked[:2] + asked[4:5], after[:2] + after[4:5])
    same &= all(
        (a.rows, a.checksum) == (b.rows, b.checksum) for a, b in zip(before, after, strict=True)
    )
    console.print(f"Answers equal: {'[green]yes[/green]' if same else '[red]NO[/red]'}.", end=" ")
    console.print(f"Took {time.perf_counter() - started:.0f} s. Picture: {picture}")
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
