"""Runs the queries of TPC-DS and TPC-H with and without skipping, and checks their answers.

    python benchmarks/tpc.py [--scale 1] [--files 80] [--pairs 5] [--queries ds6,h3] [--continue]

The large tables have about 80 files each and are Z-ordered by their date key and one other key. All
queries run in one session, in pairs: one run with skipping and one without. A first pair, which is
not measured, compiles the query. Each result is the median over the other pairs. If they disagree,
there are up to twice as many. The garbage collector runs before each run. The CPU time does not
include that of Java's JIT compiler, which in a server ends after some runs. The summary also states
the result with this time included.

`files` is the number of files that the query opens in the large tables. `model` is the number that
tpc_model predicts, or `-` if the prediction needs too much memory or time. `by conditions` counts
the files that the query's own conditions skip, `by joins` those that only joins skip. `how` says
what skips them: the keys of broadcasts, the key ranges of other tables' files, or both. The answers
are compared with DuckDB's, and with the answers without skipping. DuckDB generates the data and the
text of the queries. `--continue` keeps the measurements of an earlier run with the same jar and
arguments. Writes only to the folder demo-output, except for the table of results.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import math
import re
import shutil
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import report
import sqlglot
from pyspark.sql import SparkSession
from sqlglot import exp
from tpc_model import FileBounds, Model
from tpc_session import Session

import pyzorder
from pyzorder import demo
from pyzorder.session import jar

FOLDER = demo.OUTPUT / "tpc"
HEADER = [
    "query", "files", "model", "of", "by conditions", "by joins", "how", "CPU", "CPU, on / off",
    "time, on / off", "slowest pair", "answers",
]  # fmt: skip
#: If half of the pairs of a query differ by more than this, there are more pairs.
MAX_SPREAD = 0.15


@dataclass(frozen=True)
class Benchmark:
    """A set of queries and tables, and the columns by which the large tables are Z-ordered."""

    name: str
    prefix: str
    large: Mapping[str, tuple[str, str]]

    @property
    def folder(self) -> Path:
        return FOLDER / self.name


BENCHMARKS = (
    Benchmark(
        "tpcds",
        "ds",
        {
            "store_sales": ("ss_sold_date_sk", "ss_item_sk"),
            "catalog_sales": ("cs_sold_date_sk", "cs_item_sk"),
            "web_sales": ("ws_sold_date_sk", "ws_item_sk"),
            "store_returns": ("sr_returned_date_sk", "sr_item_sk"),
            "catalog_returns": ("cr_returned_date_sk", "cr_item_sk"),
            "web_returns": ("wr_returned_date_sk", "wr_item_sk"),
            "inventory": ("inv_date_sk", "inv_item_sk"),
        },
    ),
    Benchmark(
        "tpch",
        "h",
        {"lineitem": ("l_shipdate", "l_partkey"), "orders": ("o_orderdate", "o_custkey")},
    ),
)


@dataclass
class Runs:
    """The cost of the runs of a query, with and without skipping, in seconds.

    Attributes:
        cpu: the CPU time without that of the JIT compiler.
        jit: the CPU time of the JIT compiler.
        time: the elapsed time.
    """

    cpu: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})
    jit: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})
    time: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})

    def add(self, skips: bool, cpu: float, jit: float, seconds: float) -> None:
        self.cpu[skips].append(cpu)
        self.jit[skips].append(jit)
        self.time[skips].append(seconds)

    def disagree(self) -> bool:
        """Whether the middle half of the pairs covers a wide range of ratios."""
        ratios = self._ratios(self.cpu)
        if len(ratios) < 3:
            return False
        low, _, high = statistics.quantiles(ratios, n=4)
        return high - low > MAX_SPREAD

    @staticmethod
    def _ratios(of: Mapping[bool, list[float]]) -> list[float]:
        return [on / off for on, off in zip(of[True], of[False], strict=True)]

    @property
    def cpu_ratio(self) -> float:
        return statistics.median(self._ratios(self.cpu))

    @property
    def cpu_ratio_with_jit(self) -> float:
        both = {
            skips: [cpu + jit for cpu, jit in zip(self.cpu[skips], self.jit[skips], strict=True)]
            for skips in (True, False)
        }
        return statistics.median(self._ratios(both))

    @property
    def time_ratio(self) -> float:
        return statistics.median(self._ratios(self.time))

    @property
    def slowest(self) -> float:
        return max(self._ratios(self.time))


class Measurements:
    """The measured queries, stored in a file so that an interrupted run can be continued.

    The first line of the file identifies the jar and the arguments.
    """

    def __init__(self, keeps: bool, *arguments: float) -> None:
        self._path = FOLDER / "measured.jsonl"
        self._known: dict[str, tuple[list[str], Runs]] = {}
        head = [hashlib.sha256(jar().read_bytes()).hexdigest(), *arguments]
        found = self._path.read_text().splitlines() if self._path.exists() else []
        if keeps and found and json.loads(found[0]) == head:
            for row, *costs in map(json.loads, found[1:]):
                of = [{True: on, False: off} for on, off in costs]
                self._known[row[0]] = row, Runs(*of)
        else:
            FOLDER.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(head) + "\n")

    def get(self, query: str) -> tuple[list[str], Runs] | None:
        return self._known.get(query)

    def add(self, row: list[str], runs: Runs) -> None:
        pairs = [[of[True], of[False]] for of in (runs.cpu, runs.jit, runs.time)]
        with self._path.open("a") as file:
            file.write(json.dumps([row, *pairs]) + "\n")


def connect(benchmark: Benchmark, scale: float) -> duckdb.DuckDBPyConnection:
    """Opens a database with the benchmark's tables. Generates them first if needed."""
    benchmark.folder.mkdir(parents=True, exist_ok=True)
    database = benchmark.folder / f"sf{scale:g}.duckdb"
    exists = database.exists()
    connection = demo.connect(benchmark.name, database if exists else database.with_suffix(".new"))
    if not exists:
        connection.execute(
            f"CALL {'dsdgen' if benchmark.name == 'tpcds' else 'dbgen'}(sf = {scale:g})"
        )
        connection.close()
        database.with_suffix(".new").rename(database)
        connection = demo.connect(benchmark.name, database)
    return connection


