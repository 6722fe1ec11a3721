"""Records what each process did and when, and derives from these records which rows a query may
see.

Rows are written in batches of ROWS rows. Each batch is written by one statement. A statement is
recorded before and after it runs. Between these two records, the progress of the statement is
unknown. While no statement is running, the expected rows are known exactly. All processes use the
machine's monotonic clock, so their times are comparable.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROWS = 40

#: The columns of every table. `a` is the clustering column, and `p` is the partition column.
SCHEMA = "id BIGINT, op BIGINT, a BIGINT, pad STRING, p INT"


#: Records about rows. They mark the beginning and the end of adding batches, removing batches and
#: moving the table. If a removal fails ("spared"), its batches may or may not still exist.
KINDS = {"adding": "add", "added": "add", "removing": "remove", "removed": "remove",
         "spared": "remove", "moving": "move", "moved": "move"}  # fmt: skip


def key(op: int, i: int) -> int:
    """The value of column `a` in row `i` of a batch. It is between 0 and 999."""
    return (op * 37 + i * 11) % 1000


def batch_sql(op: int, p: int | None) -> list[str]:
    """SQL expressions for the columns of a batch over `spark.range(ROWS)`. If `p` is None, the
    partition column is left out."""
    columns = [f"id + {op * ROWS} AS id", f"{op}L AS op", f"({op * 37} + id * 11) % 1000 AS a",
               f"repeat(string(({op * 37} + id * 11) % 1000), 9) AS pad"]  # fmt: skip
    return columns + ([f"{p} AS p"] if p is not None else [])


class Book:
    """The file that contains the records of a process. All threads of the process write to it."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}-{os.getpid()}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._lock = threading.Lock()

    def note(self, what: str, at: float | None = None, **fields: Any) -> None:
        """Writes the record as one line. The line is not lost if the process is killed afterwards.
        `at` defaults to the current time."""
        line = json.dumps({"at": time.monotonic() if at is None else at, "what": what, **fields})
        with self._lock:
            os.write(self._file, line.encode() + b"\n")


def lines(folder: Path) -> list[dict[str, Any]]:
    """The records of all processes. Incomplete last lines are left out."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().split("\n")[:-1]:
            found.append(json.loads(line))
    return found


@dataclass
class Batch:
    """The rows that one statement wrote. Times are None until they are recorded."""

    op: int
    p: int
    adding: float
    added: float | None = None
    removing: float | None = None
    removed: float | None = None

    def certain(self, since: float, until: float) -> bool:
        """Whether the rows definitely exist during the whole interval."""
        return (
            self.added is not None
            and self.added <= since
            and (self.removing is None or self.removing >= until)
        )

    def possible(self, since: float, until: float) -> bool:
        """Whether the rows may exist at some time during the interval."""
        return self.adding <= until and (self.removed is None or self.removed >= since)

    def matching(self, low: int, high: int, p: int | None) -> int:
        """How many rows of the batch a query for `a` in [low, high) returns."""
        if p is not None and p != self.p:
            return 0
        return sum(low <= key(self.op, i) < high for i in range(ROWS))


@dataclass
class Table:
    batches: dict[int, Batch] = field(default_factory=dict)
    #: Intervals in which other processes moved, deleted or replaced files. During these intervals,
    #: a query may fail, even in plain Spark.
    troubled: list[tuple[float, float]] = field(default_factory=list)
    #: Intervals in which the whole table was moved. During these intervals, a query may see any
    #: part of the table.
    unclear: list[tuple[float, float]] = field(default_factory=list)


def overlap(spans: Iterable[tuple[float, float]], since: float, until: float) -> bool:
    return any(begin <= until and end >= since for begin, end in spans)


class Ledger:
    """The state of the tables according to the records."""

    def __init__(self, notes: list[dict[str, Any]]) -> None:
        self.tables: dict[str, Table] = {}
        open_spans: dict[tuple[str, str, int], float] = {}
        for note in sorted(notes, key=lambda note: float(note["at"])):
            what, at = str(note["what"]), float(note["at"])
            if what not in KINDS:
                continue
            table = self.tables.setdefault(str(note["table"]), Table())
            span = (str(note["table"]), KINDS[what], int(note["step"]))
            if what == "adding":
                table.batches[note["op"]] = Batch(int(note["op"]), int(note["p"]), at)
            elif what == "added":
                table.batches[note["op"]].added = at
            elif what in ("removing", "moving"):
                open_spans[span] = at
                for op in note.get("ops", ()):
                    table.batches[op].removing = min(at, table.batches[op].removing or at)
            else:
                begin = open_spans.pop(span)
                table.troubled.append((begin, at))
                if KINDS[what] == "move":
                    table.unclear.append((begin, at))
                for op in note.get("ops", ()) if what == "removed" else ():
                    table.batches[op].removed = at
        for (name, kind, _), begin in open_spans.items():
            self.tables[name].troubled.append((begin, float("inf")))
            if kind == "move":
                self.tables[name].unclear.append((begin, float("inf")))

    def judge(self, query: dict[str, Any]) -> str | None:
        """
        Describes what is wrong with a query's answer. Returns None if the answer is right.

        The query selected its files between `since` and `until`, and finished reading them at
        `ended`.
        """
        table = self.tables.get(query["table"], Table())
        since, until = float(query["since"]), float(query["until"])
        if query.get("error"):
            if overlap(table.troubled, since, float(query["ended"])) and query["known"]:
                return None
            return f"failed although nobody changed its files: {query['error']}"
        low, high, p = int(query["low"]), int(query["high"]), query["p"]
        unclear = overlap(table.unclear, since, until)
        certain, possible = {}, {}
        for batch in table.batches.values():
            if not batch.possible(since, until):
                continue
            rows = batch.matching(low, high, p)
            if rows:
                possible[batch.op] = rows
                if not unclear and batch.certain(since, until):
                    certain[batch.op] = rows
        if "count" in query:
            least, most = sum(certain.values()), sum(possible.values())
            if least <= query["count"] <= most:
                return None
            return f"counted {query['count']} rows instead of {least} to {most}"
        seen = {int(op): tuple(counts) for op, counts in query["seen"].items()}
        again = {int(op): count for op, count in query.get("again", {}).items()}
        for op, (count, distinct) in seen.items():
            if op in again and again[op] != count:
                return f"saw {count} rows of batch {op} in one scan, but {again[op]} in the other"
            if count != distinct:
                return f"saw {count} rows of batch {op}, only {distinct} of them distinct"
            if count > possible.get(op, 0):
                return f"saw {count} rows of batch {op}, but at most {possible.get(op, 0)} exist"
        for op, rows in certain.items():
            if seen.get(op, (0, 0))[0] != rows:
                return f"saw {seen.get(op, (0, 0))[0]} rows of batch {op} instead of {rows}"
        return None
