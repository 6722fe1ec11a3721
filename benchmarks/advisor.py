"""Measures whether the advisor finds the best columns for a workload, and how many bytes these
columns save.

    python benchmarks/advisor.py [--scale 1] [--files 100]

The workloads read TPC-DS store_sales. Most queries in a workload filter by one or two columns, and
a few filter by other columns. The advisor is given half of the statements, and the benchmark
follows its recommendation. pyzorder.explain then reports the total size of the files that the
statements of the other half would open. Prints a table, and writes it to
benchmarks/results/advisor.md.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import report
from datasets import size_of
from pyspark.sql import SparkSession

import pyzorder
from pyzorder import demo
from pyzorder.advisor import advise
from pyzorder.advisor.advice import Advice

FIRST_DAY, LAST_DAY = 2450816, 2452642
STATEMENTS = 80
SELECT = "SELECT count(*), sum(ss_net_paid) FROM store_sales"
DATE = "JOIN date_dim ON ss_sold_date_sk = d_date_sk"


def customer(draw: random.Random) -> str:
    """Returns a query that looks up a customer."""
    return f"{SELECT} s WHERE s.ss_customer_sk = {draw.randrange(1, 100_000)}"


def days(draw: random.Random) -> str:
    """Returns a query that selects one to four weeks by date key."""
    first = draw.randrange(FIRST_DAY, LAST_DAY - 28)
    return f"{SELECT} WHERE ss_sold_date_sk BETWEEN {first} AND {first + draw.randrange(6, 28)}"


def month(draw: random.Random) -> str:
    """Returns a query that selects a month through a join."""
    return (
        f"{SELECT} {DATE} WHERE d_year = {draw.randrange(1998, 2003)} "
        f"AND d_moy = {draw.randrange(1, 13)}"
    )


def demographics(draw: random.Random) -> str:
    """Returns a query that filters by two demographic keys."""
    keys = ", ".join(str(draw.randrange(1, 1_920_800)) for _ in range(2))
    return f"{SELECT} WHERE ss_cdemo_sk IN ({keys})"


def item(draw: random.Random) -> str:
    """Returns a query that looks up an item through a CTE."""
    return (
        "WITH sold AS (SELECT ss_item_sk AS item, ss_quantity FROM store_sales) "
        f"SELECT sum(ss_quantity) FROM sold WHERE item = {draw.randrange(1, 18_000)}"
    )


def paid(draw: random.Random) -> str:
    """Returns a query for a range that includes almost all rows."""
    return f"{SELECT} WHERE ss_net_paid > {draw.randrange(0, 500)}"


def everything(draw: random.Random) -> str:
    """Returns a query without a filter."""
    return f"{SELECT} -- {draw.random()}"


@dataclass(frozen=True)
class Planted:
    """A workload whose best clustering columns are known.

    Attributes:
        questions: functions that each return a random statement, and the percentage of the
            workload's statements that each function contributes.
        columns: the columns that the advisor should find.
    """

    name: str
    questions: dict[Callable[[random.Random], str], int]
    columns: frozenset[str]

    def statements(self, seed: int) -> list[str]:
        """Returns random statements. Each function contributes its share of the statements."""
        draw = random.Random(seed)
        return [
            question(draw)
            for question, share in self.questions.items()
            for _ in range(round(STATEMENTS * share / 100))
        ]


WORKLOADS = [
    Planted(
        "customers and days",
        {customer: 50, days: 28, month: 10, demographics: 4, item: 4, paid: 4},
        frozenset({"ss_customer_sk", "ss_sold_date_sk"}),
    ),
    Planted(
        "items and demographics",
        {item: 50, demographics: 40, customer: 4, days: 3, everything: 3},
        frozenset({"ss_item_sk", "ss_cdemo_sk"}),
    ),
    Planted(
        "items alone",
        {item: 90, paid: 5, everything: 5},
        frozenset({"ss_item_sk"}),
    ),
    Planted(
        "nothing that helps",
        {paid: 50, everything: 50},
        frozenset(),
    ),
]


def write_table(spark: SparkSession, source: Path, files: int) -> None:
    """Writes store_sales in its original order to about `files` files, and indexes the files."""
    folder = demo.OUTPUT / "warehouse" / "store_sales"
    spark.sql("DROP TABLE IF EXISTS store_sales")
    shutil.rmtree(folder, ignore_errors=True)
    rows = spark.read.parquet(str(source / "store_sales.parquet"))
    rows.write.option("maxRecordsPerFile", rows.count() // files + 1).saveAsTable("store_sales")
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", str(size_of(folder) // files))
    spark.sql("CREATE SKIPPING INDEX ON store_sales")


def opened(spark: SparkSession, statements: list[str]) -> float:
    """Returns the total size of the store_sales files that a statement opens, averaged over the
    statements."""
    total = 0
    for statement in statements:
        df = spark.sql(statement)
        if "JOIN" in statement:  # the explanation includes join keys only after the query has run
            df.collect()
        (scan,) = (scan for scan in pyzorder.explain(df) if scan.table == "store_sales")
        total += scan.details["selectedBytes"]
    return total / len(statements)


def measure(
    spark: SparkSession, workload: Planted, source: Path, files: int
) -> tuple[list[str], bool]:
    """Returns the table row for a workload, and whether the recommendation is as expected."""
    write_table(spark, source, files)
    seen, held_back = workload.statements(1), workload.statements(2)
    advice: Advice = advise(spark, "store_sales", seen)
    print(f"\n{workload.name}\n{advice}\n", flush=True)
    before = opened(spark, held_back)
    if advice.statement is not None:
        spark.sql(advice.statement)
    after = opened(spark, held_back)
    grown = size_of(demo.OUTPUT / "warehouse" / "store_sales") / advice.bytes
    ratio = before / after
    named = ", ".join(advice.recommended) or "none"
    chosen = (o.bytes_opened for o in advice.layouts if o.columns == advice.recommended)
    foreseen = next(chosen, advice.present.bytes_opened)
    good = frozenset(advice.recommended) == workload.columns
    good = good and (ratio >= 3 or not workload.columns)
    line = [
        workload.name, named, *(f"{size / 2**20:.1f}" for size in (before, after, foreseen)),
        f"{ratio:.1f}", f"{grown:.2f}",
    ]  # fmt: skip
    print("  ".join(line), flush=True)
    return line, good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1, help="TPC-DS scale factor")
    parser.add_argument("--files", type=int, default=100, help="approximate number of files")
    arguments = parser.parse_args()
    source = demo.OUTPUT if arguments.scale == 1 else demo.OUTPUT / f"sf{arguments.scale:g}"
    names = ("store_sales", "date_dim")
    demo.generate(*(source / f"{name}.parquet" for name in names), scale=arguments.scale)
    spark = demo.start_spark()
    shutil.rmtree(demo.OUTPUT / "warehouse" / "date_dim", ignore_errors=True)
    spark.read.parquet(str(source / "date_dim.parquet")).write.saveAsTable("date_dim")
    measured = [measure(spark, workload, source, arguments.files) for workload in WORKLOADS]
    spark.stop()
    header = ["workload", "recommended columns", "MiB opened before", "MiB opened after",
              "predicted MiB", "before / after", "relative table size"]  # fmt: skip
    said = (
        f"The table is `store_sales` of TPC-DS at scale factor {arguments.scale:g}. It is indexed, "
        f"and consists of about {arguments.files} files with the rows in the order in which dsdgen "
        f"generates them. The advisor was given {STATEMENTS} statements of each workload. The "
        f"figures are averages over {STATEMENTS} other statements. The order of rows affects "
        "compression, so the last column shows the size of the whole table afterwards, relative "
        "to its size before. Measured by `make bench-advisor`."
    )
    report.write(
        "advisor",
        "What the advisor's recommendations save",
        said,
        [header, *(m[0] for m in measured)],
    )
    return 0 if all(good for _, good in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
