"""Helpers that find the files that a query opens, and check them against the rows in the files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

#: The errors that a failing query raises while it is planned or, in Spark 3.5, while it runs.
FAILURES: tuple[type[Exception], ...] = (PySparkException,)
with suppress(ModuleNotFoundError):  # a Spark Connect client has no py4j
    from py4j.protocol import Py4JJavaError

    FAILURES += (Py4JJavaError,)

ENABLED = "spark.sql.zorder.skipping.enabled"

#: The outcomes of a predicate, and their bits in a judgement.
OUTCOMES = {"true": 1, "false": 2, "null": 4}

_Query = TypeVar("_Query")


def explain(df: DataFrame) -> list[dict[str, Any]]:
    """The explanation of what skipping does in each scan of the query."""
    jvm: Any = df.sparkSession._jvm
    found = json.loads(jvm.io.pyzorder.api.ExplainApi.explain(df._jdf.queryExecution()))
    return list(found["scans"])


def some(queries: Sequence[_Query], relation: str) -> Sequence[_Query]:
    """Returns all queries for Parquet, but only every third query for ORC. The two formats differ
    only in the source of the statistics."""
    return queries[::3] if relation.endswith("_orc") else queries


def opened(df: DataFrame) -> set[str]:
    """The names of the files that the query's scans open."""
    return {path.rsplit("/", 1)[-1] for scan in explain(df) for path in scan["opened"]}


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    """Changes the given settings during the block. In their names, two underscores stand for a
    dot."""
    before = {
        key.replace("__", "."): spark.conf.get(key.replace("__", "."), None) for key in values
    }
    for key, value in values.items():
        spark.conf.set(key.replace("__", "."), value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def plain(spark: SparkSession) -> Any:
    """Turns skipping off during the block."""
    return settings(spark, spark__sql__zorder__skipping__enabled="false")


def truth(
    spark: SparkSession, relation: str, predicates: Sequence[str]
) -> list[dict[str, set[str]]]:
    """For each predicate, the files with rows that make it TRUE, FALSE or NULL in plain Spark.

    A single scan evaluates all predicates. If this scan fails, each half of the predicates is
    evaluated by a separate scan, and so on. A scan may fail because Spark evaluates a shared
    subexpression even on rows where no predicate needs it.
    """
    columns = ", ".join(f"({p}) AS p{i}" for i, p in enumerate(predicates))
    try:
        with plain(spark):
            rows = spark.sql(f"SELECT input_file_name() AS f, {columns} FROM {relation}").collect()
    except FAILURES:
        half = len(predicates) // 2
        if half == 0:
            raise
        return truth(spark, relation, predicates[:half]) + truth(spark, relation, predicates[half:])
    found: list[dict[str, set[str]]] = [
        {"true": set(), "false": set(), "null": set()} for _ in predicates
    ]
    for row in rows:
        name = unquote(row["f"]).rsplit("/", 1)[-1]
        for i, outcome in enumerate(found):
            value = row[i + 1]
            outcome["null" if value is None else "true" if value else "false"].add(name)
    return found


def judgements(
    spark: SparkSession, relation: str, predicates: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns the judgement of each predicate. A judgement contains the predicate's three filters
    and, in the field `files`, the possible outcomes for each file, keyed by file name."""
    columns = ", ".join(f"({p}) AS p{i}" for i, p in enumerate(predicates))
    df = spark.sql(f"SELECT {columns} FROM {relation}")
    jvm: Any = spark._jvm
    judged = list(json.loads(jvm.io.pyzorder.api.ExplainApi.judgements(df._jdf.queryExecution())))
    for one in judged:
        one["files"] = {
            path.rsplit("/", 1)[-1]: {name for name, bit in OUTCOMES.items() if sum_ & bit}
            for path, sum_ in one["files"].items()
        }
    return judged


def check_judged(spark: SparkSession, relation: str, predicates: Sequence[str]) -> int:
    """Asserts that an outcome that was judged impossible for a file does not occur in any row of
    the file.

    Returns the number of outcomes that were judged impossible, summed over all predicates and
    files.
    """
    impossible, wrong = 0, []
    judged = judgements(spark, relation, predicates)
    for predicate, judgement, found in zip(
        predicates, judged, truth(spark, relation, predicates), strict=True
    ):
        for name, outcomes in judgement["files"].items():
            impossible += len(OUTCOMES) - len(outcomes)
            missed = {o for o, names in found.items() if name in names} - outcomes
            if missed:
                wrong.append(f"{predicate}: {name} has {sorted(missed)}, not in {sorted(outcomes)}")
    assert not wrong, "\n".join(wrong)
    return impossible


def opened_or_none(spark: SparkSession, query: str) -> set[str] | None:
    """The files that a query opens, or None if plain Spark also fails to plan the query."""
    try:
        return opened(spark.sql(query))
    except FAILURES:
        with plain(spark):
            try:
                spark.sql(query)._jdf.queryExecution().executedPlan()
            except FAILURES:
                return None
        raise


def check_sound(spark: SparkSession, relation: str, predicates: Sequence[str]) -> dict[str, int]:
    """Asserts that queries with each predicate, its negation and its IS NULL form open every file
    with a matching row.

    Returns how many files are opened for each predicate. Predicates that Spark cannot plan are left
    out.
    """
    counts, unsound = {}, []
    for predicate, files in zip(predicates, truth(spark, relation, predicates), strict=True):
        for text, needed in (
            (predicate, files["true"]),
            (f"NOT ({predicate})", files["false"]),
            (f"({predicate}) IS NULL", files["null"]),
        ):
            read = opened_or_none(spark, f"SELECT * FROM {relation} WHERE {text}")
            if read is None:
                continue
            counts.setdefault(predicate, len(read))
            if not needed <= read:
                unsound.append(f"{text}: skips {sorted(needed - read)}")
    assert not unsound, "\n".join(unsound)
    return counts


def discovered(spark: SparkSession) -> int:
    """The number of files that Spark has found in listings."""
    jvm: Any = spark._jvm
    metrics = jvm.org.apache.spark.metrics.source.HiveCatalogMetrics
    return int(metrics.METRIC_FILES_DISCOVERED().getCount())