def write_tables(
    spark: SparkSession, benchmark: Benchmark, connection: duckdb.DuckDBPyConnection, files: int
) -> None:
    """Creates the tables in Spark's catalog, and Z-orders the large ones."""
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {benchmark.name}")
    spark.sql(f"USE {benchmark.name}")
    for (name,) in connection.execute("SHOW TABLES").fetchall():
        source = benchmark.folder / f"{name}.parquet"
        connection.execute(f"COPY {name} TO '{source}' (FORMAT parquet)")
        folder = demo.OUTPUT / "warehouse" / f"{benchmark.name}.db" / name
        shutil.rmtree(folder, ignore_errors=True)
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.read.parquet(str(source)).write.saveAsTable(name)
        if name in benchmark.large:
            size = sum(file.stat().st_size for file in folder.glob("*.parquet"))
            spark.conf.set("spark.sql.zorder.optimize.targetFileSize", str(size // files))
            table = pyzorder.ZOrderTable.forName(spark, name)
            table.optimize().executeZOrderBy(*benchmark.large[name])
    spark.conf.unset("spark.sql.zorder.optimize.targetFileSize")


def bounds_of(
    benchmark: Benchmark, connection: duckdb.DuckDBPyConnection
) -> Iterator[tuple[str, FileBounds]]:
    """Yields the bounds of the large tables' files, as computed by DuckDB."""
    for table in benchmark.large:
        files = demo.OUTPUT / "warehouse" / f"{benchmark.name}.db" / table / "*.parquet"
        columns = [
            name
            for name, data_type, *_ in connection.execute(f"DESCRIBE {table}").fetchall()
            if data_type in ("INTEGER", "BIGINT", "DATE")
        ]
        lists = ", ".join(f"min({name}), max({name})" for name in columns)
        found = connection.execute(
            f"SELECT {lists} FROM read_parquet('{files}', filename = true) GROUP BY filename"
        ).fetchall()
        yield table, FileBounds.of(columns, found)


def without_limit(query: str) -> exp.Expression:
    """The query without its final LIMIT, which would choose arbitrarily among tied rows."""
    tree = sqlglot.parse_one(query, dialect="duckdb")
    tree.set("limit", None)
    return tree


def comparable(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """The rows in a fixed order. Numbers are rounded because engines round averages differently."""

    def plain(value: Any) -> Any:
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, (int, float, Decimal)):
            return "nan" if math.isnan(value) else float(f"{float(value):.5g}")
        if isinstance(value, (datetime.date, datetime.datetime)):
            return str(value)[:10]
        return str(value).rstrip()

    return sorted((tuple(map(plain, row)) for row in rows), key=repr)


def same(some: Sequence[Sequence[Any]], others: Sequence[Sequence[Any]]) -> bool:
    """Whether two answers are equal. The last of five significant digits may differ."""
    left, right = comparable(some), comparable(others)
    return len(left) == len(right) and all(
        a == b
        or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=2e-4))
        for one, other in zip(left, right, strict=True)
        for a, b in zip(one, other, strict=True)
    )


def measured(
    session: Session,
    benchmark: Benchmark,
    connection: duckdb.DuckDBPyConnection,
    query: str,
    pairs: int,
) -> tuple[list[Any], Runs, str]:
    """Returns the scans of the large tables, the cost of the runs, and how the answers compare."""
    whole = without_limit(query)
    text = whole.sql("spark")
    answers = {skips: session.run(text, skips)[1] for skips in (False, True)}
    differs = [] if same(answers[False], answers[True]) else ["without skipping"]
    if not same(answers[True], connection.execute(whole.sql("duckdb")).fetchall()):
        differs.append("DuckDB")
    text, runs = sqlglot.transpile(query, read="duckdb", write="spark")[0], Runs()
    df, _, _ = session.run(text, True)
    scans = [scan for scan in pyzorder.explain(df) if scan.table.split(".")[-1] in benchmark.large]
    for pair in range(1 + 2 * pairs):
        if pair > pairs and not runs.disagree():
            break
        for skips in (True, False) if pair % 2 else (False, True):
            _, _, cost = session.run(text, skips)
            if pair > 0:
                runs.add(skips, *cost)
    return scans, runs, " and ".join(differs)


