"""Code that all processes of the soak test share. It creates sessions, and runs and records
statements and queries."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import pyzorder
from tests.soak.ledger import SCHEMA, Book

#: Errors that Spark raises while its JVM is running. Any other error means that the JVM has exited.
FAILURES = (PySparkException, Py4JJavaError)

#: Errors that a query may raise if its files are deleted. Plain Spark also raises these errors.
GONE = ("FILE_NOT_EXIST", "PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "FileNotFoundException",
        "NoSuchFileException", "does not exist")  # fmt: skip

#: The maxStaleness of some queries, in seconds.
STALE = 10

#: Errors that pyzorder's statements may raise to report concurrent changes.
TYPED = re.compile(
    r"\[(ZORDER_(?:CONFLICT|CONCURRENT_OPTIMIZE|CANNOT_RESTORE|NO_FILES|PATH_NOT_FOUND|"
    r"UNDECLARED_COLUMNS)|TABLE_OR_VIEW_NOT_FOUND)\]"
)


def session(home: Path, cores: int) -> SparkSession:
    """Creates the Spark session of this process."""
    builder = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "700m")
        .config(
            "spark.driver.extraJavaOptions",
            "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=160m",
        )
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.sql.zorder.optimize.targetFileSize", "6k")
        .config("spark.sql.zorder.vacuum.retentionCheck", "false")
    )
    spark = pyzorder.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


#: A query that counts the rows of each batch with two scans in separate stages.
GROUPS = """
    SELECT op, coalesce(rows, 0) rows, coalesce(ids, 0) ids, coalesce(again, 0) again
    FROM (SELECT op, count(*) rows, count(DISTINCT id) ids FROM rows GROUP BY op)
    FULL JOIN (SELECT op, count(*) again FROM rows WHERE id >= 0 GROUP BY op) USING (op)
"""


class Worker:
    """A thread that works until the file `stop` exists."""

    def __init__(self, spark: SparkSession, home: Path, book: Book, seed: int) -> None:
        self.spark, self.home, self.book = spark, home, book
        self.random = random.Random(seed)
        self.pause = float((home / "pause").read_text())

    def goes_on(self) -> bool:
        """Pauses briefly, and returns whether to continue."""
        time.sleep(self.pause * self.random.random() * 2)
        return not (self.home / "stop").exists()

    def statement(self, text: str) -> bool:
        """Runs a pyzorder statement. If it fails, its error must report a concurrent change."""
        outcome, typed = "done", True
        try:
            self.spark.sql(text).collect()
        except FAILURES as error:
            found = TYPED.search(str(error))
            outcome = found[1] if found else error_text(error)
            typed = found is not None
        verb = " ".join(word for word in text.split() if word.isupper())
        self.book.note("ran", verb=verb, outcome=outcome, typed=typed)
        return outcome == "done"

    def path(self, table: str) -> Path:
        return self.home / "warehouse" / table

    def question(self) -> dict[str, Any]:
        """A random query. It selects all rows or the rows in a few files, in all partitions or in
        one partition."""
        low = self.random.choice([0, self.random.randrange(900)])
        high = 1000 if low == 0 else low + 100
        return {"low": low, "high": high, "p": self.random.choice([None, None, 0, 1, 2, 3])}

    def observe(
        self,
        table: str,
        kind: str,
        make: Callable[[], DataFrame],
        since: float | None = None,
        question: dict[str, Any] | None = None,
    ) -> None:
        """Queries a DataFrame and records the answer.

        `since` is the earliest time at which the DataFrame may have selected its files. If `since`
        is not given, half of the queries may take the list of files from the index. The answers to
        these queries may be outdated by at most STALE seconds.
        """
        question = question or self.question()
        begun = time.monotonic()
        stale = STALE if since is None and self.random.random() < 0.5 else 0
        self.spark.conf.set("spark.sql.zorder.index.maxStaleness", f"{stale}s")
        kind += ", from the index" if stale else ""
        seen: dict[str, Any] = {}
        try:
            rows = make().where(f"a >= {question['low']} AND a < {question['high']}")
            if question["p"] is not None:
                rows = rows.where(f"p = {question['p']}")
            if self.random.random() < 0.3:
                seen["count"] = rows.count()
            else:
                rows.createOrReplaceTempView("rows")
                groups = self.spark.sql(GROUPS).collect()
                seen["seen"] = {row["op"]: (row["rows"], row["ids"]) for row in groups}
                seen["again"] = {row["op"]: row["again"] for row in groups}
        except FAILURES as error:
            seen = failure(error)
        ended = time.monotonic()
        self.spark.conf.set("spark.sql.zorder.index.maxStaleness", "0s")
        self.book.note("query", table=table, kind=kind, since=(begun if since is None else since) - stale,
                       until=ended, ended=ended, **question, **seen)  # fmt: skip

    def frame(self, table: str) -> DataFrame:
        """Reads the table by its path, so Spark lists the table's files again."""
        return self.spark.read.schema(SCHEMA).parquet(str(self.path(table)))


def failure(error: Exception) -> dict[str, Any]:
    """The fields recorded for a failed query."""
    return {"error": error_text(error), "known": any(word in str(error) for word in GONE)}


def error_text(error: Exception) -> str:
    """The text of an error, with a shortened stack trace."""
    text = str(error)
    causes = [line for line in text.split("\n") if line.startswith("Caused by")]
    return "\n".join([text[:1000], *causes])[:4000]
