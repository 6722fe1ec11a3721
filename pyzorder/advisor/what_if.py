"""Evaluates layouts of a table for a workload, and recommends one if rewriting the table is
worthwhile."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from pyzorder import bridge, errors
from pyzorder.advisor.advice import Advice, ColumnUse, LeftOut
from pyzorder.advisor.layout_search import Found, listed, search
from pyzorder.advisor.workload import NotUnderstood, Reading, Relation, TableNames, Workload
from pyzorder.session import check_session
from pyzorder.table import quoted
from pyzorder.text.wording import counted, percent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_READINGS = 2000
MOST_KEY_QUERIES = 200
SELECTIVITY_ROWS = 2000
FEW_READINGS = 10


def advise(
    spark: SparkSession,
    table: str,
    queries: str | Path | Sequence[str] | None = None,
    event_log: str | Path | None = None,
    *,
    max_columns: int = 4,
    margin: float = 0.1,
    least_gain: float = 0.2,
    sample_rows: int = 500_000,
    weigh: bool = True,
) -> Advice:
    """Recommends clustering columns for a table and a workload, if clustering is worthwhile.

    For each candidate, lays out a sample of the table as OPTIMIZE would. Then evaluates the
    workload's filters and join keys against the bounds of the resulting files, using the same code
    that skips files in queries. Candidates are compared by the total size of the files that would
    be opened. The table is not changed. The result also reports how
    many parts of the workload the advisor could not use.

    Args:
        table: the table's name in SQL syntax, or the path of its folder. If neither `queries` nor
            `event_log` is given, the workload is the one that sessions have recorded for the table
            (`spark.sql.zorder.workload.record`).
        queries: a file of SQL statements that end with semicolons, or a list of statements.
        event_log: a folder of Spark event logs, or a single log. The logs may be compressed with
            Spark's codecs.
        max_columns: maximum number of clustering columns, between 1 and 4.
        margin: fraction (0 to 1) by which each additional column must reduce the total size
            of the files that are opened.
        least_gain: fraction (0 to 1) by which a recommendation must reduce this size.
        sample_rows: maximum number of rows to sample.
        weigh: whether to measure how the order of rows affects the size of files. This measurement
            reads the table or some of its partitions once, and writes a few files of the best
            layouts to the tasks' local folders. If False, the table's size is assumed not to
            change.

    Returns:
        The recommendation and the evidence for it.

    Raises:
        ZOrderError: no workload is given or recorded, the workload cannot be read, the session is a
            Connect session, the session does not run pyzorder, sqlglot is not installed, or an
            argument is out of range.
    """
    if bridge.is_connect(spark):
        raise errors.connect_has_no_advisor()
    check_parser()
    check_session(spark)
    for name, value, low, high in (("max_columns", max_columns, 1, 4), ("margin", margin, 0, 1),
                                   ("least_gain", least_gain, 0, 1),
                                   ("sample_rows", sample_rows, 1, 2**31 - 1)):  # fmt: skip
        if not low <= value <= high:
            raise errors.invalid_limit(name, value, f"between {low} and {high}")
    what_if = WhatIf(spark, table)
    what_if.read(queries, None if event_log is None else str(event_log))
    return what_if.advice(max_columns, margin, least_gain, sample_rows, weigh)


def check_parser() -> None:
    """Raises a ZOrderError unless sqlglot is installed."""
    if find_spec("sqlglot") is None:
        raise errors.sqlglot_missing()


class SparkCatalog:
    """Resolves names in queries as the session does."""

    def __init__(self, api: Any) -> None:
        self.relation = lru_cache(maxsize=None)(lambda parts: relation(api, parts))


def relation(api: Any, parts: tuple[str, ...]) -> Relation:
    """Returns the relation that a name refers to in the session."""
    found = json.loads(api.relation(list(parts)))
    return Relation(
        columns=tuple(found["columns"]) if "columns" in found else None,
        is_view=found.get("isView", False),
        is_temporary=found.get("isTemporary", False),
        text=found.get("text"),
        namespace=tuple(found.get("namespace", ())),
    )


class WhatIf:
    """Reads the workload of one table, and evaluates layouts for it."""

    def __init__(self, spark: SparkSession, table: str) -> None:
        self._spark = spark
        self._api = bridge.advisor(spark, table)
        is_path = "/" in table and "`" not in table and "'" not in table
        self._target = quoted(table) if is_path else table
        self._described = json.loads(self._api.table())
        self._names = TableNames(
            tuple(self._described["name"]),
            self._described["root"],
            tuple(self._described["columns"]),
        )
        self.workload = Workload()
        self._spelled = {name.lower(): name for name in self._described["columns"]}

    def read(self, queries: str | Path | Sequence[str] | None, event_log: str | None) -> None:
        """Reads the workload."""
        from pyzorder.advisor import event_log as logs
        from pyzorder.advisor.statements import StatementReader

        if queries is None and event_log is None:
            self._read_recorded()
        database = self._spark.catalog.currentDatabase()
        reader = StatementReader(self._names, SparkCatalog(self._api), self.workload, database)
        if queries is not None:
            for statement in statements_of(queries):
                reader.read(statement)
        if event_log is not None:
            logs.read(self._spark, event_log, self._names, reader, self.workload)

    def _read_recorded(self) -> None:
        from pyzorder.advisor import recorded

        rows = self._spark.sql(f"SELECT * FROM zorder_workload({quoted(self._target)})").collect()
        if not rows:
            raise errors.no_workload(self._target)
        recorded.read(rows, self._names, self.workload)

    def advice(
        self, max_columns: int, margin: float, least_gain: float, sample_rows: int, weigh: bool
    ) -> Advice:
        """Evaluates the layouts."""
        weights = self._send_readings()
        files = json.loads(self._api.files())
        columns = json.loads(self._api.columns())
        drawn = json.loads(self._api.draw(sample_rows)) if columns else {"drawn": 0, "judged": 0}
        found = search(
            self._api, tuple(weights.values()), max_columns, margin, weigh and files["newFiles"] > 1
        )
        statement, recommended, reason = self._recommendation(found, columns, files, least_gain)
        return Advice(
            table=self._target,
            statement=statement,
            recommended=recommended,
            reason=reason,
            layouts=found.candidates,
            sorted_layouts=found.sorts,
            present=found.present,
            present_indexed=found.present_indexed,
            columns=self._uses(weights, bool(columns)),
            left_out=tuple(
                LeftOut(reason, count, self.workload.examples[reason])
                for reason, count in self.workload.unread.most_common()
            ),
            statements=self.workload.statements,
            reading_statements=self.workload.reading_statements,
            readings=sum(self.workload.readings.values()),
            rows=files["rows"],
            sampled_rows=drawn["drawn"],
            files=files["files"],
            bytes=files["bytes"],
            new_files=files["newFiles"],
            remarks=tuple(self._remarks(weights, drawn, files, found, margin)),
        )

    def _send_readings(self) -> dict[Reading, int]:
        """Sends the readings to the JVM, and returns their counts in the same order."""
        readings = dict(self.workload.readings)
        if len(readings) > MOST_READINGS:
            kept = random.Random(0).sample(sorted(readings, key=repr), MOST_READINGS)
            self.workload.leave_out(
                f"scans beyond a random sample of {MOST_READINGS:,} distinct ones",
                "", sum(readings.values()) - sum(readings[r] for r in kept))  # fmt: skip
            readings = {reading: readings[reading] for reading in kept}
        sent: set[str] = set()
        for reading, count in readings.items():
            for predicate in reading.predicates:
                reason = json.loads(self._api.predicate(predicate.sql))["reason"]
                if reason is not None:
                    self.workload.leave_out(f"filters: {reason}", predicate.sql, count)
            for join in reading.joins:
                if join.other and join.other not in sent and len(sent) >= MOST_KEY_QUERIES:
                    self.workload.leave_out(
                        f"joins beyond {MOST_KEY_QUERIES:,} distinct ones", join.other, count
                    )
                elif join.other:
                    sent.add(join.other)
                    reason = self._send_join(join.column, join.other, join.broadcast)
                    if reason is not None:
                        self.workload.leave_out(f"joins: {reason}", join.other, count)
            self._api.read()
        return readings

    def _send_join(self, column: str, other: str, broadcast: bool) -> str | None:
        from pyspark.errors import PySparkException

        try:
            rows = self._spark.sql(other)
        except PySparkException as failure:
            return str(failure).splitlines()[0]
        reason: str | None = json.loads(self._api.join(other, column, rows._jdf, broadcast))[
            "reason"
        ]
        return reason

    def _uses(self, weights: dict[Reading, int], is_drawn: bool) -> tuple[ColumnUse, ...]:
        """Returns how the workload uses each column, starting with the most frequently used
        column."""
        from pyzorder.advisor.column_uses import columns_of

        counts: dict[str, Counter[str]] = {}
        for reading, weight in weights.items():
            kinds = {use for predicate in reading.predicates for use in predicate.uses}
            kinds |= {(name, "join") for join in reading.joins for name in columns_of(join.column)}
            named: dict[str, set[str]] = {}
            for name, kind in kinds:
                named.setdefault(self._spelling(name), set()).add(kind)
            for name, own in named.items():
                counts.setdefault(name, Counter()).update(dict.fromkeys([*own, "readings"], weight))
        left: dict[str, list[float]] = {}
        if is_drawn:
            shares = json.loads(self._api.selectivity(SELECTIVITY_ROWS))
            for own, weight in zip(shares, weights.values(), strict=True):
                for name, value in own.items():
                    left.setdefault(name, []).extend([value] * weight)
        return tuple(
            ColumnUse(
                column=name,
                readings=of["readings"],
                equality=of["equality"],
                range=of["range"],
                in_list=of["in"],
                prefix=of["prefix"],
                join=of["join"],
                other=of["other"],
                rows_left=median(left[name]) if name in left else None,
            )
            for name, of in sorted(counts.items(), key=lambda item: (-item[1]["readings"], item[0]))
        )

    def _spelling(self, name: str) -> str:
        """Returns a column's name as the table spells it."""
        first, dot, rest = name.partition(".")
        return self._spelled.get(first.lower(), first) + dot + rest

    def _recommendation(
        self,
        found: Found,
        columns: Sequence[str],
        files: dict[str, Any],
        least_gain: float,
    ) -> tuple[str | None, tuple[str, ...], str]:
        """Returns the statement to run, if any, its clustering columns, and the reason."""
        if not self.workload.readings:
            return None, (), f"Nothing to recommend: the workload never scans {self._target}."
        best = found.best
        if not columns or best is None:
            return None, (), (
                f"Nothing to recommend: the workload scans {self._target}, but has no filter or "
                "join that could skip files if the table were clustered."
            )  # fmt: skip
        if files["newFiles"] < 2:
            return None, (), (
                f"Nothing to recommend: {self._target} fits into one file of the target size "
                "(spark.sql.zorder.optimize.targetFileSize), so no file could be skipped."
            )  # fmt: skip
        indexed, now = found.present_indexed, found.present

        def saves(then: float, before: float) -> bool:
            return before > 0 and then <= (1 - least_gain) * before

        if set(best.columns) == set(files["clusteredBy"]):
            return None, (), (
                f"Nothing to recommend: all files are already clustered by {listed(best.columns)}, "
                "the best columns found."
            )  # fmt: skip
        if saves(best.bytes_opened, indexed.bytes_opened):
            return f"OPTIMIZE {self._target} {best.name}", best.columns, (
                f"{best.name}: queries would read {percent(best.share_of_present)} of the "
                "data that they read today."
            )  # fmt: skip
        if saves(indexed.bytes_opened, now.bytes_opened):
            verb = "REFRESH" if self._described["indexed"] else "CREATE"
            return f"{verb} SKIPPING INDEX ON {self._target}", (), (
                "The current layout is already good: with all files indexed, queries would read "
                f"{percent(indexed.share_of_present)} of the data that they read today, and with "
                f"the best layout {percent(best.share_of_present)}."
            )  # fmt: skip
        return None, (), (
            f"Nothing to recommend: with the best layout found, {best.name}, queries would still "
            f"read {percent(best.share_of_present)} of the data that they read today."
        )  # fmt: skip

    def _remarks(
        self,
        weights: dict[Reading, int],
        drawn: dict[str, int],
        files: dict[str, Any],
        layouts: Found,
        margin: float,
    ) -> list[str]:
        found = [f"OPTIMIZE {self._target} without columns: {files['verdict']}"]
        if weights and len(weights) < FEW_READINGS:
            found.append(
                f"the workload scans the table in only {counted(len(weights), 'different way')}: "
                "the advice may not suit other queries."
            )
        if drawn["judged"] and drawn["judged"] < files["newFiles"]:
            found.append(
                f"OPTIMIZE would write {files['newFiles']:,} files, which are too many to evaluate "
                f"on {drawn['drawn']:,} sampled rows, so layouts of {drawn['judged']:,} files "
                "were compared. To evaluate more files, increase sample_rows."
            )
        best, sorts = layouts.best, layouts.sorts
        if best and sorts and sorts[0].bytes_opened < (1 - margin) * best.bytes_opened:
            found.append(
                f"{sorts[0].name}: queries would read {percent(sorts[0].share_of_present)} of the "
                "data that they read today. To sort the table this way, set "
                "spark.sql.zorder.optimize.curve to linear and run OPTIMIZE … ZORDER BY."
            )
        return found


def statements_of(queries: str | Path | Sequence[str]) -> list[str]:
    """Returns the statements in a file or a list.

    A piece of text that cannot be split into statements counts as one statement.

    Raises:
        ZOrderError: the file cannot be read.
    """
    from pyzorder.advisor.statements import split

    if isinstance(queries, (str, Path)):
        try:
            text = Path(queries).read_text(encoding="utf-8")
        except (OSError, UnicodeError) as failure:
            raise errors.unreadable_queries(str(queries), str(failure)) from None
        try:
            return split(text)
        except NotUnderstood:  # for example, an open quote: split after lines that end with `;`
            queries = re.split(r"(?<=;)[ \t]*\n", text)
    return [statement for text in queries for statement in _split_or_whole(text)]


def _split_or_whole(text: str) -> list[str]:
    from pyzorder.advisor.statements import split

    try:
        return split(text)
    except NotUnderstood:
        return [text]
