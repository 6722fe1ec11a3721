"""What a table of the catalog or of a path is, asked with SQL that every Spark client may use."""

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

#: parquet.`path` and orc.`path`.
_PATH = re.compile(r"(parquet|orc)\.`((?:[^`]|``)+)`", re.IGNORECASE)

#: Options under which a table's files read otherwise than the session's settings tell, or only some
#: of them are.
_READ_OPTIONS = re.compile(
    r"rebasemode|orc\.|pathglobfilter|modifiedbefore|modifiedafter", re.IGNORECASE
)


@dataclass(frozen=True)
class Table:
    """
    A table, as far as its files can be told apart by an index.

    name         as SQL writes it
    format       parquet or orc
    location     of its files, as `stores.plain` gives it
    is_catalog   whether the catalog knows it
    partitions   names of its partition columns; of a path: empty
    types        what DESCRIBE says of each column, by name
    defaults     columns that files may lack without being null there
    properties   of the table
    obstacle     why no file of it may be skipped; empty: nothing is in the way
    is_bucketed  whether its files are buckets
    is_external  whether the catalog leaves the files alone when the table is dropped
    path         as spark.read takes it; of a table of the catalog: empty
    store        that the files are in; None: it cannot be reached from here
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
        """The folder that the table's index and journal are in: its own, or one above it."""
        for path in folders_above(self.location):
            names = self.store.names(f"{path}/_zorder") if self.store is not None else []
            if "_index" in names or "_journal" in names:
                return TableFolder(path)
        return TableFolder(self.location)

    def is_char(self, column: str) -> bool:
        """Whether the column, or a field of it, is CHAR: padded when it is read."""
        return re.search(r"(?<!var)char\(", self.types.get(column, ""), re.IGNORECASE) is not None


def path_table(spark: SparkSession, path: str, format: str) -> Table:
    """The files in a folder, as spark.read finds them."""
    quoted, location = path.replace("`", "``"), located(spark, path)
    store = store_of(spark, location)
    return Table(f"{format}.`{quoted}`", format, location, is_catalog=False, path=path, store=store)


def lookup(spark: SparkSession, name: str) -> Table:
    """The table of a name as SQL writes it: of the catalog, or parquet.`path`.

    Raises what Spark does for a name that it does not know.
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
        obstacle = "it is a view, or has no folder"
    elif provider not in ("parquet", "orc"):
        obstacle = f"its provider is {provider or 'not known'}, not parquet or orc"
    elif _READ_OPTIONS.search(detail.get("Storage Properties", "")):
        obstacle = "options of the table say how its files are read"
    elif spark.version.startswith("3.") and any(t.startswith("char(") for t in types.values()):
        obstacle = "Spark 3.5 does not tell which file a row is from where a column is CHAR"
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
    """Those of a table's columns that its folders are named by, as `name=value`."""
    if table.is_catalog:
        return set(table.partitions)
    files = table.store.files(table.location) if table.store is not None else {}
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
    """The table's rows; of a path with a fresh listing."""
    if table.is_catalog:
        return spark.sql(f"SELECT * FROM {table.name}")
    reader = spark.read.format(table.format).options(**(options or {}))
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(table.path)


def _sections(rows: list[tuple[Any, ...]]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """The columns, and what stands below each heading."""
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
