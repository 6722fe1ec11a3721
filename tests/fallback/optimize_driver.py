"""Optimizes a table with the fallback in a Spark without pyzorder's jar, as a program:
`python optimize_driver.py /path/of/table [point to be killed at]`.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from pyzorder import fallback


def session(**settings: str) -> SparkSession:
    """A session of plain Spark, two underscores for a dot in names of settings."""
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.driver.memory", "600m")
    for name, value in settings.items():
        builder = builder.config(name.replace("__", "."), value)
    return builder.getOrCreate()


def main(table: str, point: str = "") -> None:
    spark = session(spark__sql__zorder__test__killAt=point)
    print(fallback.optimize(spark, table, ["id", "x"], full=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
