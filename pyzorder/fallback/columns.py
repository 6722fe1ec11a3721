"""Resolves names in a query to indexed columns, and converts their bounds for Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.predicates.conditions import NotUnderstood
from pyzorder.index.predicates.monotonic_functions import Found

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from pyzorder.fallback.tables import Table


@dataclass(frozen=True)
class Columns:
    """The columns of a scan that have statistics in an index.

    Attributes:
        schema: the schema of the scan.
        table: the scanned table.
        indexed: the columns of the index.
        case_sensitive: whether names are case-sensitive.
    """

    schema: StructType
    table: Table
    indexed: tuple[IndexedColumn, ...]
    case_sensitive: bool

    def find(self, parts: Sequence[str]) -> Found:
        """Resolves a name to a column of the index.

        The scan must read the column as the type of its bounds. CHAR columns are excluded, because
        their bounds may come from unpadded values. Columns with a default are excluded, because
        files that lack the column may have been indexed without the default.

        Raises:
            NotUnderstood: the index has no such column, or its bounds must not be used.
        """
        path, data_type = self._path(self.schema, list(parts))
        top = path[0]
        if any(self._same(top, name) for name in self.table.partitions):
            raise NotUnderstood(f"{top} is a partition column")
        if self.table.is_char(top) or any(self._same(top, name) for name in self.table.defaults):
            raise NotUnderstood(f"{top} is CHAR or has a default")
        found = [
            number
            for number, column in enumerate(self.indexed)
            if len(column.path) == len(path)
            and all(self._same(a, b) for a, b in zip(column.path, path, strict=True))
        ]
        if len(found) != 1 or self.indexed[found[0]].data_type != data_type.jsonValue():
            raise NotUnderstood(
                f"the index has no statistics for {'.'.join(path)} in the type that the scan reads"
            )
        return Found(found[0], ".".join(f"`{part.replace('`', '``')}`" for part in path))

    def _same(self, a: str, b: str) -> bool:
        return a == b if self.case_sensitive else a.lower() == b.lower()

    def _path(self, schema: StructType, parts: list[str]) -> tuple[tuple[str, ...], DataType]:
        fields = [field for field in schema.fields if self._same(field.name, parts[0])]
        if len(fields) != 1:
            raise NotUnderstood(f"the scan does not have exactly one column named {parts[0]}")
        only = fields[0]
        for key, value in (only.metadata or {}).items():
            is_varchar = str(value).lower().startswith("varchar")
            if "DEFAULT" in key or (key.startswith("__") and not is_varchar):
                raise NotUnderstood(f"{parts[0]} is CHAR or has a default")
        if len(parts) == 1:
            return (only.name,), only.dataType
        if only.dataType.typeName() != "struct":
            raise NotUnderstood(f"{parts[0]} is not a struct")
        below, data_type = self._path(only.dataType, parts[1:])  # type: ignore[arg-type]
        return (only.name, *below), data_type


#: For each Spark type, the SQL type that Python uses to send bounds, and the SQL that converts them
#: back.
_SENT: dict[str, tuple[str, str]] = {
    "boolean": ("BOOLEAN", "{0}"), "byte": ("BIGINT", "CAST({0} AS TINYINT)"),
    "short": ("BIGINT", "CAST({0} AS SMALLINT)"), "integer": ("BIGINT", "CAST({0} AS INT)"),
    "long": ("BIGINT", "{0}"), "float": ("DOUBLE", "CAST({0} AS FLOAT)"),
    "double": ("DOUBLE", "{0}"), "date": ("BIGINT", "date_from_unix_date(CAST({0} AS INT))"),
    "timestamp": ("BIGINT", "timestamp_micros({0})"),
    # `timestampadd` cannot be used, because Spark 3.5 limits the added number to an INT.
    "timestamp_ntz": (
        "BIGINT", "TIMESTAMP_NTZ'1970-01-01 00:00:00' + {0} * INTERVAL '0.000001' SECOND"),
    "string": ("BINARY", "CAST({0} AS STRING)"), "binary": ("BINARY", "{0}"),
}  # fmt: skip


def sent_as(data_type: Any) -> tuple[str, str] | None:
    """Returns the SQL type used to send bounds to Spark, and the SQL that converts them back.

    Returns None if bounds of `data_type` cannot be sent.
    """
    if not isinstance(data_type, str):
        return None
    if data_type.startswith("decimal"):
        return "STRING", f"CAST({{0}} AS {data_type})"
    if re.match("interval (year|month)", data_type):
        return "BIGINT", f"CAST(make_ym_interval(0, CAST({{0}} AS INT)) AS {data_type})"
    if data_type.startswith("interval"):
        seconds = "CAST({0} AS DECIMAL(18, 6))"
        return "STRING", f"CAST(make_dt_interval(0, 0, 0, {seconds}) AS {data_type})"
    return _SENT.get(data_type)


def to_send(values: pa.ChunkedArray, data_type: str) -> list[Any]:
    """Converts bounds from the index's file to the form that Python sends to Spark."""
    if data_type == "date":
        return values.cast(pa.int32()).to_pylist()
    if data_type in ("timestamp", "timestamp_ntz"):
        return values.cast(pa.int64()).to_pylist()
    if data_type == "string":
        return values.cast(pa.binary()).to_pylist()
    if data_type.startswith("decimal"):
        return [None if v is None else f"{v:f}" for v in values.to_pylist()]
    if data_type.startswith("interval") and not re.match("interval (year|month)", data_type):
        return [
            None if v is None else f"{Decimal(v).scaleb(-6):f}"
            for v in values.cast(pa.int64()).to_pylist()
        ]
    return values.to_pylist()
