"""Measures how many files TPC-DS star joins open, with and without skipping by join keys.

    python benchmarks/joins.py [--scale 1] [--files 216]

store_sales is Z-ordered by the keys of date_dim, item and customer. In the printed table, the
columns with the header `without` show the results with spark.sql.zorder.join.maxKeys = 0.
Writes only to the folder demo-output.
"""

from __future__ import annotations

import argparse
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

import pyzorder
from pyzorder import demo

KEYS = ("ss_sold_date_sk", "ss_item_sk", "ss_customer_sk")
DIMENSIONS = ("date_dim", "item", "customer")
MAX_KEYS = "spark.sql.zorder.join.maxKeys"
RUNS = 3

SELECT = "SELECT count(*), sum(ss_net_paid), sum(ss_quantity * ss_ticket_number) FROM store_sales"
DATE = "JOIN date_dim ON ss_sold_date_sk = d_date_sk"
ITEM = "JOIN item ON ss_item_sk = i_item_sk"
CUSTOMER = "JOIN customer ON ss_customer_sk = c_customer_sk"
ONE_ITEM = (
    "i_item_id = (SELECT i_item_id FROM item "
    "WHERE i_item_sk = (SELECT max(i_item_sk) DIV 3 FROM item))"
)
ONE_CUSTOMER = (
    "c_customer_id = (SELECT c_customer_id FROM customer "
    "WHERE c_customer_sk = (SELECT max(c_customer_sk) DIV 3 FROM customer))"
)
ONE_DAY = "d_date = DATE'2001-05-05'"
ONE_WEEK = "d_date BETWEEN DATE'2001-05-01' AND DATE'2001-05-07'"
ONE_MONTH = "d_year = 2001 AND d_moy = 5"
QUERIES = {
    "one day": f"{SELECT} {DATE} WHERE {ONE_DAY}",
    "one week, IN": f"{SELECT} WHERE ss_sold_date_sk IN "
    f"(SELECT d_date_sk FROM date_dim WHERE {ONE_WEEK})",
    "one item": f"{SELECT} {ITEM} WHERE {ONE_ITEM}",
    "one customer": f"{SELECT} {CUSTOMER} WHERE {ONE_CUSTOMER}",
    "one month, one item": f"{SELECT} {DATE} {ITEM} WHERE {ONE_MONTH} AND {ONE_ITEM}",
    "one month, one customer": f"{SELECT} {DATE} {CUSTOMER} WHERE {ONE_MONTH} AND {ONE_CUSTOMER}",
    "one month": f"{SELECT} {DATE} WHERE {ONE_MONTH}",
    "one year": f"{SELECT} {DATE} WHERE d_year = 2001",
    "one category (a tenth of all items)": f"{SELECT} {ITEM} WHERE i_category = 'Books'",
}


@dataclass(frozen=True)
class Answer:
    """The result of a query, and its cost."""

    values: tuple[object, ...]
    opened: int
    seconds: float


def ask(spark: SparkSession, query: str, max_keys: str) -> Answer:
    """Runs a query several times, and returns its result and the time of the fastest run."""
    spark.conf.set(MAX_KEYS, max_keys)
    seconds = []
    for _ in range(RUNS):
        df = spark.sql(query)
        started = time.perf_counter()
        row = df.collect()[0]
        seconds.append(time.perf_counter() - started)
    spark.conf.unset(MAX_KEYS)
    scan = next(scan for scan in pyzorder.explain(df) if scan.table == "store_sales")
    return Answer(tuple(row), scan.opened, min(seconds))


def write_tables(spark: SparkSession, source: Path, files: int) -> None:
    """Creates the four tables in Spark's catalog, and Z-orders store_sales."""
    warehouse = demo.OUTPUT / "warehouse"
    for name in ("store_sales", *DIMENSIONS):
        shutil.rmtree(warehouse / name, ignore_errors=True)
        spark.read.parquet(str(source / f"{name}.parquet")).write.saveAsTable(name)
    size = sum(file.stat().st_size for file in (warehouse / "store_sales").glob("*.parquet"))
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", str(max(1, size // files)))
    pyzorder.ZOrderTable.forName(spark, "store_sales").optimize().executeZOrderBy(*KEYS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1, help="TPC-DS scale factor")
    parser.add_argument(
        "--files", type=int, default=216, help="approximate number of files of store_sales"
    )
    arguments = parser.parse_args()
    # At scale factor 1, share store_sales with the demo.
    source = demo.OUTPUT if arguments.scale == 1 else demo.OUTPUT / f"sf{arguments.scale:g}"
    names = ("store_sales", *DIMENSIONS)
    demo.generate(*(source / f"{name}.parquet" for name in names), scale=arguments.scale)
    spark = demo.start_spark()
    write_tables(spark, source, arguments.files)
    print(f"{'store_sales joined for':<38}{'files':>7}{'without':>9}{'ratio':>8}"
          f"{'seconds':>9}{'without':>9}  answers")  # fmt: skip
    same = True
    for name, query in QUERIES.items():
        without, pruned = ask(spark, query, "0"), ask(spark, query, "10000")
        equal = without.values == pruned.values
        same = same and equal
        print(f"{name:<38}{pruned.opened:>7}{without.opened:>9}"
              f"{without.opened / max(1, pruned.opened):>7.1f}x{pruned.seconds:>9.2f}"
              f"{without.seconds:>9.2f}  {'equal' if equal else 'DIFFERENT'}")  # fmt: skip
    spark.stop()
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
