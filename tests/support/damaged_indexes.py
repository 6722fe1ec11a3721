"""Damages and forges the files of an index, each time in a different way."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def change(file: Path, to: bytes) -> None:
    file.unlink()  # breaks the hard link to the original file
    file.write_bytes(to)


def index_files(table: Path) -> list[Path]:
    return sorted(path for path in (table / "_zorder").rglob("*") if path.is_file())


def pointer(table: Path) -> Path:
    return max((table / "_zorder" / "_index").glob("_v*.json"))


def snapshot(table: Path) -> Path:
    name: str = json.loads(pointer(table).read_text())["file"]
    return pointer(table).with_name(name)


def edited(**fields: object) -> Callable[[Path], None]:
    """Returns a function that changes fields of the pointer."""

    def edit(table: Path) -> None:
        content = json.loads(pointer(table).read_text())
        change(pointer(table), json.dumps({**content, **fields}).encode())

    return edit


def first_column(**fields: object) -> Callable[[Path], None]:
    """Returns a function that changes fields of the pointer's first column."""

    def edit(table: Path) -> None:
        first, *others = json.loads(pointer(table).read_text())["columns"]
        edited(columns=[first | fields, *others])(table)

    return edit


def truncated(file: Callable[[Path], Path], keep: float) -> Callable[[Path], None]:
    def cut(table: Path) -> None:
        content = file(table).read_bytes()
        change(file(table), content[: int(len(content) * keep)])

    return cut


def folder_instead(file: Callable[[Path], Path]) -> Callable[[Path], None]:
    def make(table: Path) -> None:
        place = file(table)
        place.unlink()
        place.mkdir()

    return make


def strange_pointers(table: Path) -> None:
    for name in ("_v99999999999999999999.json", "_v09223372036854775807.json", "_v1.json", "_vx"):
        (table / "_zorder" / "_index" / name).write_text("{}")


def typed(data_type: str) -> Callable[[Path], None]:
    """Returns a function that replaces the columns in the pointer with a single column.
    `data_type` is the JSON of the column's type."""

    def edit(table: Path) -> None:
        edited(columns=["@"])(table)
        column = f'{{"path": ["id"], "type": {data_type}}}'
        change(pointer(table), pointer(table).read_text().replace('"@"', column).encode())

    return edit


def deep(levels: int) -> str:
    """The JSON of an array type that is nested `levels` deep."""
    around = '{"type": "array", "containsNull": true, "elementType": '
    return around * levels + '"long"' + "}" * levels


def user_defined(name: str) -> str:
    return json.dumps({"type": "udt", "class": name, "pyClass": None, "sqlType": "long"})


def padded(member: str, count: int) -> Callable[[Path], None]:
    """Returns a function that adds a field to the pointer. The field's value is a list of `count`
    members."""

    def edit(table: Path) -> None:
        edited(more="@")(table)
        members = "[" + ",".join([member] * count) + "]"
        change(pointer(table), pointer(table).read_text().replace('"@"', members).encode())

    return edit


def rewritten(rows: Callable[[pa.Table], pa.Table], **options: Any) -> Callable[[Path], None]:
    """Returns a function that rewrites the snapshot with other rows or options, and updates the
    snapshot's checksum and length in the pointer."""

    def edit(table: Path) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(rows(pq.ParquetFile(snapshot(table)).read()), sink, **options)
        data = sink.getvalue().to_pybytes()
        change(snapshot(table), data)
        edited(length=len(data), crc32=zlib.crc32(data))(table)

    return edit


