"""What the footers of data files tell: what io.pyzorder.layout.FileFacts does, with PyArrow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

#: Codecs of Parquet by PyArrow's names, as Spark's option `compression` names them.
_CODECS = {
    "SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "UNCOMPRESSED": "uncompressed",
    "LZ4": "lz4raw", "LZ4_HADOOP": "lz4",
}  # fmt: skip


@dataclass(frozen=True)
class Footer:
    """
    rows        of the file
    codec       as the option `compression` names it; None: not known
    timestamps  how Parquet timestamps are stored, as spark.sql.parquet.outputTimestampType names it
    fields      names and Arrow types of its columns
    """

    rows: int
    codec: str | None
    timestamps: frozenset[str]
    fields: tuple[tuple[str, pa.DataType], ...]


def read(path: str, format: str) -> Footer:
    """The footer of a local file. Raises what PyArrow does of one that it cannot read."""
    if format == "orc":
        file = pyarrow.orc.ORCFile(path)
        codec = str(file.compression).lower().replace("uncompressed", "none")
        return Footer(file.nrows, codec, frozenset(), tuple(_fields(file.schema)))
    meta = pyarrow.parquet.read_metadata(path)
    has_chunks = meta.num_row_groups > 0 and meta.num_columns > 0
    codec = meta.row_group(0).column(0).compression if has_chunks else ""
    stored = frozenset(filter(None, map(_timestamps, _leaves(meta.schema))))
    fields = tuple(_fields(meta.schema.to_arrow_schema()))
    return Footer(meta.num_rows, _CODECS.get(codec), stored, fields)


def commonest_codec(footers: Iterable[Footer]) -> str | None:
    """The codec that most files have; None: none is known."""
    known = Counter(f.codec for f in footers if f.codec)
    return max(known, key=lambda codec: (known[codec], codec)) if known else None


def timestamp_type(footers: Iterable[Footer]) -> str | None:
    """The one of spark.sql.parquet.outputTimestampType that keeps what the files hold."""
    found = frozenset[str]().union(*(f.timestamps for f in footers))
    return next((t for t in ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS") if t in found), None)


def undeclared(footer: Footer, schema: Any, case_sensitive: bool) -> list[str]:
    """Columns and fields of a file that a table's schema, a StructType, does not have.

    ORC files of Hive's with columns by position have those of the schema, and what is beyond.
    """
    names = [name for name, _ in footer.fields]
    if names and all(re.fullmatch(r"_col\d+", name) for name in names):
        return names[len(schema.fields) :]
    return list(_lost("", footer.fields, schema, case_sensitive))


def _lost(
    prefix: str, fields: Iterable[tuple[str, pa.DataType]], schema: Any, case_sensitive: bool
) -> Iterator[str]:
    def key(name: str) -> str:
        return name if case_sensitive else name.lower()

    declared = {key(field.name): field.dataType for field in schema.fields}
    seen = set()
    for name, data_type in fields:
        if key(name) in seen or key(name) not in declared:
            yield prefix + name
        else:
            yield from _below(f"{prefix}{name}.", data_type, declared[key(name)], case_sensitive)
        seen.add(key(name))


def _below(prefix: str, stored: pa.DataType, known: Any, case_sensitive: bool) -> Iterator[str]:
    kind = known.typeName()
    if pa.types.is_struct(stored) and kind == "struct":
        yield from _lost(prefix, _fields(stored), known, case_sensitive)
    elif pa.types.is_map(stored) and kind == "map":
        yield from _below(f"{prefix}key.", stored.key_type, known.keyType, case_sensitive)
        yield from _below(f"{prefix}value.", stored.item_type, known.valueType, case_sensitive)
    elif pa.types.is_list(stored) and kind == "array":
        yield from _below(f"{prefix}element.", stored.value_type, known.elementType, case_sensitive)


def _fields(parent: Any) -> Iterator[tuple[str, pa.DataType]]:
    count = parent.num_fields if isinstance(parent, pa.DataType) else len(parent)
    for i in range(count):
        yield parent.field(i).name, parent.field(i).type


def _leaves(schema: Any) -> Iterator[Any]:
    return (schema.column(i) for i in range(len(schema)))


def _timestamps(leaf: Any) -> str | None:
    if leaf.physical_type == "INT96":
        return "INT96"
    logical = str(leaf.logical_type)
    if not logical.startswith("Timestamp"):
        return None
    return "TIMESTAMP_MILLIS" if "milliseconds" in logical else "TIMESTAMP_MICROS"
