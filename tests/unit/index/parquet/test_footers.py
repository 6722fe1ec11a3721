"""The statistics that are read from footers describe the files correctly, regardless of the
writer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyzorder.index.entries import ColumnStatistics
from pyzorder.index.parquet.footers import FooterReader, columns_of
from pyzorder.index.pointers import IndexedColumn
from tests.support.engine_tables import statistics_of

NAN, UTC = math.nan, timezone.utc

#: For each type, the values of three row groups of a file.
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [-128, None, 127]),
    "u32": (pa.uint32(), [0, 2**31, 2**32 - 1]),
    "i64": (pa.int64(), [-(2**63), 0, 2**63 - 1]),
    "flag": (pa.bool_(), [True, None, True]),
    "small": (pa.decimal128(7, 2), [Decimal("-1.50"), None, Decimal("99999.99")]),
    "big": (pa.decimal128(30, 4), [Decimal("-1.5"), Decimal(10) ** 20, None]),
    "x": (pa.float64(), [NAN, -0.0, 0.0]),
    "y": (pa.float32(), [1.5, None, math.inf]),
    "day": (pa.date32(), [date(1582, 10, 15), None, date(9999, 12, 31)]),
    "old": (pa.date32(), [date(1582, 10, 14), None, date(2000, 1, 1)]),
    "naive": (pa.timestamp("us"), [datetime(1900, 1, 1), None, datetime(2999, 1, 1)]),
    "at": (pa.timestamp("us", "UTC"), [datetime(1899, 12, 31, tzinfo=UTC), None, None]),
    "text": (pa.string(), ["", "z" * 3000, "\U0001f600"]),
    "bytes": (pa.binary(), [b"", b"\x7f", b"\xff\xff"]),
    "nothing": (pa.int32(), [None, None, None]),
    "st": (pa.struct([("v", pa.int64()), ("a.b", pa.string())]),
           [None, {"v": 5, "a.b": "k"}, {"v": None, "a.b": None}]),
}  # fmt: skip

TABLE = pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()})

#: The columns whose bounds in footers are not trusted, whichever library has written the file.
UNPROVED = {"u32", "x", "y", "old", "at"}


def by_duckdb(path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("rows", TABLE)
        connection.execute(f"COPY rows TO '{path}' (FORMAT parquet)")


WRITERS: dict[str, tuple[Callable[[Path], Any], set[str]]] = {
    "pyarrow": (lambda path: pq.write_table(TABLE, path), {"small", "big"}),
    "row groups": (lambda path: pq.write_table(TABLE, path, row_group_size=1), {"small", "big"}),
    "integers": (lambda path: pq.write_table(TABLE, path, store_decimal_as_integer=True), {"big"}),
    "no statistics": (
        lambda path: pq.write_table(TABLE, path, write_statistics=False), set(COLUMNS) | {"st.v"},
    ),
    "duckdb": (by_duckdb, {"big"}),
    "polars": (lambda path: pl.DataFrame(pl.from_arrow(TABLE)).write_parquet(path), {"big"}),
}  # fmt: skip


@pytest.mark.parametrize("writer", WRITERS)
def test_statistics_describe_the_file(tmp_path: Path, writer: str) -> None:
    write, unproved = WRITERS[writer]
    write(tmp_path / "f")
    columns = columns_of(str(tmp_path / "f"))
    assert [column.path[0] for column in columns] == [*COLUMNS, "st"]
    count, found = FooterReader(columns).read(str(tmp_path / "f"))
    assert count == 3
    for column in columns:
        known, exact = found[column], truth(column)
        if known.null_count is not None:
            assert (known.null_count, known.empty) == (exact.null_count, exact.bounds is None)
        if known.bounds is not None:
            assert exact.bounds is not None
            assert known.bounds[0] <= exact.bounds[0] and exact.bounds[1] <= known.bounds[1]
        is_known = known.bounds is not None or known.empty
        assert is_known == (column.path[0] not in UNPROVED | unproved), column
        assert not column.is_float or known.nan_seen


def truth(column: IndexedColumn) -> ColumnStatistics:
    """The exact statistics, with strings as bytes."""
    found = statistics_of(TABLE, column)
    if column.data_type != "string" or found.bounds is None:
        return found
    values = [value for value in TABLE[column.path[0]].to_pylist() if value is not None]
    for part in column.path[1:]:
        values = [value[part] for value in values if value[part] is not None]
    octets = [value.encode() for value in values]
    return ColumnStatistics((min(octets), max(octets)), False, found.null_count, False)


def of(path: Path, rows: pa.Table, *columns: tuple[tuple[str, ...], str], **options: Any) -> Any:
    """Returns the statistics of columns from the footer of a new file."""
    pq.write_table(rows, path, **options)
    wanted = [IndexedColumn(parts, data_type) for parts, data_type in columns]
    return list(FooterReader(wanted).read(str(path))[1].values())


ABSENT = ColumnStatistics(null_count=1, nan_seen=False, empty=True)
KNOWN = ColumnStatistics((1, 1), False, 0, False)
NO = ColumnStatistics()


@pytest.mark.parametrize(
    ("names", "asked", "found"),
    [
        (["a"], "a", KNOWN),
        (["A"], "a", KNOWN),
        (["b"], "a", ABSENT),
        (["a", "A"], "a", NO),
        (["é"], "é", KNOWN),
        (["É"], "é", KNOWN),
        (["\u0131"], "i", NO),  # a dotless i, which Java may treat as an i
        (["i"], "\u0131", NO),
    ],
)
def test_names(tmp_path: Path, names: list[str], asked: str, found: ColumnStatistics) -> None:
    rows = pa.table([pa.array([1])] * len(names), names=names)
    assert of(tmp_path / "f", rows, ((asked,), "long")) == [found]


def test_nested_names(tmp_path: Path) -> None:
    inner = pa.struct([("b", pa.int64()), ("c", pa.list_(pa.int64()))])
    rows = pa.table({
        "l": pa.array([[7]]), "a": pa.array([{"b": 1, "c": [2]}], inner), "a.b": [3],
        "m": pa.array([[("k", 4)]], pa.map_(pa.string(), pa.int64())), "z": [1],
    })  # fmt: skip
    paths = [("a", "b"), ("a", "x"), ("a", "c"), ("a",), ("z",), ("z", "b"), ("l",), ("l", "b"),
             ("m", "key"), ("a.b",)]  # fmt: skip
    found = of(tmp_path / "f", rows, *((path, "long") for path in paths))
    three = ColumnStatistics((3, 3), False, 0, False)
    assert found == [KNOWN, ABSENT, NO, NO, KNOWN, NO, NO, NO, NO, three]


@pytest.mark.parametrize("mark", ["__CHAR_VARCHAR_TYPE_STRING", "__COLLATIONS"])
def test_strings_that_are_not_compared_as_stored(tmp_path: Path, mark: str) -> None:
    """Strings have no bounds if a footer written by Spark marks their column as CHAR or as having a
    collation."""
    fields = [{"name": "C", "type": "string", "metadata": {mark: "x"}},
              {"name": "d", "type": "string", "metadata": {}}]  # fmt: skip
    schema = json.dumps({"type": "struct", "fields": fields})
    rows = pa.table({"C": ["a"], "d": ["b"]}).replace_schema_metadata(
        {"org.apache.spark.sql.parquet.row.metadata": schema}
    )
    found = of(tmp_path / "f", rows, (("c",), "string"), (("d",), "string"))
    assert found == [ColumnStatistics(null_count=0), ColumnStatistics((b"b", b"b"), True, 0, False)]
    assert [column.name for column in columns_of(str(tmp_path / "f"))] == ["d"]


def test_int96(tmp_path: Path) -> None:
    rows = pa.table({"t": pa.array([0], pa.timestamp("us"))})
    found = of(tmp_path / "f", rows, (("t",), "timestamp"), use_deprecated_int96_timestamps=True)
    assert found == [NO] and columns_of(str(tmp_path / "f")) == []


def test_a_file_without_rows(tmp_path: Path) -> None:
    none = ColumnStatistics(null_count=0, nan_seen=False, empty=True)
    assert of(tmp_path / "f", pa.table({"a": pa.array([], pa.int64())}), (("a",), "long")) == [none]


def test_files_with_different_schemas(tmp_path: Path) -> None:
    for k, rows in enumerate([pa.table({"a": [1]}), pa.table({"b": [2], "a": [1]})] * 20):
        pq.write_table(rows, tmp_path / f"{k}")
    a = IndexedColumn(("a",), "long")
    reader = FooterReader([a])
    assert all(reader.read(str(tmp_path / f"{k}"))[1] == {a: KNOWN} for k in range(40))


def test_files_with_equal_leaves(tmp_path: Path) -> None:
    """Statistics are found under the right names even in files whose schemas differ only in the
    names of structs. PyArrow considers such schemas equal."""
    inner = pa.field("a", pa.struct([("x", pa.int64())]), nullable=False)
    files = [pa.table([pa.array([{"x": 1}], inner.type)], pa.schema([inner.with_name(name)]))
             for name in "ab"]  # fmt: skip
    files.append(pa.table({"x": [1]}))
    for k, rows in enumerate(files):
        pq.write_table(rows, tmp_path / f"{k}")
    columns = [IndexedColumn(path, "long") for path in (("a", "x"), ("b", "x"), ("x",))]
    reader = FooterReader(columns)
    for k in (0, 1, 2, 0, 1, 2):
        found = reader.read(str(tmp_path / f"{k}"))[1]
        assert [found[column] == KNOWN for column in columns] == [k == 0, k == 1, k == 2]
