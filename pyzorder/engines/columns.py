"""Finds the columns of a table, and checks that conditions refer only to them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from sqlglot import exp

from pyzorder.engines import failures
from pyzorder.engines.tables import Table, arrow_system, check_schema, place_of
from pyzorder.index import VisibleFile
from pyzorder.index.predicates.conditions import NotUnderstood, call_of, parts_of

#: Names that Spark resolves even if the table has no such column.
_BUILT_IN = {
    "_metadata", "current_date", "current_time", "current_timestamp", "current_user",
    "session_user", "user",
}  # fmt: skip

#: Functions that accept a unit such as DAY, which looks like a column, before two other arguments.
_WITH_UNIT = {"date_add", "datediff"}

#: The maximum number of columns in a message.
_MOST_SHOWN = 10


def format_of(table: Table, format: str | None) -> ds.FileFormat:
    """Returns `format` or, if it is None, the format that the first file's name indicates."""
    if format is None and table.files and table.files[0].path.endswith(".orc"):
        format = "orc"
    return ds.OrcFileFormat() if (format or "").lower() == "orc" else ds.ParquetFileFormat()


def schema_of(table: Table, file_format: ds.FileFormat) -> pa.Schema:
    """Returns the columns of the first file, and the partition columns.

    As in Spark, a partition column replaces a column with the same name in the files.

    Raises:
        ZOrderError: the file cannot be read.
    """
    first = table.files[0]
    try:
        own = _schema_in(table, first, file_format)
    except (pa.ArrowException, OSError, UnicodeError) as failure:
        raise failures.unreadable(first.path, failures.first_line(failure)) from failure
    partitions = {
        column.name.lower(): pa.field(column.name, column.arrow_type) for column in table.partitions
    }
    fields = [partitions.pop(field.name.lower(), field) for field in own]
    return pa.schema([*fields, *partitions.values()])


def check_columns(
    table: Table, conditions: Sequence[exp.Expression], schema: pa.Schema | None = None
) -> None:
    """Raises a ZOrderError if a condition refers to a column that the table does not have.

    Files may have different columns. Columns that are neither in the index nor in `schema` are
    looked up in the first file and in the newest file, which has the most recently added columns.
    If one of these files cannot be read, it might have the column, so no error is raised.
    """
    if not table.files:
        return
    indexed = () if table.snapshot is None else table.snapshot.columns
    names = [column.path for column in indexed if not column.inputs]  # no indexed expressions
    names += [(column.name,) for column in table.partitions]
    known = {_lower(path[:n]) for path in names for n in range(1, len(path) + 1)}
    used = dict.fromkeys(parts for condition in conditions for parts in _columns_in(condition))
    unknown = [parts for parts in used if _lower(parts) not in known]
    schemas = _schemas(table, schema)
    while unknown:
        try:
            found = next(schemas, None)
        except (pa.ArrowException, OSError, UnicodeError):
            return
        if found is None:
            missing, columns = ".".join(unknown[0]), [".".join(path) for path in names]
            raise failures.unknown_column(table.location, missing, _similar(missing, columns))
        names += [(name,) for name in found.names]
        unknown = [parts for parts in unknown if not _has(found, parts)]


def _columns_in(condition: exp.Expression) -> Iterator[tuple[str, ...]]:
    """Yields the columns in a condition.

    Leaves out subqueries and the arguments of unsupported functions, which may contain other names.
    """
    left = [condition]
    while left:
        node = left.pop()
        if isinstance(node, exp.Column):
            try:
                parts = parts_of(node)
            except NotUnderstood:  # a star
                continue
            if parts[0].lower() not in _BUILT_IN:
                yield parts
        elif isinstance(node, exp.Anonymous):
            name, arguments = call_of(node) or ("", [])
            left += arguments[1:] if name in _WITH_UNIT and len(arguments) == 3 else arguments
        elif not isinstance(node, exp.Query):
            left += node.iter_expressions()


def _schemas(table: Table, schema: pa.Schema | None) -> Iterator[pa.Schema]:
    if schema is not None:
        yield schema
    file_format = format_of(table, None)
    newest = int(np.argmax(table.files.modified))
    files = [table.files[number] for number in dict.fromkeys((0, newest))]
    if not all(file.has_text_name for file in files):
        files = [next((file for file in table.files if file.has_text_name), files[0])]
    for file in files:
        yield _schema_in(table, file, file_format)


def _schema_in(table: Table, file: VisibleFile, file_format: ds.FileFormat) -> pa.Schema:
    system, scheme = arrow_system(table)
    if isinstance(file_format, ds.ParquetFileFormat):
        check_schema(table, file)
    return file_format.inspect(place_of(file)[scheme:], filesystem=system)


def _has(fields: pa.Schema | pa.StructType, parts: tuple[str, ...]) -> bool:
    """Whether a name refers to a column or to a part of one."""
    first, *rest = parts
    return any(
        not rest or not pa.types.is_struct(field.type) or _has(field.type, tuple(rest))
        for field in fields
        if field.name.lower() == first.lower()
    )


def _similar(name: str, columns: Sequence[str]) -> list[str]:
    """Returns the columns to show in a message, starting with those that have similar names."""
    known = {column.lower(): column for column in reversed(columns)}
    similar = [known[close] for close in difflib.get_close_matches(name.lower(), known)]
    shown = list(dict.fromkeys([*similar, *columns]))
    return [*shown[:_MOST_SHOWN], *(["…"] if len(shown) > _MOST_SHOWN else [])]


def _lower(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)
