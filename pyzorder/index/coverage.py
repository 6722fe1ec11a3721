"""Describes which data files have rows in a snapshot (sql/FORMAT.md, section "Coverage")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyzorder.index.pointers import Pointer


@dataclass(frozen=True)
class Coverage:
    """States that a snapshot has a row for every data file in the covered folders.

    Attributes:
        listed_at: when the listing of these folders began, in milliseconds since the epoch.
        is_whole: whether the snapshot covers the table's folder and everything below it.
    """

    listed_at: int
    is_whole: bool

    def to_json(self) -> dict[str, Any]:
        """Returns the value of a pointer's `coverage` field, which `coverage_of` reads."""
        return {"listedAt": self.listed_at, "whole": self.is_whole}


def coverage_of(pointer: dict[str, Any]) -> Coverage | None:
    """Returns the coverage that a pointer's JSON states, or None if it does not state any."""
    found = pointer.get("coverage")
    if not isinstance(found, dict):
        return None
    return Coverage(int(found["listedAt"]), found["whole"] is True)


def still_covers(since: Pointer | None, before: Pointer | None) -> bool:
    """Whether a snapshot reflects all changes that pyzorder's writers made since a listing began.

    It may not if there was no index then, because a writer that found no index in the meantime left
    no trace.

    Args:
        since: the pointer to the index when the listing began; None if there was no index.
        before: the pointer to the snapshot; None if there is none.
    """
    return (
        since is not None
        and before is not None
        and (before.lineage, before.incarnation) == (since.lineage, since.incarnation)
        and before.coverable_since <= since.version <= before.version
    )
