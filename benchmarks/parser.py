"""Measures the overhead of pyzorder's parser for Spark's statements, in microseconds.

    python benchmarks/parser.py [--calls 2000]

The parsers are called alternately through Py4J, so both figures include the cost of the calls.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from pyspark.sql import SparkSession

import pyzorder

STATEMENTS = {
    "SELECT 1": "SELECT 1",
    "a join of 40 columns": "SELECT "
    + ", ".join(f"sum(a.c{i}) AS s{i}" for i in range(40))
    + " FROM a JOIN b ON a.k = b.k WHERE a.x > 1 AND b.y LIKE 'p%' GROUP BY a.k",
    "CREATE TABLE": "CREATE TABLE t (a INT, b STRING) USING parquet",
    "DESCRIBE TABLE": "DESCRIBE TABLE t",
}


def microseconds(parser: Any, statement: str, calls: int) -> float:
    """Returns the mean time that the parser takes for a statement."""
    start = time.perf_counter_ns()
    for _ in range(calls):
        parser.parsePlan(statement)
    return (time.perf_counter_ns() - start) / calls / 1000


def main() -> None:
    """Prints one line per statement: each parser's lowest mean time out of eleven, and the ratio of
    the two times."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=500, help="number of calls per round")
    calls: int = parser.parse_args().calls
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = pyzorder.configure(builder).getOrCreate()
    ours = spark._jsparkSession.sessionState().sqlParser()
    plain = spark._jvm.org.apache.spark.sql.execution.SparkSqlParser()  # type: ignore[union-attr]
    print(f"{'statement':<24}{'pyzorder':>12}{'Spark alone':>14}{'ratio':>8}")
    for name, statement in STATEMENTS.items():
        turns = [
            (microseconds(ours, statement, calls), microseconds(plain, statement, calls))
            for _ in range(11)
        ]
        with_ours, alone = (min(turn[side] for turn in turns) for side in (0, 1))
        print(f"{name:<24}{with_ours:9.1f} µs{alone:11.1f} µs{with_ours / alone:8.2f}")
    spark.stop()


if __name__ == "__main__":
    main()
