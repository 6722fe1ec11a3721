"""Reads statistics from Parquet footers if they provably describe the values that Spark reads.

PyArrow already withholds unsound statistics: those of INT96 columns, those of columns whose order
PyArrow does not support, and those of writers that are known to have written wrong statistics
(PARQUET-251). From the statistics that PyArrow returns, `rules` derives the bounds of the
values that Spark reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pyzorder.index.entries import ColumnStatistics
from pyzorder.index.parquet import footer_checks, rules
from pyzorder.index.parquet.rules import Leaf, Origin
from pyzorder.index.pointers import IndexedColumn

#: The key under which Spark records its schema, and the keys in a field's metadata that mark CHAR
#: columns and collated strings. The values of such columns are not compared in their stored form.
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_NOT_AS_STORED = ("__CHAR_VARCHAR_TYPE_STRING", "__COLLATIONS")

#: The maximum number of names to compare in order to find the index's columns in a file.
_MOST_COMPARED = 10_000_000

#: Maximum number of schemas for which the positions of columns are cached.
_KEPT = 16


class Place(NamedTuple):
    """The location of a column in a file.

    Attributes:
        number: the position of its leaf; None if the file does not contain the column, which then
            reads as null.
        leaf: its type; None if the footer does not determine what Spark reads.
    """

    number: int | None
    leaf: Leaf | None


_ABSENT = Place(None, None)
_UNCLEAR = Place(-1, None)


class FooterReader:
    """Reads the statistics of columns from the footers of files. Threads can share a reader."""

    def __init__(self, columns: Sequence[IndexedColumn]) -> None:
        self._columns = columns
        self._known: list[tuple[list[str], Any, list[Place]]] = []

    def read(self, path: str) -> tuple[int, dict[IndexedColumn, ColumnStatistics]]:
        """Returns a file's number of rows and the statistics of the columns.

        Raises:
            OSError: the file cannot be read.
            ArrowException: the file is not a Parquet file that PyArrow can read.
        """
        footer = pq.read_metadata(pa.BufferReader(footer_checks.read(path)))
        groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        rows = sum(group.num_rows for group in groups)
        if rows != footer.num_rows:
            raise pa.ArrowInvalid("its row groups do not have as many rows as its footer states")
        origin = rules.origin_of(footer.created_by, footer.metadata)
        compared = _compared_otherwise(footer.metadata or {})
        found = {}
        for column, place in zip(self._columns, self._places(footer.schema), strict=True):
            if place.number is None:
                known = all_null(rows)
            elif place.leaf is None:
                known = ColumnStatistics()
            else:
                chunks = [group.column(place.number) for group in groups]
                known = _of_chunks(chunks, rows, place.leaf, origin, column)
                if column.path[0].lower() in compared and not known.empty:
                    known = ColumnStatistics(null_count=known.null_count)
            found[column] = known
        return rows, found

    def _places(self, schema: Any) -> list[Place]:
        paths = [schema.column(i).path for i in range(len(schema))]
        for known, other, places in self._known:
            if paths == known and schema.equals(other):
                return places
        tree = _tree(schema)
        if len(self._columns) * len(schema) > _MOST_COMPARED:
            tree = None
        places = [_UNCLEAR if tree is None else _find(tree, c) for c in self._columns]
        # Schemas with structs are not cached, because different structs may have equal leaves.
        if len(self._known) < _KEPT and not any("." in path for path in paths):
            self._known.append((paths, schema, places))
        return places


def all_null(rows: int) -> ColumnStatistics:
    """Returns the statistics of a column in which all values are null."""
    return ColumnStatistics(null_count=rows, nan_seen=False, empty=True)


def columns_of(path: str) -> list[IndexedColumn]:
    """Returns the columns of a file that can have statistics, with the types that Spark infers.

    Raises:
        OSError: the file cannot be read.
        ArrowException: the file is not a Parquet file that PyArrow can read.
    """
    footer = pq.read_metadata(pa.BufferReader(footer_checks.read(path)))
    tree, compared = _tree(footer.schema), _compared_otherwise(footer.metadata or {})
    leaves = () if tree is None else _leaves((), tree)
    typed = ((names, rules.spark_type(leaf)) for names, leaf in leaves)
    return [
        IndexedColumn(names, data_type)
        for names, data_type in typed
        if data_type is not None and names[0].lower() not in compared
    ]


def _compared_otherwise(keys: dict[bytes, bytes]) -> set[str]:
    """Returns the lower-case names of columns whose values Spark does not compare in their stored
    form."""
    text = keys.get(_SPARK_SCHEMA, b"")
    if not any(mark.encode() in text for mark in _NOT_AS_STORED):
        return set()
    try:
        fields = json.loads(text)["fields"]
        return {
            field["name"].lower()
            for field in fields
            if any(mark in json.dumps(field) for mark in _NOT_AS_STORED)
        }
    except (ValueError, LookupError, TypeError, RecursionError):
        return set()


def _of_chunks(
    chunks: Sequence[Any], rows: int, leaf: Leaf, origin: Origin, column: IndexedColumn
) -> ColumnStatistics:
    """Returns the statistics of a column, computed from those of its chunks in the row groups."""
    if not rules.is_readable(leaf, column.data_type):
        return ColumnStatistics()
    nulls = [_null_count(chunk, leaf) for chunk in chunks]
    if sum(chunk.num_values for chunk in chunks) != rows or None in nulls:
        return ColumnStatistics()
    count = sum(filter(None, nulls))
    valued = [c for c, known in zip(chunks, nulls, strict=True) if known != c.num_values]
    if not valued:
        return all_null(rows)
    statistics = [chunk.statistics for chunk in valued]
    if not all(known is not None and known.has_min_max for known in statistics):
        is_decimal = leaf.annotation == "Decimal"  # values with too many digits may become null
        return ColumnStatistics(null_count=None if is_decimal else count)
    bounds = [(known.min_raw, known.max_raw) for known in statistics]
    return rules.statistics_of(bounds, leaf, origin, column.data_type, count)


def _null_count(chunk: Any, leaf: Leaf) -> int | None:
    """Returns the number of nulls in a chunk, or None if it is unknown or impossible."""
    statistics = chunk.statistics
    if statistics is not None and statistics.has_null_count:
        count = int(statistics.null_count)
        return count if 0 <= count <= chunk.num_values else None
    return 0 if leaf.is_required or chunk.num_values == 0 else None


# ---- columns ------------------------------------------------------------------------------------

#: The fields of a group. Each field's name is paired with its own fields if it is a group, with its
#: leaf and the leaf's position if it has one value per row, and otherwise (for lists and maps, for
#: example) with None.
Tree = list[tuple[str, Any]]


def _tree(schema: Any) -> Tree | None:
    """Returns the columns of a file, or None if the leaves cannot be matched to them.

    A leaf's path joins names with dots, and the names themselves may contain dots. The nesting is
    therefore taken from the Arrow schema, which has the same leaves in the same order.
    """
    found, count = _group(schema.to_arrow_schema(), schema, (), 0)
    return found if count == len(schema) else None


def _group(fields: Any, schema: Any, above: tuple[str, ...], start: int) -> tuple[Tree, int]:
    """Returns the fields of the group whose first leaf is at `start`, and the position of the leaf
    after the group."""
    tree: Tree = []
    for field in fields:
        path, inner = (*above, field.name), field.type
        if pa.types.is_struct(inner):
            members = [inner.field(i) for i in range(inner.num_fields)]
            below, start = _group(members, schema, path, start)
            tree.append((field.name, below))
            continue
        count = _leaf_count(inner)
        is_plain = count == 1 and not pa.types.is_nested(inner) and start < len(schema)
        leaf = _leaf(schema.column(start), path) if is_plain else None
        tree.append((field.name, None if leaf is None else (start, leaf)))
        start += count
    return tree, start


def _leaf_count(data_type: pa.DataType) -> int:
    if isinstance(data_type, pa.BaseExtensionType):
        return _leaf_count(data_type.storage_type)
    if not pa.types.is_nested(data_type):
        return 1
    return sum(_leaf_count(data_type.field(i).type) for i in range(data_type.num_fields))


def _leaf(column: Any, path: tuple[str, ...]) -> Leaf | None:
    if column.path != ".".join(path) or column.max_repetition_level > 0:
        return None
    logical = json.loads(column.logical_type.to_json())
    is_required = column.max_definition_level == 0 and len(path) == 1
    return Leaf(column.physical_type, logical, is_required)


def _find(tree: Tree, column: IndexedColumn) -> Place:
    """Finds the leaf from which Spark reads a column, ignoring case.

    At each level, at most one field may match the name, because if several match, a read fails or
    picks one of them. If no field matches, the column is treated as absent only if all names are
    ASCII, because Java and Python may fold the case of other letters differently.
    """
    found: Any = tree
    for name in column.path:
        if not isinstance(found, list):
            return _UNCLEAR
        names = [field for field, _ in found]
        same = [below for field, below in found if field.lower() == name.lower()]
        if not same:
            return _ABSENT if all(n.isascii() for n in (name, *names)) else _UNCLEAR
        if len(same) > 1 or same[0] is None:
            return _UNCLEAR
        found = same[0]
    return _UNCLEAR if isinstance(found, list) else Place(*found)


def _leaves(above: tuple[str, ...], tree: Tree) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    for name, below in tree:
        if isinstance(below, list):
            yield from _leaves((*above, name), below)
        elif below is not None:
            yield (*above, name), below[1]
