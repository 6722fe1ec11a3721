"""Settings of a scan that determine how it interprets the bytes of a file.

The settings are two strings, equal to those of the Scala class ReadSettings. An index entry applies
only to scans with the same structural string. If bounds in the entry depend on the temporal string,
they apply only to scans that also have the same temporal string.
"""

from __future__ import annotations

from typing import NamedTuple

SEPARATOR = " | "

#: The structural settings of a Spark session that does not change any of their defaults.
STRUCTURAL_DEFAULTS = (
    "caseSensitive=false;fieldIds=false;binaryAsString=false;int96AsTimestamp=true;"
    "nanosAsLong=false;inferTimestampNtz=true;orcImplementation=native;orcPositions="
)


class ReadSettings(NamedTuple):
    """The settings of a scan.

    Attributes:
        structural: determines which column of a file a name refers to, and the type of that
            column's values.
        temporal: determines how stored dates and timestamps are converted to Spark's values; None
            if unknown.
    """

    structural: str
    temporal: str | None

    @property
    def fingerprint(self) -> str:
        """Both strings, joined in the form that the index table stores."""
        return self.structural + SEPARATOR + (self.temporal or "")
