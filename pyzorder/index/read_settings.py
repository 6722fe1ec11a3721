"""Settings of a scan that determine which values are read from a file's bytes.

The settings are two texts, equal to those of Scala's ReadSettings. An entry applies only to scans
with the same structural text. If its bounds depend on the temporal text, they apply only to scans
that also have the same temporal text.
"""

from __future__ import annotations

from typing import NamedTuple

SEPARATOR = " | "


class ReadSettings(NamedTuple):
    """The settings of a scan.

    Attributes:
        structural: determines which column of a file a name refers to, and the type of its values.
        temporal: determines how stored dates and timestamps are converted to Spark's; None if
            unknown.
    """

    structural: str
    temporal: str | None

    @property
    def fingerprint(self) -> str:
        """Both texts, in the form stored in the index table."""
        return self.structural + SEPARATOR + (self.temporal or "")
