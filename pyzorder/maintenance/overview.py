"""Writes an HTML page about a maintenance run and the tables that it covered.

Needs Jinja2: `pip install 'pyzorder-spark[plot]'`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyzorder.maintenance.outcome import Outcome
from pyzorder.maintenance.outlook import Outlook
from pyzorder.text import pages
from pyzorder.text.wording import size

TROUBLE = ("failed", "in use", "postponed")
"""Results that leave work undone."""


def write(
    path: Path,
    tables: Sequence[Outlook],
    outcomes: Sequence[Outcome],
    budget: float,
    dry_run: bool,
    spark_version: str,
) -> None:
    """Writes the page.

    Args:
        tables: the tables, as they were before their maintenance.
        budget: the budget in bytes; infinity if there is no limit.
    """
    known = {table.target for table in tables}
    unknown = sorted({one.table for one in outcomes} - known)
    page = pages.render(
        "maintenance.html",
        spark_version,
        number=len(known) + len(unknown),
        tables=sorted(tables, key=lambda table: table.target),
        unknown=unknown,
        outcomes=sorted(outcomes, key=urgency),
        good=not any(one.result in TROUBLE for one in outcomes),
        says=verdict(outcomes),
        facts=facts(outcomes, budget, dry_run),
    )
    path.write_text(page, encoding="utf-8")


def urgency(outcome: Outcome) -> tuple[int, str]:
    """Sorts outcomes that leave work undone first, and tables with nothing to do last."""
    order = [*TROUBLE, "planned", "done", "nothing"]
    return order.index(outcome.result), outcome.table


def verdict(outcomes: Sequence[Outcome]) -> str:
    """Returns the page's opening sentence."""
    counts = Counter[str](one.result for one in outcomes)
    said = {
        "failed": "failed", "in use": "found the table in use", "postponed": "postponed",
        "planned": "planned", "done": "done",
    }  # fmt: skip
    listed = [f"{counts[result]:,} {text}" for result, text in said.items() if counts[result]]
    return f"Outcomes: {', '.join(listed)}." if listed else "There was nothing to do."


def facts(outcomes: Sequence[Outcome], budget: float, dry_run: bool) -> dict[str, Any]:
    """Returns the figures at the top of the page."""
    replaced = sum(one.bytes for one in outcomes if one.result in ("done", "planned"))
    return {
        "Mode": "dry run: nothing was changed" if dry_run else "maintenance",
        "Would replace" if dry_run else "Replaced": size(replaced),
        "Budget": "no limit" if math.isinf(budget) else size(budget),
    }