def how(scans: Sequence[Any]) -> str:
    """What the joins of a query skip files by."""
    texts = [text for scan in scans if scan.skipped_by_joins for text in scan.details["joinKeys"]]
    # a range is described by the number of files from which it is derived
    by_ranges = [bool(re.search(r"\d files?\b", text)) for text in texts]
    kinds = {"keys": not all(by_ranges), "ranges": any(by_ranges)}
    return " and ".join(kind for kind, is_used in kinds.items() if is_used) or "-"


def predicted(found: Mapping[str, Sequence[Any]], scans: Sequence[Any]) -> float:
    """The number of files that the model predicts for a query. Spark may scan a table more or less
    often than the query names it. If it scans the table once, that scan needs the files of all
    occurrences. Otherwise, each scan adds the average prediction for its table."""
    names = [scan.table.split(".")[-1] for scan in scans]
    expected = 0.0
    for name, scan in zip(names, scans, strict=True):
        masks = found.get(name)
        if masks is None:
            expected += scan.total
        elif names.count(name) == 1:
            expected += int(np.logical_or.reduce(masks).sum())
        else:
            expected += statistics.mean(int(mask.sum()) for mask in masks)
    return expected


def lines(session: Session, arguments: argparse.Namespace) -> Iterator[tuple[list[str], Runs]]:
    """Yields the table row and the cost of each query."""
    known = Measurements(arguments.keep, arguments.scale, arguments.files, arguments.pairs)
    only = arguments.queries.split(",") if arguments.queries else None
    for benchmark in BENCHMARKS:
        connection = connect(benchmark, arguments.scale)
        write_tables(session.spark, benchmark, connection, arguments.files)
        model = Model(connection, dict(bounds_of(benchmark, connection)))
        for number, query in connection.execute(
            f"SELECT query_nr, query FROM {benchmark.name}_queries() ORDER BY query_nr"
        ).fetchall():
            name = f"{benchmark.prefix}{number}"
            if only and name not in only:
                continue
            if (measured_before := known.get(name)) is not None:
                yield measured_before
                continue
            scans, runs, differs = measured(session, benchmark, connection, query, arguments.pairs)
            try:
                expected = f"{predicted(model.files(query), scans):.0f}"
            except duckdb.Error:
                expected = "-"
            opened, total = sum(scan.opened for scan in scans), sum(scan.total for scan in scans)
            by_joins = sum(scan.skipped_by_joins for scan in scans)
            row = [
                name, str(opened), expected, str(total), str(total - opened - by_joins),
                str(by_joins), how(scans),
                f"{statistics.median(runs.cpu[True]):.2f} s", f"{runs.cpu_ratio:.2f}",
                f"{runs.time_ratio:.2f}", f"{runs.slowest:.2f}",
                f"not as {differs}" if differs else "equal",
            ]  # fmt: skip
            known.add(row, runs)
            yield row, runs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1, help="scale factor of the data")
    parser.add_argument("--files", type=int, default=80, help="number of files per large table")
    parser.add_argument("--pairs", type=int, default=5, help="number of pairs of runs per query")
    parser.add_argument("--queries", default="", help="run only these queries, for example ds6,h3")
    parser.add_argument(
        "--continue",
        dest="keep",
        action="store_true",
        help="keep the measurements of an earlier run",
    )
    arguments = parser.parse_args()
    session, rows, all_runs = Session(), [HEADER], []
    print(" | ".join(HEADER))
    for row, runs in lines(session, arguments):
        rows.append(row)
        all_runs.append(runs)
        print(" | ".join(row), flush=True)
    session.spark.stop()
    opened, total = (sum(int(row[column]) for row in rows[1:]) for column in (1, 3))
    known = [row for row in rows[1:] if row[2] != "-"]
    ratio = sum(int(row[1]) for row in known) / max(1, sum(int(row[2]) for row in known))
    mean = statistics.geometric_mean([runs.cpu_ratio for runs in all_runs])
    with_jit = statistics.geometric_mean([runs.cpu_ratio_with_jit for runs in all_runs])
    different = [row[0] for row in rows[1:] if row[-1] != "equal"]
    said = (
        f"{len(rows) - 1} queries open {opened:,} of {total:,} files of the large tables, "
        f"{ratio:.2f} times as many as the model predicts. The geometric mean of the "
        f"ratio of CPU time with skipping to CPU time without it is {mean:.2f}, or {with_jit:.2f} "
        f"including the JIT compiler. "
        + (f"Different answers: {', '.join(different)}." if different else "All answers are equal.")
    )
    print(said)
    if not arguments.queries:
        report.write("tpc", "TPC-DS and TPC-H with and without skipping", said, rows)
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