def long_text(column: str, size: int) -> Callable[[pa.Table], pa.Table]:
    """Returns a function that replaces the value in the first row with a string of the given size
    in bytes."""

    def put(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index(column)
        texts = ["x" * size, *rows[column].to_pylist()[1:]]
        return rows.set_column(place, rows.schema.field(place), pa.array(texts, pa.string()))

    return put


def one_path(rows: pa.Table) -> pa.Table:
    """Gives all entries the path of the first entry."""
    place = rows.schema.get_field_index("path")
    paths = pa.array([rows["path"][0].as_py()] * rows.num_rows, pa.string())
    return rows.set_column(place, rows.schema.field(place), paths)


def long_lists(rows: pa.Table) -> pa.Table:
    """Gives every entry a list of 9,999 clustering columns, all with the same long name."""
    place, many = rows.schema.get_field_index("clustered_by"), 9_999 * rows.num_rows
    names = pa.DictionaryArray.from_arrays(pa.array([0] * many, pa.int32()), ["x" * 100_000])
    lists = pa.ListArray.from_arrays(range(0, many + 1, 9_999), names)
    return rows.set_column(place, "clustered_by", lists)


def without_values(column: str) -> Callable[[pa.Table], pa.Table]:
    """Returns a function that replaces all values of a column with null."""

    def put(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index(column)
        nulls = pa.nulls(rows.num_rows, rows.schema.field(place).type)
        return rows.set_column(place, column, nulls)

    return put


def swapped(*columns: str) -> Callable[[pa.Table], pa.Table]:
    """Returns a function that swaps the minimum and the maximum of each column."""

    def swap(rows: pa.Table) -> pa.Table:
        other = {"_minValue": "_maxValue", "_maxValue": "_minValue"}
        names = {f"{column}{end}": f"{column}{other[end]}" for column in columns for end in other}
        return rows.rename_columns([names.get(name, name) for name in rows.column_names])

    return swap


def in_upper_case(table: Path) -> None:
    """Adds statistics of a column `ID` to those of `id`. Names are not case-sensitive."""

    def add(rows: pa.Table) -> pa.Table:
        for name in rows.column_names:
            if name.startswith("id_"):
                rows = rows.append_column(name.replace("id_", "ID_", 1), rows[name])
        return rows

    rewritten(add)(table)
    edited(columns=[{"path": [name], "type": "long"} for name in ("id", "ID")])(table)


def numbers_as_names(rows: pa.Table) -> pa.Table:
    """Makes the names of the clustering columns numbers."""
    place = rows.schema.get_field_index("clustered_by")
    lists = pa.array([[1]] * rows.num_rows, pa.list_(pa.int32()))
    return rows.set_column(place, "clustered_by", lists)


PLAIN: dict[str, Any] = {"use_dictionary": False, "write_statistics": False}

#: Ways to damage the index of a table, as functions of the table's folder.
DAMAGE: dict[str, Callable[[Path], None]] = {
    **{f"pointer cut at {k}": truncated(pointer, k) for k in (0, 0.3, 0.99)},
    **{f"snapshot cut at {k}": truncated(snapshot, k) for k in (0, 0.5, 0.99)},
    "no pointer": lambda t: pointer(t).unlink(),
    "no snapshot": lambda t: snapshot(t).unlink(),
    "no incarnation": lambda t: (t / "_zorder" / "_incarnation").unlink(),
    "no journal": lambda t: shutil.rmtree(t / "_zorder" / "_journal"),
    "pointer is a folder": folder_instead(pointer),
    "snapshot is a folder": folder_instead(snapshot),
    "a newer format": edited(formatVersion=3),
    "a format version that is text": edited(formatVersion="new"),
    "the incarnation of another table": edited(incarnation="11111111-1111-1111-1111-111111111111"),
    "too many files": edited(numFiles=2_000_000_000),
    "a negative number of files": edited(numFiles=-1),
    "no columns": edited(columns=[]),
    "columns are not a list": edited(columns={"path": "id"}),
    "a column without a name": edited(columns=[{"path": [], "type": "long"}]),
    **{f"the first column's path is {path}": first_column(path=path) for path in ([], "abc", 5)},
    "the first column's type is another": first_column(type="string"),
    "an unknown column": edited(columns=[{"path": ["nowhere"], "type": "long"}]),
    "a column of another type": edited(columns=[{"path": ["id"], "type": "string"}]),
    "an unknown type": edited(columns=[{"path": ["id"], "type": "longer"}]),
    "a column twice": edited(columns=[{"path": ["id"], "type": "long"}] * 2),
    "a snapshot elsewhere": edited(file="../../../source/_zorder/_index/_snapshot-1"),
    "a snapshot at the root": edited(file="/etc/hostname"),
    "pointer is a list": lambda t: change(pointer(t), b"[1, 2]"),
    "pointer is deep": lambda t: change(pointer(t), b"[" * 100_000),
    "more pointers with strange names": strange_pointers,
    "a deep type": typed(deep(900)),
    "a type that is not atomic": typed(deep(1)),
    "a type of an unknown class": typed(user_defined("no.such.Class")),
    # This class extends a class from a library that Spark does not include.
    "a type of a class that cannot be linked": typed(
        user_defined("org.apache.logging.log4j.core.async.RingBufferLogEventHandler")
    ),
    "many entries of one path": rewritten(one_path),
    "many long names": rewritten(long_lists, store_schema=False),
    "no read settings": rewritten(without_values("read_settings")),
    "no flags": rewritten(without_values("id_exact")),
    "bounds in the wrong order": rewritten(swapped("id", "s", "x")),
    "numbers as names": rewritten(numbers_as_names),
    "many tokens": padded("[]", 2 << 20),
    "many columns": edited(columns=[{"path": ["id"], "type": "long"}] * 300_000),
    **{
        f"a long {column}, {codec}": rewritten(
            long_text(column, 100 << 20), compression=codec, **PLAIN
        )
        for column, codec in (("path", "zstd"), ("path", "snappy"), ("s_minValue", "snappy"))
    },
}
