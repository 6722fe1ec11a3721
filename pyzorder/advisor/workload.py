"""The workload on one table: how queries read it, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

#: Name of the key column in queries for a join's other side. The JVM expects this name.
KEY = "_zorder_key"


class NotUnderstood(Exception):
    """The advisor cannot use a statement or a part of one. The message gives the reason."""


@dataclass(frozen=True)
class Predicate:
    """A condition that is true for every row that a query uses."""

    sql: str
    """The condition in Spark's SQL dialect. It refers only to the table's columns."""

    uses: tuple[tuple[str, str], ...]
    """Each column as SQL, paired with `equality`, `range`, `in`, `prefix` or `other`."""


@dataclass(frozen=True)
class KeyJoin:
    """A join with the table. The other side determines which values of a column the query uses."""

    column: str
    """An SQL expression that computes the key from the table's columns."""

    other: str
    """A query for the other side, whose key column is named KEY; empty if that side has no
    filter."""

    broadcast: bool
    """Whether the other side is known to be broadcast. Otherwise, Spark decides."""


@dataclass(frozen=True)
class Reading:
    """A scan of the table by a query."""

    predicates: tuple[Predicate, ...] = ()
    joins: tuple[KeyJoin, ...] = ()


@dataclass
class Workload:
    """The readings in a workload, and their counts.

    Parts of the workload that were left out are counted by reason, with an example for each reason.
    """

    readings: Counter[Reading] = field(default_factory=Counter)
    statements: int = 0
    reading_statements: int = 0
    unread: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, readings: Iterable[Reading]) -> None:
        """Counts a statement and its readings of the table, if there are any."""
        found = list(readings)
        self.statements += 1
        self.reading_statements += bool(found)
        self.readings.update(found)

    def leave_out(self, reason: str, example: str, count: int = 1) -> None:
        """Counts a part of the workload that the advisor cannot use."""
        self.unread[reason] += count
        self.examples.setdefault(reason, " ".join(example.split())[:200])

    def merge(self, other: Workload, times: int = 1) -> None:
        """Adds the counts of another workload, multiplied by `times`."""
        for reading, count in other.readings.items():
            self.readings[reading] += count * times
        self.statements += other.statements * times
        self.reading_statements += other.reading_statements * times
        for reason, count in other.unread.items():
            self.leave_out(reason, other.examples[reason], count * times)


@dataclass(frozen=True)
class Relation:
    """The relation that a name in a query refers to.

    `columns` is None if the relation does not exist.
    """

    columns: tuple[str, ...] | None
    is_view: bool = False
    is_temporary: bool = False
    text: str | None = None
    namespace: tuple[str, ...] = ()


class Catalog(Protocol):
    """Resolves names in queries."""

    def relation(self, parts: tuple[str, ...]) -> Relation:
        """Returns the table or view to which the session resolves a name, given in parts."""
        ...


@dataclass(frozen=True)
class TableNames:
    """The names that queries can use for the table."""

    parts: tuple[str, ...]
    """Database and table; empty for a table at a path."""

    path: str
    """The path of the table's folder, qualified by Spark."""

    columns: tuple[str, ...]

    def match(self, parts: tuple[str, ...]) -> bool:
        """Whether the parts of a name, which include the database, refer to the table."""
        if len(parts) == 2 and parts[0].lower() in ("parquet", "orc"):
            return same_path(parts[1], self.path)
        named = tuple(p.lower() for p in parts)
        if len(named) == 3 and named[0] == "spark_catalog":
            named = named[1:]
        return bool(self.parts) and named == tuple(p.lower() for p in self.parts)


def same_path(one: str, other: str) -> bool:
    """Whether two paths are equal, ignoring the scheme `file:` and trailing slashes."""
    return bare_path(one) == bare_path(other)


def bare_path(path: str) -> str:
    """Removes the scheme `file:` and trailing slashes from a path."""
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    return path.rstrip("/")
