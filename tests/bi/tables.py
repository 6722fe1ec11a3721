"""The tables in the load test, and the correct answers to all queries on them.

Batch k consists of BATCH consecutive ids, starting at k * BATCH. A row's values are computed from
its id, so the number of batches determines the rows of a table.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

#: The number of rows that an INSERT adds. An INSERT writes a single file, so a query sees either
#: all rows of the INSERT or none.
BATCH = 500

#: The initial number of batches in a table. Each batch is one file.
FIRST = 16

VALUES = "CAST(id * 7919 % 997 AS INT) AS a, CAST(id * 104729 % 991 AS INT) AS b, id"


@dataclass(frozen=True)
class Question:
    """A query, and a function that computes the expected rows from the number of batches in the
    table. All values in these rows are text."""

    sql: str
    answer: Callable[[int], list[list[str]]]


@dataclass
class LoadTable:
    """A table with a single writer. `begun` and `ended` contain the times at which the INSERTs
    began and ended."""

    name: str
    columns: str
    storage: str
    begun: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)

    @property
    def create(self) -> str:
        return f"CREATE TABLE {self.name} ({self.columns}) {self.storage}"

    def insert(self, batch: int) -> str:
        """The statement that appends a batch as one file."""
        partition = f", {batch % 4} AS p" if "PARTITIONED" in self.storage else ""
        low = batch * BATCH
        return (
            f"INSERT INTO {self.name} SELECT {VALUES}{partition} "
            f"FROM range({low}, {low + BATCH}, 1, 1)"
        )

    def batches(self, since: float, until: float) -> range:
        """The range of batch counts that a query may see if it runs between the given times. The
        query must see each batch whose INSERT had ended by `since`, and may see each batch whose
        INSERT had begun by `until`."""
        ended = sum(time <= since for time in list(self.ended))
        begun = sum(time <= until for time in list(self.begun))
        return range(ended, begun + 1)

    def question(self, chance: random.Random) -> Question:
        """A random dashboard query."""
        return chance.choice(QUESTIONS)(self.name, chance.randrange(997), chance.randrange(900))


def ids(batches: int) -> np.ndarray:
    return np.arange(batches * BATCH, dtype=np.int64)


def texts(*values: object) -> list[str]:
    return [str(value) for value in values]


def lookup(table: str, a: int, b: int) -> Question:
    def answer(batches: int) -> list[list[str]]:
        found = ids(batches)
        found = found[found * 7919 % 997 == a]
        return [texts(len(found), found.sum(), (found * 104729 % 991).max())]

    return Question(f"SELECT count(*), sum(id), max(b) FROM {table} WHERE a = {a}", answer)


def box(table: str, a: int, b: int) -> Question:
    def answer(batches: int) -> list[list[str]]:
        found = ids(batches)
        of_a, of_b = found * 7919 % 997, found * 104729 % 991
        found = found[(of_a >= a) & (of_a <= a + 99) & (of_b >= b) & (of_b < b + 90)]
        return [texts(len(found), found.sum() if len(found) else None)]

    where = f"a BETWEEN {a} AND {a + 99} AND b >= {b} AND b < {b + 90}"
    return Question(f"SELECT count(*), sum(id) FROM {table} WHERE {where}", answer)


def some_rows(table: str, a: int, b: int) -> Question:
    def answer(batches: int) -> list[list[str]]:
        found = ids(batches)
        found = found[found * 7919 % 997 == a]
        return [texts(i, a, i * 104729 % 991) for i in found]

    return Question(f"SELECT id, a, b FROM {table} WHERE a = {a} ORDER BY id", answer)


def extremes(table: str, a: int, b: int) -> Question:
    def answer(batches: int) -> list[list[str]]:
        found = ids(batches)
        of_a = found * 7919 % 997
        return [texts(len(found), of_a.min(), of_a.max(), found.max())]

    return Question(f"SELECT count(*), min(a), max(a), max(id) FROM {table}", answer)


def newest(table: str, a: int, b: int) -> Question:
    def answer(batches: int) -> list[list[str]]:
        return [texts(i) for i in ids(batches)[:-6:-1]]

    return Question(f"SELECT id FROM {table} ORDER BY id DESC LIMIT 5", answer)


QUESTIONS: list[Callable[[str, int, int], Question]] = [lookup, box, some_rows, extremes, newest]

COLUMNS = "a INT, b INT, id BIGINT"


def load_tables() -> list[LoadTable]:
    """Returns a Parquet table, an ORC table, a partitioned table and a Hive table. The tables have
    no batches yet."""
    return [
        LoadTable("load_parquet", COLUMNS, "USING parquet"),
        LoadTable("load_orc", COLUMNS, "USING orc"),
        LoadTable("load_parts", f"{COLUMNS}, p INT", "USING parquet PARTITIONED BY (p)"),
        LoadTable("load_hive", COLUMNS, "STORED AS PARQUET"),
    ]


class Ledger:
    """Records how long queries take, how often each statement runs, and which errors occur."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._taken: list[float] = []
        self.counts: dict[str, int] = {}
        self.wrong: list[str] = []

    def count(self, what: str) -> None:
        with self._turn:
            self.counts[what] = self.counts.get(what, 0) + 1

    def queried(self, seconds: float, wrong: str | None) -> None:
        with self._turn:
            self._taken.append(seconds)
            self.counts["queries"] = self.counts.get("queries", 0) + 1
            if wrong is not None:
                self.wrong.append(wrong)

    def failed(self, what: str) -> None:
        with self._turn:
            self.wrong.append(what)

    def taken(self) -> list[float]:
        """The durations, in seconds, of all queries since the last call."""
        with self._turn:
            taken, self._taken = self._taken, []
        return taken


def judge(table: LoadTable, question: Question, seen: list[list[str | None]], since: float,
          until: float | None = None) -> str | None:  # fmt: skip
    """Describes what is wrong with an answer. Returns None if the answer is right."""
    may = table.batches(since, time.monotonic() if until is None else until)
    got = [[str(value) for value in row] for row in seen]
    if any(got == question.answer(batches) for batches in may):
        return None
    older = next((n for n in range(may.start) if got == question.answer(n)), None)
    what = (
        f"is the answer of {may.start - older} batches earlier"
        if older is not None
        else f"is {got[:3]}"
    )
    return f"the answer to {question.sql} with {may.start} to {may.stop - 1} batches {what}"
