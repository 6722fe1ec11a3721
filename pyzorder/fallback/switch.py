"""Switches the location of an external catalog table to its copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyzorder.fallback import failures
from pyzorder.fallback.layout import quoted
from pyzorder.fallback.sources import SourceFile, source_files
from pyzorder.fallback.tables import Table, frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NULL = "__HIVE_DEFAULT_PARTITION__"


def check(table: Table) -> None:
    """Raises a ZOrderError unless the table's location can be switched."""
    if not table.is_catalog or not table.is_external:
        raise failures.not_external(table.name)


def execute(spark: SparkSession, table: Table, copy: str, sources: Sequence[SourceFile]) -> None:
    """Switches the location of each partition, and then the location of the table.

    Every partition has the same rows in the table and in the copy, so queries that run in the
    meantime read each row exactly once.

    Raises:
        ZOrderError: the table's files have changed since the table was copied.
    """
    spark.sql(f"REFRESH TABLE {table.name}")
    if source_files(frame_of(spark, table), table.partitions) != sources:
        raise failures.changed(table.name, copy)
    if table.partitions:
        for row in spark.sql(f"SHOW PARTITIONS {table.name}").collect():
            spec = ", ".join(map(_value, row[0].split("/")))
            _set_location(spark, f"{table.name} PARTITION ({spec})", f"{copy}/{row[0]}")
    _set_location(spark, table.name, copy)
    spark.sql(f"REFRESH TABLE {table.name}")


def _value(part: str) -> str:
    """Converts a part of a partition's path to SQL, for example `day=1` to `day` = '1'."""
    name, _, value = part.partition("=")
    text = "NULL" if value == _NULL else _text(unquote(value))
    return f"{quoted(unquote(name))} = {text}"


def _set_location(spark: SparkSession, target: str, location: str) -> None:
    spark.sql(f"ALTER TABLE {target} SET LOCATION {_text(location)}")


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
