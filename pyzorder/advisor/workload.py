"""What a workload asks of one table: the readings of it, and what could not be made out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

#: The column of a join's other side that has the keys, as the JVM looks for it.
KEY = "_zorder_key"


class NotUnderstood(Exception):
    """A statement, or part of one, that the advisor cannot make use of; the text says why."""


@dataclass(frozen=True)
class Predicate:
    """A condition that every row which a query uses satisfies."""

    sql: str
    """Over the table's columns alone, in Spark's dialect."""

    uses: tuple[tuple[str, str], ...]
    """Pairs of a column, as SQL names it, and `equality`, `range`, `in`, `prefix` or `other`."""


@dataclass(frozen=True)
class KeyJoin:
    """A join whose other side tells which values of a column are used."""

    column: str
    """SQL over the table's columns."""

    other: str
    """The query that gives the other side, its key in the column KEY; empty: it has no filter."""

    broadcast: bool
    """Whether the other side is known to be broadcast; else as Spark would choose."""


@dataclass(frozen=True)
class Reading:
    """One scan of the table by one query."""

    predicates: tuple[Predicate, ...] = ()
    joins: tuple[KeyJoin, ...] = ()


@dataclass
class Workload:
    """Readings and how often each was asked for; what was left out, with an example of each."""

    readings: Counter[Reading] = field(default_factory=Counter)
    statements: int = 0
    reading_statements: int = 0
    unread: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, readings: Iterable[Reading]) -> None:
        """Counts a statement with its readings of the table: none, if it reads others."""
        found = list(readings)
        self.statements += 1
        self.reading_statements += bool(found)
        self.readings.update(found)

    def leave_out(self, reason: str, example: str, count: int = 1) -> None:
        """Counts what is not made use of."""
        self.unread[reason] += count
        self.examples.setdefault(reason, " ".join(example.split())[:200])

    def merge(self, other: Workload, times: int = 1) -> None:
        """Adds another one's counts, so many times."""
        for reading, count in other.readings.items():
            self.readings[reading] += count * times
        self.statements += other.statements * times
        self.reading_statements += other.reading_statements * times
        for reason, count in other.unread.items():
            self.leave_out(reason, other.examples[reason], count * times)


@dataclass(frozen=True)
class Relation:
    """What a name in a query means. `columns` None: nothing is known by that name."""

    columns: tuple[str, ...] | None
    is_view: bool = False
    is_temporary: bool = False
    text: str | None = None
    namespace: tuple[str, ...] = ()


class Catalog(Protocol):
    """Where names in queries are looked up."""

    def relation(self, parts: tuple[str, ...]) -> Relation:
        """The table or view of these name parts, as the session would find it."""
        ...


@dataclass(frozen=True)
class TableNames:
    """The names that the advised table goes by."""

    parts: tuple[str, ...]
    """Database and table; empty for one that is named by its path."""

    path: str
    """Its folder, as Spark qualifies it."""

    columns: tuple[str, ...]

    def match(self, parts: tuple[str, ...]) -> bool:
        """Whether these name parts, the database among them, mean the table."""
        if len(parts) == 2 and parts[0].lower() in ("parquet", "orc"):
            return same_path(parts[1], self.path)
        named = tuple(p.lower() for p in parts)
        if len(named) == 3 and named[0] == "spark_catalog":
            named = named[1:]
        return bool(self.parts) and named == tuple(p.lower() for p in self.parts)


def same_path(one: str, other: str) -> bool:
    """Whether two spellings mean one folder: with or without `file:`, slashes at the end."""
    return bare_path(one) == bare_path(other)


def bare_path(path: str) -> str:
    """A local path without scheme; another one as it is."""
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    return path.rstrip("/")
