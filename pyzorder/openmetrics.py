"""Reports a table's health to Prometheus in the OpenMetrics text format.

All metrics are gauges, which have the same syntax in OpenMetrics and in the older Prometheus text
format. node_exporter's textfile collector reads the older format, so it also accepts this text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyzorder.history import Run
from pyzorder.text.printable import printable

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Gauge:
    """A metric family.

    Attributes:
        name: the name without the prefix `pyzorder_`. The name ends with the unit, if there is one.
    """

    name: str
    unit: str
    help: str
    samples: Sequence[tuple[Labels, float | None]]
    """Labels and values. Samples with the value None, which means unknown, are omitted."""

    def lines(self) -> list[str]:
        """Returns the lines of the family, or none if no value is known."""
        name = f"pyzorder_{self.name}"
        samples = [
            f"{name}{{{labelled(labels)}}} {number(value)}"
            for labels, value in self.samples
            if value is not None and math.isfinite(value)
        ]
        unit = [f"# UNIT {name} {self.unit}"] if self.unit else []
        head = [f"# TYPE {name} gauge", *unit, f"# HELP {name} {escaped(self.help)}"]
        return [*head, *samples] if samples else []


def text(gauges: Iterable[Gauge]) -> str:
    """Returns the text of all families, followed by the end marker."""
    return "\n".join([*(line for gauge in gauges for line in gauge.lines()), "# EOF", ""])


def labelled(labels: Labels) -> str:
    """Formats labels, for example as `table="db.sales",column="a"`."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())


def escaped(value: str) -> str:
    """Escapes backslashes, line feeds and quotes in a label's value or a help text.

    The text may be shown on a terminal, so it is made printable.
    """
    return printable(value).replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def number(value: float) -> str:
    """Formats a number. Whole numbers are formatted without a fraction."""
    return str(int(value)) if value == int(value) else repr(value)


def health(
    table: str,
    columns: Sequence[Mapping[str, Any]],
    runs: Sequence[Run],
    skipped: Mapping[str, float],
) -> list[Gauge]:
    """Returns the metrics of a table that are worth monitoring.

    Args:
        table: the value of the samples' `table` label.
        columns: rows of DESCRIBE SKIPPING INDEX.
        runs: the runs in the table's journal.
        skipped: for each condition, the share of files (between 0 and 1) that its query skips.
    """
    of_table = {"table": table}

    def each(field: str) -> list[tuple[Labels, float | None]]:
        return [({**of_table, "column": row["column"]}, row[field]) for row in columns]

    def first(field: str) -> Any:
        return columns[0][field] if columns else None

    last: datetime | None = first("last_optimize")
    return [
        Gauge("files", "", "Data files of the table.", [(of_table, first("files"))]),
        Gauge(
            "unindexed_files",
            "",
            "Files that have no entry in the index, so every query opens them.",
            [(of_table, first("unindexed"))],
        ),
        Gauge(
            "clustered_files",
            "",
            "Files that are clustered by the column, alone or with other columns.",
            each("clustered"),
        ),
        Gauge(
            "lookup_files_ratio",
            "ratio",
            "Estimated share of the files that a lookup of one value opens.",
            each("lookup_share"),
        ),
        Gauge(
            "range_files_ratio",
            "ratio",
            "Estimated share of the files that a query for a range with 1% of the rows opens.",
            each("range_share"),
        ),
        Gauge(
            "skipped_files_ratio",
            "ratio",
            "Share of the files that a query with this condition skips.",
            [({**of_table, "where": where}, share) for where, share in skipped.items()],
        ),
        Gauge(
            "retired_bytes",
            "bytes",
            "Size of the retired files that VACUUM has not deleted yet.",
            [(of_table, sum(run.keptBytes for run in runs))],
        ),
        Gauge(
            "last_optimize_timestamp_seconds",
            "seconds",
            "Time when the newest clustered file was written.",
            [(of_table, last.timestamp() if last else None)],
        ),
    ]
