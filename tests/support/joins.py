"""Helpers that count the files that are skipped by join keys, and compare answers with those of
plain Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.support.indexes import build
from tests.support.scans import explain, plain, settings

#: Large tables, each with one file for each of 20 days.
FACTS = ("sales", "returns", "web")


def write_facts(spark: SparkSession, folder: Path, *more: str) -> None:
    """Writes and indexes FACTS, with the additional columns `more`. `id` is the row's number."""
    for i, name in enumerate(FACTS):
        spark.range(0, 400, 1, 20).selectExpr(
            "CAST(id DIV 20 AS INT) AS day", f"(id * 7 + {i}) % 400 AS ticket",
            "CAST(id % 50 AS INT) AS q", "concat(uuid(), uuid(), uuid(), uuid()) AS pad", *more,
        ).write.parquet(str(folder / name))  # fmt: skip
        build(spark, folder / name, "parquet")


@contextmanager
def fact_tables(
    spark: SparkSession, folder: Path, days: Sequence[str], *more: str
) -> Iterator[None]:
    """Creates FACTS and `days`, which has one row for each day, and drops them after the block.

    Args:
        days: further columns of `days`, beside the day `d` and `month`, which has five days.
        more: further columns of FACTS.
    """
    write_facts(spark, folder, *more)
    spark.range(0, 20, 1, 1).selectExpr(
        "CAST(id AS INT) AS d", "CAST(id DIV 5 AS INT) AS month", *days
    ).write.parquet(str(folder / "days"))
    for name in (*FACTS, "days"):
        spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{folder / name}'")
    yield
    for name in (*FACTS, "days"):
        spark.sql(f"DROP TABLE {name}")


@contextmanager
def broadcasting_only_days(spark: SparkSession, adaptive: str) -> Iterator[None]:
    """Spark broadcasts `days` but none of FACTS during the block."""
    with settings(
        spark,
        spark__sql__adaptive__enabled=adaptive,
        spark__sql__autoBroadcastJoinThreshold="8k",
        spark__sql__adaptive__autoBroadcastJoinThreshold="-1",
    ):
        yield


def scans_of(df: DataFrame, table: str = "fact") -> list[dict[str, Any]]:
    """The explanation of skipping in each scan of a table. The query must have run."""
    return [scan for scan in explain(df) if scan["table"] == table]


def counts(df: DataFrame, table: str = "fact") -> tuple[int, ...]:
    """The number of files that each scan of a table opens."""
    return tuple(sorted(len(scan["opened"]) for scan in scans_of(df, table)))


def rows(df: DataFrame) -> list[str]:
    """The rows as strings in a fixed order. As a string, NaN equals itself."""
    return sorted(map(str, df.collect()))


def checked(spark: SparkSession, sql: str) -> DataFrame:
    """Runs the query, and asserts that skipping does not change its answer."""
    with plain(spark):
        expected = rows(spark.sql(sql))
    df = spark.sql(sql)
    assert rows(df) == expected
    return df


def stage_rows(spark: SparkSession) -> dict[int, tuple[int, int]]:
    """For each stage so far, the number of rows that it read from files and wrote to a shuffle."""
    jvm, context = spark._jvm, spark._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    stages = context.statusStore().stageList(
        None, False, False, spark.sparkContext._gateway.new_array(jvm.double, 0), None
    )
    found = [stages.apply(i) for i in range(stages.size())]
    return {stage.stageId(): (stage.inputRecords(), stage.shuffleWriteRecords()) for stage in found}


def select_list(text: str) -> list[str]:
    """The expressions in a SELECT list."""
    found, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            found.append(text[start:i])
            start = i + 1
    return [*found, text[start:]]
