"""Index entries are correct for Parquet files that PyArrow, DuckDB and Polars have written, and
queries can skip such files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession

from pyzorder.engines.indexing import index_files
from tests.support import indexes, scans

NAN, LONG = float("nan"), "common prefix " * 9


def utc(*parts: int) -> datetime:
    """A timestamp in UTC."""
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[misc,arg-type]


# For each column, its type, its values in three files, and predicates. Each predicate must skip at
# least one of these files.
COLUMNS: dict[str, tuple[pa.DataType, list[list[Any]], list[str]]] = {
    "i8": (pa.int8(), [[-128, None], [0, 5], [127, 6]], ["{} < -5", "{} = 127"]),
    "u8": (pa.uint8(), [[0, 1], [127, 128], [255, None]], ["{} > 200", "{} IN (0, 3)"]),
    "u16": (pa.uint16(), [[0, 1], [32767, 32768], [65535, None]], ["{} > 60000", "{} < 7"]),
    "u32": (pa.uint32(), [[0, 1], [2**31 - 1, 2**31], [2**32 - 1, None]],
            ["{} > 4000000000", "{} < 7", "{} = 2147483648"]),
    "u64": (pa.uint64(), [[0, 1], [2**63 - 1, 2**63], [2**64 - 1, None]],
            ["{} > 10000000000000000000BD", "{} < 7"]),
    "i64": (pa.int64(), [[-(2**63), None], [0, 1], [2**63 - 1, 7]], ["{} < 0", "{} > 100"]),
    "flag": (pa.bool_(), [[True, True], [False, None], [False, False]], ["{}", "NOT {}"]),
    "small": (pa.decimal128(7, 2), [[Decimal("-1.50"), None], [Decimal("0.25"), Decimal("1.00")],
              [Decimal("99999.99"), Decimal("7.00")]], ["{} < 0", "{} > 5.5"]),
    "big": (pa.decimal128(30, 4), [[Decimal("-1.5000"), None], [Decimal("0.2500"), Decimal(1)],
            [Decimal(10**20), Decimal(7)]], ["{} < 0", "{} > 5.5"]),
    "x": (pa.float64(), [[NAN, 1.0], [-0.0, -5.5], [NAN, NAN]], ["{} < 0", "{} = 1"]),
    "zero": (pa.float64(), [[0.0, 0.0], [-0.0, -0.0], [7.0, 8.0]], ["{} = 0", "{} = -0.0D"]),
    "y": (pa.float32(), [[1.5, None], [float("-inf"), 0.0], [float("inf"), 2.0]],
          ["{} < -1e30", "{} > 1e30"]),
    "day": (pa.date32(), [[date(1900, 1, 1), None], [date(2020, 2, 29)] * 2, [date(2999, 1, 1)] * 2],
            ["{} < '1950-01-01'", "year({}) = 2020"]),
    "naive": (pa.timestamp("us"), [[datetime(1900, 1, 1), None], [datetime(2020, 1, 1, 1, 2, 3, 4)] * 2,
              [datetime(2999, 1, 1)] * 2], ["{} < '1950-01-01'", "{} > '2500-01-01'"]),
    "at": (pa.timestamp("us", "UTC"), [[utc(1900, 1, 1), None], [utc(2020, 1, 1, 1, 2, 3, 4)] * 2,
           [utc(2999, 1, 1)] * 2], ["{} < '1950-01-01'", "{} > '2500-01-01'"]),
    "text": (pa.string(), [["", "a"], ["b\U0010ffff", None], ["é", "\U0001f600"]],
             ["{} = ''", "{} LIKE 'b%'", "{} > 'z'"]),
    "long": (pa.string(), [[LONG + "a", LONG + "b"], [LONG + "c", None], ["z" * 5000, "zz"]],
             ["{} > 'e'", "{} LIKE 'z%'", "{} = 'common'"]),
    "bytes": (pa.binary(), [[b"", b"\x00"], [b"\x7f", b"\x80"], [b"\xff\xff", None]],
              ["{} > X'A0'", "{} = X'00'"]),
    "nothing": (pa.int32(), [[None, None], [1, 2], [None, None]], ["{} = 1", "{} IS NOT NULL"]),
}  # fmt: skip


def of_pyarrow(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path)


def of_pyarrow_with_short_pages(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=1, data_page_version="2.0", write_page_index=True)


def of_duckdb(table: pa.Table, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("rows", table)
        connection.execute(f"COPY rows TO '{path}' (FORMAT parquet)")


def of_duckdb_version_2(table: pa.Table, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("rows", table)
        connection.execute(f"COPY rows TO '{path}' (FORMAT parquet, PARQUET_VERSION v2)")


def of_polars(table: pa.Table, path: Path) -> None:
    pl.DataFrame(pl.from_arrow(table)).write_parquet(path, statistics="full")


def of_polars_without_statistics(table: pa.Table, path: Path) -> None:
    pl.DataFrame(pl.from_arrow(table)).write_parquet(path, statistics=False)


WRITERS = [of_pyarrow, of_pyarrow_with_short_pages, of_duckdb, of_duckdb_version_2, of_polars,
           of_polars_without_statistics]  # fmt: skip


@pytest.mark.parametrize("write", WRITERS)
def test_files_of(
    spark: SparkSession, tmp_path: Path, write: Callable[[pa.Table, Path], None]
) -> None:
    path = three_files(spark, tmp_path / "t", write)
    indexes.build(spark, path, "parquet")
    entries = indexes.check_sound(spark, path, "parquet")
    assert len(entries) == 3
    unknown = {name for name in COLUMNS for e in entries.values() if not indexes.known(e, name)}
    assert unknown == set()
    opened = check_queries(spark, path)
    assert {predicate for predicate, files in opened.items() if files == 3} == set()


@pytest.mark.parametrize("write", WRITERS)
def test_footers_of(
    spark: SparkSession, tmp_path: Path, write: Callable[[pa.Table, Path], None]
) -> None:
    """`pyzorder index` indexes the files by reading only their footers."""
    path = three_files(spark, tmp_path / "t", write)
    assert len(index_files(path).indexed) == 3
    entries = indexes.check_sound(spark, path, "parquet")
    assert len(entries) == 3
    opened = check_queries(spark, path)
    if write is not of_polars_without_statistics:
        known = {name for name in COLUMNS if all(indexes.known(e, name) for e in entries.values())}
        unproved = {"u8", "u16", "u32", "u64", "x", "y", "zero", "small", "big"}
        assert known >= COLUMNS.keys() - unproved - {"long"}
        assert sum(files < 3 for files in opened.values()) > 15


def three_files(spark: SparkSession, path: Path, write: Callable[[pa.Table, Path], None]) -> Path:
    """Writes three files with all columns."""
    path.mkdir()
    for i in range(3):
        columns = {name: pa.array(files[i], t) for name, (t, files, _) in COLUMNS.items()}
        write(pa.table(columns), path / f"{i}.parquet")
    try:
        with scans.plain(spark):
            spark.read.parquet(str(path)).write.format("noop").mode("append").save()
    except scans.FAILURES as failure:
        assert "BYTE_STREAM_SPLIT" in str(failure) and pyspark.__version__ < "4.3"
        pytest.skip("Spark itself cannot read these files")
    return path


def check_queries(spark: SparkSession, path: Path) -> dict[str, int]:
    """Checks which files queries open, and returns how many files each query opens."""
    spark.read.parquet(str(path)).createOrReplaceTempView("theirs")
    asked = {text.format(name): name for name, (_, _, texts) in COLUMNS.items() for text in texts}
    return scans.check_sound(spark, "theirs", list(asked))
