"""Writes the workload of a table as if an application had recorded it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

APPLICATION = "0123456789abcdef" * 2


def record(folder: Path, queries: Mapping[str, Mapping[str, int]]) -> None:
    """Writes a recorded workload: for each condition, the number of queries on each day."""
    recorded = folder / "_zorder" / "_workload"
    recorded.mkdir(parents=True, exist_ok=True)
    shapes = [
        {"filters": [f"(c{n} = ?)"], "joinKeys": [], "days": days, "last": 0, "examples": [[text]]}
        for n, (text, days) in enumerate(queries.items())
    ]
    content = json.dumps({"formatVersion": 3, "shapes": shapes})
    (recorded / f"_{APPLICATION}.1.json").write_text(content)
