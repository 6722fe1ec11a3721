"""Helpers that determine which files the fallback skips and which files a query opens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyzorder import fallback
from pyzorder.fallback import Selection
from tests.support import scans
from tests.support.tables import data_files


def kept(folder: Path, selection: Selection) -> set[str]:
    """The names of the data files that a selection keeps."""
    gone = {Path(file.path).name for file in selection.skipped}
    return {path.name for path in data_files(folder)} - gone


def opened(df: DataFrame) -> int:
    """The number of files that a query's scans open. Spark's own metrics report this number."""
    df.collect()
    found: list[Any] = []

    def walk(plan: Any) -> None:
        if plan.metrics().contains("numFiles"):
            found.append(plan.metrics().apply("numFiles").value())
        if plan.nodeName() == "AdaptiveSparkPlan":
            walk(plan.executedPlan())
        for inner in (plan.children(), plan.subqueries()):
            for i in range(inner.size()):
                walk(inner.apply(i))
        if hasattr(plan, "plan") and plan.nodeName().endswith("QueryStage"):
            walk(plan.plan())

    walk(df._jdf.queryExecution().executedPlan())
    return sum(found)


def by_jar(spark: SparkSession, relation: str, predicate: str) -> set[str]:
    """The names of the files that the jar opens for a predicate."""
    return scans.opened(spark.sql(f"SELECT * FROM {relation} WHERE {predicate}"))


def selection(spark: SparkSession, table: str, predicate: str, **options: Any) -> Selection:
    """The files that the fallback selects for a predicate."""
    return fallback.read(spark, table, **options).select_files(predicate)


def written(
    spark: SparkSession, table: Path, parts: Sequence[str], format: str = "parquet"
) -> None:
    """Writes one file for each SELECT list. Each list is evaluated on range(0, 20)."""
    for part in parts:
        rows = spark.range(0, 20, 1, 1).selectExpr(*part.split("; "))
        rows.write.format(format).mode("append").save(str(table))
