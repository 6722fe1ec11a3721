"""Decides which statements to run on a table. Needs no Spark session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyzorder.maintenance.outlook import Outlook, Part
from pyzorder.text.wording import counted, size

MOST_PARTITIONS = 200
"""Maximum number of partitions that one statement names."""

UNKNOWN_COLUMNS = (
    "The table has neither an index nor clustering columns. Run OPTIMIZE … ZORDER BY once, or set "
    "the table property zorder.clusterBy."
)


@dataclass(frozen=True)
class Task:
    """A statement to run on a table.

    `covered` is the number of partitions that the statement covers, and the number of partitions in
    which files could be replaced. It is None if the statement covers the whole table.
    """

    statement: str
    reason: str
    covered: tuple[int, int] | None = None
    bytes: int = 0
    saved: float = 0.0


@dataclass(frozen=True)
class Decision:
    """What to do with a table.

    Attributes:
        tasks: the statements to run, in order.
        postponed: the part of the work that exceeds the budget, with the reason. Its statement
            covers all of the remaining partitions.
        nothing: why there is nothing to do; empty if there is something to do.
    """

    tasks: tuple[Task, ...] = ()
    postponed: Task | None = None
    nothing: str = ""


def decide(outlook: Outlook, budget: float) -> Decision:
    """Decides which statements to run on a table.

    Args:
        outlook: the table.
        budget: how many bytes an OPTIMIZE may still replace.
    """
    if not outlook.has_index and not outlook.columns and not outlook.is_auto:
        return Decision(nothing=UNKNOWN_COLUMNS)
    paying = worthwhile(outlook)
    chosen = affordable(paying, budget)
    tasks = list(optimizes(outlook, chosen))
    unindexed = why_refresh(outlook, tasks)
    if unindexed:
        tasks.append(Task(f"REFRESH SKIPPING INDEX ON {outlook.target}", unindexed))
    if not chosen and outlook.expired_files:
        expired = f"{counted(outlook.expired_files, 'file')} ({size(outlook.expired_bytes)})"
        reason = f"The retention period of {expired} has passed."
        tasks.append(Task(f"VACUUM {outlook.target}", reason))
    left = [part for part in paying if part not in chosen]
    return Decision(
        tuple(tasks),
        over_budget(outlook, left, budget - sum(part.bytes for part in chosen)) if left else None,
        "" if tasks or left else why(outlook),
    )


def why_refresh(outlook: Outlook, optimizes: Sequence[Task]) -> str:
    """Returns why to add files to the index; empty if none are missing after the OPTIMIZE
    statements."""
    if optimizes and optimizes[0].covered is None:
        return ""  # an OPTIMIZE of the whole table indexes all files
    if outlook.has_index:
        count = counted(outlook.unindexed, "unindexed file")
        return f"Every query opens {count}." if outlook.unindexed else ""
    return "The OPTIMIZE indexes only the partitions that it rewrites." if optimizes else ""


def worthwhile(outlook: Outlook) -> list[Part]:
    """Returns the parts whose rewrite pays off, those that save the most per byte first.

    If the OPTIMIZE pays off only as a whole, returns all parts.
    """
    if outlook.kind == "harms":
        return []
    paying = [part for part in outlook.parts if part.pays]
    if not paying and outlook.kind == "pays":
        paying = list(outlook.parts)
    return sorted(paying, key=lambda part: -density([part]))


def usefulness(outlook: Outlook) -> float:
    """Returns how many bytes the expected lookups save per byte whose rewrite pays off."""
    return density(worthwhile(outlook))


def density(parts: Sequence[Part]) -> float:
    """Returns how many bytes the expected lookups save per byte that is rewritten."""
    return sum(part.worth for part in parts) / max(1, sum(part.bytes for part in parts))


def affordable(parts: Sequence[Part], budget: float) -> list[Part]:
    """Returns parts that fit into the budget together. Earlier parts take precedence."""
    chosen = []
    for part in parts:
        if part.bytes <= budget:
            chosen.append(part)
            budget -= part.bytes
    return chosen


def optimizes(outlook: Outlook, chosen: Sequence[Part]) -> Iterator[Task]:
    """Yields the OPTIMIZE statements that rewrite the chosen parts."""
    if not chosen:
        return
    conditions = [part.where for part in chosen if part.where is not None]
    if len(chosen) == len(outlook.parts) or not conditions:
        yield Task(
            f"OPTIMIZE {outlook.target}{outlook.z_order}", why(outlook), None,
            sum(part.bytes for part in chosen), sum(part.saved for part in chosen),
        )  # fmt: skip
        return
    for first in range(0, len(chosen), MOST_PARTITIONS):
        some = chosen[first : first + MOST_PARTITIONS]
        replaced, written = sum(part.files for part in some), sum(part.written for part in some)
        yield Task(
            f"OPTIMIZE {outlook.target} WHERE "
            + " OR ".join(f"({part.where})" for part in some)
            + outlook.z_order,
            f"{outlook.choice} Pays off in {len(chosen)} of "
            f"{counted(len(outlook.parts), 'partition')}: {counted(replaced, 'file')} would become "
            f"{written:,}.".lstrip(),
            (len(some), len(outlook.parts)),
            sum(part.bytes for part in some),
            sum(part.saved for part in some),
        )


def why(outlook: Outlook) -> str:
    """Returns the verdict, preceded by the reason for the choice of the columns."""
    return f"{outlook.choice} {outlook.sentence}".lstrip()


def over_budget(outlook: Outlook, left: Sequence[Part], budget: float) -> Task:
    """Returns the OPTIMIZE of the parts that do not fit into the budget."""
    needed = sum(part.bytes for part in left)
    covered = None if left[0].where is None else (len(left), len(outlook.parts))
    return Task(
        f"OPTIMIZE {outlook.target}{outlook.z_order}",
        f"It would replace {size(needed)}, but only {size(budget)} of the budget is left.",
        covered,
        needed,
        sum(part.saved for part in left),
    )
