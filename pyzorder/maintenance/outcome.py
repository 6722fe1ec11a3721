"""The outcome of maintaining a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Result = Literal["done", "planned", "nothing", "postponed", "in use", "failed"]


@dataclass(frozen=True)
class Outcome:
    """What maintenance did to a table, or why it did nothing.

    A table has several outcomes if maintenance runs several statements on it.
    """

    table: str
    """The table, as written in statements."""
    result: Result
    """
    - `done`: the statement was run.
    - `planned`: the statement would be run. This is the result of a dry run.
    - `nothing`: there is nothing to do.
    - `postponed`: the statement exceeds the budget or the time that is left.
    - `in use`: another writer holds the table's lock or changed the table.
    - `failed`: the statement, or the decision about the table, raised an error.
    """
    reason: str
    """A sentence that says why, or the error's message."""
    statement: str | None = None
    """The statement; None if there is none."""
    columns: tuple[str, ...] = ()
    """The clustering columns of an OPTIMIZE; empty if it only merges small files."""
    partitions: tuple[int, int] | None = None
    """The number of partitions that the statement covers, and the number of partitions in which
    files could be replaced. None if the statement covers the whole table."""
    bytes: int = 0
    """Total size of the files that the statement replaced or, if it was not run, would replace."""
    saved: float = 0.0
    """Estimate of how much cheaper the statement makes a lookup, in bytes. This includes 256 KiB
    for each file that the lookup no longer opens."""
    seconds: float | None = None
    """How long the statement ran; None if it was not run."""

    def summary(self) -> str:
        """Returns the name of the statement and the number of partitions that it covers. The text
        is empty if there is no statement."""
        if self.statement is None:
            return ""
        name = self.statement.split()[0]
        if self.partitions is None:
            return name
        return f"{name}, {self.partitions[0]:,} of {self.partitions[1]:,} partitions"
