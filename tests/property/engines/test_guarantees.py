"""On random tables, PyArrow, DuckDB and Polars find the same rows with and without the index.
`pyzorder.files` keeps every file with a matching row. The index is computed from the values or, as
in `pyzorder index`, from the footers of files that PyArrow, DuckDB or Polars has written."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pyzorder
from pyzorder.engines.indexing import index_files
from tests.support.engine_tables import make

Draw = Callable[[st.SearchStrategy[Any]], Any]
Writer = Callable[[pa.Table, Path], None]

_TEXT = st.text("ab\u00e9\uffff\U0001d11e", max_size=3)

#: The columns, their types, and their values. Most values are close to each other, so that filters
#: match only some of the files.
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int32(), st.integers(-5, 5) | st.sampled_from([-(2**31), 2**31 - 1])),
    "l": (pa.int64(), st.integers(-5, 5) | st.sampled_from([-(2**63), 2**63 - 1, 2**53 + 1])),
    "f": (pa.float32(), st.sampled_from([0.0, -0.0, 0.5, 1.5, math.nan, math.inf, -math.inf])),
    "x": (pa.float64(), st.sampled_from([0.0, -0.0, 0.1, 1.5, math.nan, math.inf, 2.0**53])),
    "n": (pa.decimal128(7, 2), st.integers(-300, 300).map(lambda v: Decimal(v).scaleb(-2))),
    "d": (pa.date32(), st.dates().filter(lambda d: d.year > 1) | st.dates()),
    "s": (pa.string(), _TEXT | st.sampled_from(["a" * 300, "a" * 300 + "b", "a" * 256])),
    "b": (pa.bool_(), st.booleans()),
}


@st.composite
def tables(draw: Draw) -> dict[str, pa.Table]:
    """Generates two to four files with up to four rows each."""
    schema = pa.schema([(name, data_type) for name, (data_type, _) in COLUMNS.items()])
    files = {}
    for k in range(draw(st.integers(2, 4))):
        count = draw(st.integers(1, 4))
        rows = {
            name: draw(st.lists(st.none() | values, min_size=count, max_size=count))
            for name, (_, values) in COLUMNS.items()
        }
        files[f"f{k}.parquet"] = pa.table(rows, schema)
    return files


@st.composite
def comparisons(draw: Draw) -> tuple[str, str, Any]:
    """Generates a column name, an operator, and a value that is not null."""
    name = draw(st.sampled_from(sorted(COLUMNS)))
    operator = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "!="]))
    return name, operator, draw(COLUMNS[name][1])


_APPLIED: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "!=": lambda a, b: a != b,
}  # fmt: skip


def is_below_nan(name: str, operator: str, value: Any) -> bool:
    """Whether a comparison is `x < NaN` or `x <= NaN`. PyArrow treats such a comparison as TRUE if
    bounds for x are known, from a footer or from the index, and as FALSE otherwise."""
    return operator in ("<", "<=") and isinstance(value, float) and math.isnan(value)


def in_arrow(name: str, operator: str, value: Any) -> pc.Expression:
    return _APPLIED[operator](pc.field(name), pa.scalar(value, COLUMNS[name][0]))


def in_polars(name: str, operator: str, value: Any) -> pl.Expr:
    data_type = pl.from_arrow(pa.array([], COLUMNS[name][0])).dtype
    return _APPLIED[operator](pl.col(name), pl.lit(value, data_type))


def in_sql(name: str, operator: str, value: Any) -> str:
    if isinstance(value, float):
        text = "NaN" if math.isnan(value) else repr(value).replace("inf", "Infinity")
        return f"{name} {operator} CAST('{text}' AS DOUBLE)"
    if isinstance(value, bool):
        return f"{name} {operator} {str(value).lower()}"
    if isinstance(value, str):
        return f"{name} {operator} '{value}'"
    if isinstance(value, Decimal):
        return f"{name} {operator} CAST('{value}' AS DECIMAL(7, 2))"
    return f"{name} {operator} {value}" if isinstance(value, int) else (
        f"{name} {operator} DATE '{value.isoformat()}'"
    )  # fmt: skip


def by_pyarrow(rows: pa.Table, path: Path) -> None:
    pq.write_table(rows, path, row_group_size=2, store_decimal_as_integer=True)


def by_duckdb(rows: pa.Table, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        connection.execute(f"COPY rows TO '{path}' (FORMAT parquet)")


def by_polars(rows: pa.Table, path: Path) -> None:
    pl.DataFrame(pl.from_arrow(rows)).write_parquet(path, statistics="full")


def indexed(table: Path, files: dict[str, pa.Table], writer: Writer | None) -> Path:
    """Writes a table and its index. If a writer is given, it writes the files, and the index is
    computed from their footers."""
    if writer is None:
        return make(table, files)
    for name, rows in files.items():
        writer(rows, table / name)
    assert len(index_files(table).indexed) == len(files)
    return table


def rows_of(frame: pl.DataFrame) -> list[str]:
    return sorted(map(repr, frame.rows()))


@settings(max_examples=40, deadline=None, database=None, derandomize=True,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(tables(), st.sampled_from([None, by_pyarrow, by_duckdb, by_polars]), st.lists(st.tuples(comparisons(), comparisons(), st.booleans(), st.booleans()),
                          min_size=6, max_size=6))  # fmt: skip
def test_answers_stay_the_same(
    files: dict[str, pa.Table], writer: Writer | None, pairs: list[Any]
) -> None:
    with tempfile.TemporaryDirectory() as home, duckdb.connect() as connection:
        table = indexed(Path(home), files, writer)
        paths = [str(table / name) for name in files]
        plain, ours = ds.dataset(paths), pyzorder.dataset(table)
        eager = pl.from_arrow(pa.concat_tables(files.values()))
        lazy = pyzorder.scan_polars(table)
        connection.register("plain", plain)
        connection.register("ours", ours)
        for first, second, is_and, negated in pairs:
            sides = [in_arrow(*one) for one in (first, second)]
            arrow = sides[0] & sides[1] if is_and else sides[0] | sides[1]
            arrow = ~arrow if negated else arrow
            ambiguous = is_below_nan(*first) or is_below_nan(*second)
            expected = plain.count_rows(filter=arrow)
            assert ambiguous or ours.count_rows(filter=arrow) == expected, str(arrow)

            sides = [in_polars(*one) for one in (first, second)]
            polars = sides[0] & sides[1] if is_and else sides[0] | sides[1]
            polars = ~polars if negated else polars
            assert rows_of(lazy.filter(polars).collect()) == rows_of(eager.filter(polars)), polars

            sql = f"({in_sql(*first)}) {'AND' if is_and else 'OR'} ({in_sql(*second)})"
            sql = f"NOT ({sql})" if negated else sql
            query = f"SELECT count(*) FROM {{}} WHERE {sql}"
            counted = [connection.sql(query.format(t)).fetchall() for t in ("ours", "plain")]
            assert ambiguous or counted[0] == counted[1], sql

            # Like Spark, Polars treats NaN as greater than all other values.
            kept = {Path(path).name for path in pyzorder.files(table, sql)}
            for name, rows in files.items():
                if pl.from_arrow(rows).filter(polars).height:
                    assert name in kept, f"{sql} leaves out {name}"
