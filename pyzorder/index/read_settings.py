"""Settings of a scan that decide what values a file's bytes read as.

The texts are those of Scala's ReadSettings: entries count only for scans with the same.
"""

from __future__ import annotations

from typing import NamedTuple

SEPARATOR = " | "


class ReadSettings(NamedTuple):
    """
    structural  which column of a file a name means, and as what it is read
    temporal    how stored dates and timestamps become Spark's; None: it cannot be told from here
    """

    structural: str
    temporal: str | None

    @property
    def fingerprint(self) -> str:
        """Both, as the index table keeps them."""
        return self.structural + SEPARATOR + (self.temporal or "")
