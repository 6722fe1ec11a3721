"""Compares ZORDER BY AUTO, which also cuts a table at conditions, with the best columns.

    python benchmarks/auto.py [--files 80] [--queries 32]

The workloads consist of the filters of TPC-H queries on lineitem and of TPC-DS queries on
store_sales, at scale factor 1, with parameters drawn as the specifications say. In one workload,
the filters are on dimensions that store_sales is joined with. A first set of queries is recorded.
For this set, the table is laid out in two ways: by the columns that `advise` finds best, and by
ZORDER BY AUTO. A second set with other parameters judges both layouts by the size of the files that
its queries open. In the perfect layout, the rows that a query selects fill as few files as
possible. Fails if AUTO opens more than 1.02 times as much as the best columns, or if it does not
halve the size for any workload with conditions on several columns. Prints a table, and writes it to
benchmarks/results/auto.md.
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

import report
from datasets import lineitem, size_of
from pyspark.sql import DataFrame, SparkSession

import pyzorder
from pyzorder import bridge, demo
from pyzorder.advisor import advise

MODES = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]
FIRST_DAY, LAST_DAY = 2450816, 2452642

#: AUTO may open this much of what the best columns open, on any workload and on the best one.
MOST, BEST = 1.02, 0.5

Draw = random.Random


def month(draw: Draw, first: int, months: int, long: int) -> tuple[date, date]:
    """A range of `long` months that begins up to `months` months after the start of a year."""
    at = first * 12 + draw.randrange(months)
    return date(at // 12, at % 12 + 1, 1), date((at + long) // 12, (at + long) % 12 + 1, 1)


def between(column: str, days: tuple[date, date]) -> str:
    return f"{column} >= DATE'{days[0]}' AND {column} < DATE'{days[1]}'"


def year(draw: Draw) -> tuple[date, date]:
    first = draw.randrange(1993, 1998)
    return date(first, 1, 1), date(first + 1, 1, 1)


def h1(draw: Draw) -> str:
    return f"l_shipdate <= DATE'{date(1998, 12, 1) - timedelta(draw.randrange(60, 121))}'"


def h4(draw: Draw) -> str:
    return "l_commitdate < l_receiptdate"


def h6(draw: Draw) -> str:
    discount = draw.randrange(2, 10)
    return (
        f"{between('l_shipdate', year(draw))} AND l_quantity < {draw.choice([24, 25])}"
        f" AND l_discount BETWEEN 0.{discount - 1:02d} AND 0.{discount + 1:02d}"
    )


def h12(draw: Draw) -> str:
    first, second = draw.sample(MODES, 2)
    return (
        f"l_shipmode IN ('{first}', '{second}') AND l_commitdate < l_receiptdate"
        f" AND l_shipdate < l_commitdate AND {between('l_receiptdate', year(draw))}"
    )


def h14(draw: Draw) -> str:
    return between("l_shipdate", month(draw, 1993, 60, 1))


def h15(draw: Draw) -> str:
    return between("l_shipdate", month(draw, 1993, 58, 3))


def h19(draw: Draw) -> str:
    ranges = " OR ".join(
        f"l_quantity BETWEEN {low} AND {low + 10}"
        for low in (draw.randint(1, 10), draw.randint(10, 20), draw.randint(20, 30))
    )
    return (
        f"l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON' AND ({ranges})"
    )


def ds9(draw: Draw) -> str:
    low = draw.choice([1, 21, 41, 61, 81])
    return f"ss_quantity BETWEEN {low} AND {low + 19}"


def ds28(draw: Draw) -> str:
    low = draw.choice([0, 6, 11, 16, 21, 26])
    price, coupon, cost = draw.randint(0, 190), draw.randint(0, 18000), draw.randint(0, 80)
    return (
        f"ss_quantity BETWEEN {low} AND {low + 5} AND (ss_list_price BETWEEN {price} AND"
        f" {price + 10} OR ss_coupon_amt BETWEEN {coupon} AND {coupon + 1000} OR"
        f" ss_wholesale_cost BETWEEN {cost} AND {cost + 20})"
    )


def ds48(draw: Draw) -> str:
    """The filter on profits and prices, which is the same in each of the query's instances."""
    first = draw.randrange(FIRST_DAY, LAST_DAY - 90)
    return (
        "(ss_sales_price BETWEEN 150.00 AND 200.00 AND ss_net_profit BETWEEN 150 AND 3000"
        " OR ss_sales_price BETWEEN 100.00 AND 150.00 AND ss_net_profit BETWEEN 50 AND 25000)"
        f" AND ss_sold_date_sk BETWEEN {first} AND {first + 90}"
    )


