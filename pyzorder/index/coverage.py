"""Describes which data files a snapshot knows (sql/FORMAT.md, section "Coverage")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Coverage:
    """States that a snapshot has a row for every data file of the folders that it covers.

    Attributes:
        listed_at: when the listing of these folders began, in milliseconds since the epoch.
        is_whole: whether the snapshot covers the table's folder and everything below it.
    """

    listed_at: int
    is_whole: bool


def coverage_of(pointer: dict[str, Any]) -> Coverage | None:
    """Returns the coverage that a pointer's JSON states, or None if it does not state any."""
    found = pointer.get("coverage")
    if not isinstance(found, dict):
        return None
    return Coverage(int(found["listedAt"]), found["whole"] is True)
