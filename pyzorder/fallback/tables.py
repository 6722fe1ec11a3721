"""Describes tables in the catalog or at a path. Uses only SQL that every Spark client can run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pyzorder.fallback.stores import located, store_of
from pyzorder.index.stores import Store
from pyzorder.index.table_folder import TableFolder, folders_above

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Names of the form parquet.`path` or orc.`path`.
_PATH = re.compile(r"(parquet|orc)\.`((?:[^`]|``)+)`", re.IGNORECASE)

#: Options of a table that override the session's read settings, or that restrict which files are
#: read.
_READ_OPTIONS = re.compile(
    r"rebasemode|orc\.|pathglobfilter|modifiedbefore|modifiedafter", re.IGNORECASE
)


@dataclass(frozen=True)
class Table:
    """A table and the properties that affect its index.

    Attributes:
        name: the table's name in SQL syntax.
        format: parquet or orc.
        location: the table's folder, in the form that `stores.plain` returns.
        is_catalog: whether the table is in the catalog.
        partitions: names of its partition columns; empty for a path.
        types: the type of each column according to DESCRIBE, keyed by name.
        defaults: columns with a default. If a file lacks such a column, Spark reads the default
            instead.
        properties: the table's properties.
        obstacle: the reason why files must not be skipped; empty if they may be skipped.
        is_bucketed: whether the table is bucketed.
        is_external: whether dropping the table leaves its files in place.
        path: the path to pass to spark.read; empty for a table in the catalog.
        store: the store of the table's files; None if this process cannot reach it.
    """

    name: str
    format: str
    location: str
    is_catalog: bool
    partitions: tuple[str, ...] = ()
    types: dict[str, str] = field(default_factory=dict)
    defaults: frozenset[str] = frozenset()
    properties: dict[str, str] = field(default_factory=dict)
    obstacle: str = ""
    is_bucketed: bool = False
    is_external: bool = False
    path: str = ""
    store: Store | None = None

    @cached_property
    def folder(self) -> TableFolder:
        """The folder with the index and journal. It may be above the folder of a partition."""
        for path in folders_above(self.location):
            names = self.store.names(f"{path}/_zorder") if self.store is not None else []
            if "_index" in names or "_journal" in names:
                return TableFolder(path)
        return TableFolder(self.location)

    def is_char(self, column: str) -> bool:
        """Whether a column or one of its fields is CHAR, whose values are padded when read."""
        return re.search(r"(?<!var)char\(", self.types.get(column, ""), re.IGNORECASE) is not None


def path_table(spark: SparkSession, path: str, format: str) -> Table:
    """Returns the table that spark.read reads from a folder."""
    quoted, location = path.replace("`", "``"), located(spark, path)
    store = store_of(spark, location)
    return Table(f"{format}.`{quoted}`", format, location, is_catalog=False, path=path, store=store)


def lookup(spark: SparkSession, name: str) -> Table:
    """Returns the table with this SQL name. The name may have the form parquet.`path`.

    Raises Spark's error if there is no such table.
    """
    path = _PATH.fullmatch(name.strip())
    if path:
        return path_table(spark, path[2].replace("``", "`"), path[1].lower())
    described = [tuple(row) for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()]
    types, sections = _sections(described)
    detail = sections.get("# Detailed Table Information", {})
    provider = detail.get("Provider", "").lower()
    location = located(spark, detail["Location"]) if detail.get("Location") else ""
    obstacle = ""
    if detail.get("Type", "").upper() == "VIEW" or not location:
        obstacle = "the table is a view or has no folder"
    elif provider not in ("parquet", "orc"):
        obstacle = f"the table's provider is {provider or 'unknown'}, not parquet or orc"
    elif _READ_OPTIONS.search(detail.get("Storage Properties", "")):
        obstacle = "the table has options that change how its files are read"
    elif spark.version.startswith("3.") and any(t.startswith("char(") for t in types.values()):
        obstacle = "Spark 3.5 does not report the file of a row if a column is CHAR"
    partitions = sections.get("# Partition Information", {})
    return Table(
        name,
        provider,
        location,
        is_catalog=True,
        partitions=tuple(partitions),
        types=types,
        defaults=frozenset(sections.get("# Column Default Values", {})),
        properties=_properties(spark, name) if not obstacle else {},
        obstacle=obstacle,
        is_bucketed=detail.get("Num Buckets", "0") not in ("0", "-1"),
        is_external=detail.get("Type", "").upper() == "EXTERNAL",
        store=store_of(spark, location),
    )


def partition_columns(table: Table, columns: Sequence[str]) -> set[str]:
    """Returns the columns whose values are in the names of folders, such as `name=value`."""
    if table.is_catalog:
        return set(table.partitions)
    files = table.store.files(table.location).paths if table.store is not None else []
    folders = {
        unquote(part.partition("=")[0])
        for path in files
        for part in path.removeprefix(table.location).split("/")[:-1]
        if "=" in part and part[0] not in "_."
    }
    return {name for name in columns if name in folders}


def frame_of(
    spark: SparkSession, table: Table, options: dict[str, str] | None = None, schema: Any = None
) -> DataFrame:
    """Returns the table's rows. If the table is at a path, Spark lists its files again."""
    if table.is_catalog:
        return spark.sql(f"SELECT * FROM {table.name}")
    reader = spark.read.format(table.format).options(**(options or {}))
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(table.path)


def _sections(rows: list[tuple[Any, ...]]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Splits the output of DESCRIBE into the columns, and the entries below each heading."""
    types: dict[str, str] = {}
    sections: dict[str, dict[str, str]] = {}
    current = types
    for name, value, *_ in rows:
        if name.startswith("# ") and name != "# col_name":
            current = sections.setdefault(name, {})
        elif name and name != "# col_name":
            current[name] = value or ""
    return types, sections


def _properties(spark: SparkSession, name: str) -> dict[str, str]:
    rows = spark.sql(f"SHOW TBLPROPERTIES {name}").collect()
    return {row[0]: row[1] for row in rows}