def ds3(draw: Draw) -> str:
    return f"d_moy = {draw.choice([11, 12])} AND i_manufact_id = {draw.randint(1, 1000)}"


def ds42(draw: Draw) -> str:
    """The filter of the queries 42, 52 and 55."""
    month, year = draw.choice([11, 12]), draw.randrange(1998, 2003)
    return f"d_moy = {month} AND d_year = {year} AND i_manager_id = {draw.randint(1, 100)}"


def days(draw: Draw) -> str:
    first = draw.randrange(FIRST_DAY, LAST_DAY - 28)
    return f"ss_sold_date_sk BETWEEN {first} AND {first + 27}"


def customer(draw: Draw) -> str:
    return f"ss_customer_sk = {draw.randrange(1, 100_000)}"


@dataclass(frozen=True)
class Workload:
    """Queries on one table.

    Attributes:
        conditions: functions that each return a random WHERE condition. They take turns.
        is_across: whether conditions across columns select the rows.
        dimensions: the tables that the table is joined with, and the conditions of the joins.
    """

    name: str
    table: str
    conditions: Sequence[Callable[[Draw], str]]
    is_across: bool = False
    dimensions: Mapping[str, str] = field(default_factory=dict)

    def drawn(self, seed: int, count: int) -> list[str]:
        """Returns `count` random conditions."""
        draw = Draw(seed)
        return [self.conditions[i % len(self.conditions)](draw) for i in range(count)]


WORKLOADS = [
    Workload("TPC-H 12", "lineitem", [h12], is_across=True),
    Workload("TPC-H 12, 14, 19", "lineitem", [h12, h14, h19], is_across=True),
    Workload("TPC-H 6, 14, 15", "lineitem", [h6, h14, h15]),
    Workload("TPC-H 1, 4, 6, 12, 14, 15, 19", "lineitem", [h1, h4, h6, h12, h14, h15, h19]),
    Workload("TPC-DS 28", "store_sales", [ds28], is_across=True),
    Workload("TPC-DS 48, 9", "store_sales", [ds48, ds9], is_across=True),
    Workload("TPC-DS, days and customers", "store_sales", [days, customer]),
    Workload(
        "TPC-DS 3, 42, 52, 55",
        "store_sales",
        [ds3, ds42],
        dimensions={"date_dim": "d_date_sk = ss_sold_date_sk", "item": "i_item_sk = ss_item_sk"},
    ),
]


class Table:
    """A workload's table, which is written anew for each layout."""

    def __init__(self, spark: SparkSession, workload: Workload, files: int) -> None:
        self.spark, self.name, self._files = spark, workload.table, files
        self._folder = demo.OUTPUT / "warehouse" / f"auto_{self.name}"
        self._sql = f"auto_{self.name}"
        self._joined = self._sql
        for dimension, condition in workload.dimensions.items():
            self._parquet(dimension).createOrReplaceTempView(dimension)
            self._joined += f" JOIN {dimension} ON {condition}"

    def write(self) -> None:
        """Writes the rows in their original order, with an index."""
        self.spark.sql(f"DROP TABLE IF EXISTS {self._sql}")
        shutil.rmtree(self._folder, ignore_errors=True)
        rows = self._rows()
        rows.write.option("maxRecordsPerFile", rows.count() // self._files + 1).saveAsTable(
            self._sql
        )
        target = str(size_of(self._folder) // self._files)
        self.spark.conf.set("spark.sql.zorder.optimize.targetFileSize", target)
        self.spark.sql(f"CREATE SKIPPING INDEX ON {self._sql}")

    def _rows(self) -> DataFrame:
        return lineitem(self.spark) if self.name == "lineitem" else self._parquet(self.name)

    def _parquet(self, table: str) -> DataFrame:
        source = demo.OUTPUT / f"{table}.parquet"
        demo.generate(source, scale=1)
        return self.spark.read.parquet(str(source))

    def query(self, condition: str) -> DataFrame:
        measure = "l_extendedprice" if self.name == "lineitem" else "ss_net_paid"
        return self.spark.sql(f"SELECT sum({measure}) FROM {self._joined} WHERE {condition}")

    def record(self, conditions: Sequence[str]) -> None:
        """Runs the queries while the session records them."""
        bridge.clear_workload(self.spark, self._sql)
        self.spark.conf.set("spark.sql.zorder.workload.record", "true")
        for condition in conditions:
            self.query(condition).collect()
        bridge.flush_workload(self.spark)
        self.spark.conf.set("spark.sql.zorder.workload.record", "false")

    def opened(self, conditions: Sequence[str]) -> float:
        """The share of the table's bytes that a query opens, on average."""
        total = 0
        for condition in conditions:
            query = self.query(condition)
            if self._joined != self._sql:
                query.collect()  # determines the join keys
            scans = pyzorder.explain(query)
            total += next(
                scan.details["selectedBytes"] for scan in scans if scan.table.endswith(self._sql)
            )
        return total / len(conditions) / size_of(self._folder)

    def perfect(self, conditions: Sequence[str]) -> float:
        """The same for files that contain only rows that a query selects, as far as possible."""
        counts = ", ".join(f"count_if({condition})" for condition in conditions)
        found = self.spark.sql(f"SELECT {counts} FROM {self._joined}").collect()[0]
        rows = self.spark.table(self._sql).count()
        files = sum(math.ceil(count / rows * self._files) for count in found)
        return files / self._files / len(conditions)

    def advised(self) -> str:
        """Lays the table out by the best columns for the recorded queries, and returns them."""
        advice = advise(self.spark, self._sql)
        if advice.statement is None:
            return "none"
        self.spark.sql(advice.statement).collect()
        return ", ".join(advice.recommended)

    def auto(self) -> str:
        """Lays the table out by ZORDER BY AUTO, and returns the columns."""
        metrics = self.spark.sql(f"OPTIMIZE {self._sql} ZORDER BY AUTO").collect()[0]["metrics"]
        print(metrics["remark"], flush=True)
        return ", ".join(metrics["clusteringColumns"]) or "none"


def measure(spark: SparkSession, workload: Workload, files: int, queries: int) -> list[str]:
    """Returns the workload's line of the table."""
    table = Table(spark, workload, files)
    seen, held_back = workload.drawn(1, queries), workload.drawn(2, queries)
    shares, names = [], []
    for lay_out in (table.advised, table.auto):
        table.write()
        table.record(seen)
        names.append(lay_out())
        shares.append(table.opened(held_back))
    best, auto = shares
    line = [
        workload.name, "yes" if workload.is_across else "", names[0], names[1],
        *(f"{100 * share:.1f}%" for share in (best, auto, table.perfect(held_back))),
        f"{auto / best:.2f}",
    ]  # fmt: skip
    print("  ".join(line), flush=True)
    return line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=80, help="approximate number of files")
    parser.add_argument("--queries", type=int, default=32, help="queries of each workload")
    parser.add_argument("--only", help="the only workload to measure; writes no file")
    arguments = parser.parse_args()
    spark = demo.start_spark()
    spark.conf.set("spark.sql.zorder.workload.record", "false")
    measured = [one for one in WORKLOADS if arguments.only in (None, one.name)]
    lines = [measure(spark, one, arguments.files, arguments.queries) for one in measured]
    spark.stop()
    if arguments.only:
        return 0
    header = ["workload", "across columns", "best columns", "AUTO", "opened with the columns",
              "opened with AUTO", "in the perfect layout", "AUTO / columns"]  # fmt: skip
    said = (
        "The filters of TPC-H queries on `lineitem` and of TPC-DS queries on `store_sales`, at "
        f"scale factor 1, in about {arguments.files} files. {arguments.queries} queries of each "
        "workload were recorded, and as many with other parameters judge the layouts. The figures "
        "are shares of the table's bytes that a query opens, on average. In the perfect layout, "
        "the rows that a query selects fill as few files as possible. Measured by "
        "`make bench-auto`."
    )
    report.write("auto", "ZORDER BY AUTO and the best columns", said, [header, *lines])
    ratios = [float(line[-1]) for line in lines]
    across = [r for r, one in zip(ratios, WORKLOADS, strict=True) if one.is_across]
    print(f"AUTO / columns: at most {max(ratios)}, across columns at least {min(across)}")
    return 0 if max(ratios) <= MOST and min(across) <= BEST else 1


if __name__ == "__main__":
    sys.exit(main())
