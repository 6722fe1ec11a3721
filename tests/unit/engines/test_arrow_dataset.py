"""Queries on `pyzorder.dataset` return the same rows as queries on the plain files. Files whose
bounds rule out a match are not opened."""

from __future__ import annotations

import os
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import pyzorder
from pyzorder import ZOrderError
from pyzorder.engines.arrow_dataset import open_dataset
from tests.support.engine_tables import index, make, spoil, write
from tests.unit.engines.test_selection import rows

FILES = {f"f{k}.parquet": rows(k) for k in range(5)}


def opened(table: ds.Dataset, condition: pc.Expression) -> str:
    """The digits in the names of the files that PyArrow opens for a filter."""
    return "".join(Path(f.path).stem[1:] for f in table.get_fragments(condition))


F = pc.field

#: PyArrow filters, and the files that each filter opens ("13" stands for f1.parquet and
#: f3.parquet). The table has five files.
FILTERS = [
    (F("i") == 15, "1"), ((F("i") > 25) & (F("s") < "k3"), "2"), (F("i").is_null(), "01234"),
    (F("i").isin([1, 45, 100]), "04"), ((F("i") == 15) | (F("s") == "k33"), "13"),
    (F("x") > 3.5, "24"), (F("x").is_nan(), "01234"), (F("d") == rows(1)["d"][0], "1"),
    (F("n") == rows(1)["n"][0], "1"), (F("ts") >= rows(3)["ts"][0], "34"),
    (F("tn") >= rows(3)["tn"][0], "34"), (F("st", "y") == 3, "3"), (F("bin") > b"\x03", "34"),
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("dataset"), FILES)


@pytest.mark.parametrize(("condition", "expected"), FILTERS, ids=str)
def test_filters(table: Path, condition: pc.Expression, expected: str) -> None:
    found = pyzorder.dataset(table)
    assert opened(found, condition) == expected
    plain = ds.dataset([str(p) for p in sorted(table.glob("*.parquet"))])
    answers = (t.to_table(filter=condition, columns=["i", "s"]) for t in (found, plain))
    assert next(answers).equals(next(answers))


#: DuckDB queries, and the files that each query needs. DuckDB does not pass two kinds of conditions
#: to PyArrow: conditions on decimals, and conditions on different columns joined by OR.
QUERIES = [
    ("SELECT sum(i), count(*) FROM ds WHERE i BETWEEN 21 AND 25", "2"),
    ("SELECT count(*) FROM ds WHERE s = 'k33' OR i = 15", "01234"),
    ("SELECT count(*) FROM ds WHERE d = DATE '2024-01-02'", "1"),
    ("SELECT count(*) FROM ds WHERE n > 3", "01234"),
    ("SELECT count(*) FROM ds WHERE ts >= TIMESTAMPTZ '2024-01-04 00:00:00+00'", "34"),
    ("SELECT count(*) FROM ds WHERE s IN ('k11', 'k44')", "14"),
]


@pytest.mark.parametrize(("query", "needed"), QUERIES)
def test_duckdb(tmp_path: Path, table: Path, query: str, needed: str) -> None:
    with duckdb.connect() as connection:
        plain = query.replace("FROM ds", f"FROM read_parquet('{table}/*.parquet')")
        expected = connection.sql(plain).fetchall()
        shutil.copytree(table, tmp_path / "t")
        connection.register("ds", pyzorder.dataset(tmp_path / "t"))
        spoil(tmp_path / "t", [f"f{k}.parquet" for k in needed])
        assert connection.sql(query).fetchall() == expected


def test_a_join_of_two_datasets(tmp_path: Path, table: Path) -> None:
    other = {"k.parquet": pa.table({"i": [15, 25], "name": ["a", "b"]})}
    keys, facts = pyzorder.dataset(make(tmp_path, other)), pyzorder.dataset(table)
    with duckdb.connect() as connection:
        connection.register("keys", keys)
        connection.register("facts", facts)
        found = connection.sql("SELECT name, s FROM facts JOIN keys USING (i) ORDER BY name")
        assert found.fetchall() == [("a", "k15"), ("b", "k25")]


def test_polars_over_the_dataset(tmp_path: Path, table: Path) -> None:
    shutil.copytree(table, tmp_path / "t")
    frame = pl.scan_pyarrow_dataset(pyzorder.dataset(tmp_path / "t"))
    spoil(tmp_path / "t", ["f1.parquet"])
    assert frame.filter(pl.col("s") == "k14").select("i").collect().item() == 14


def test_pandas_over_the_files(table: Path) -> None:
    pandas = pytest.importorskip("pandas")
    found = pandas.read_parquet(pyzorder.files(table, "s = 'k13'"))
    assert set(found["b"]) == {False} and len(found) == 10


# ---- values for which other projects have returned wrong answers --------------------------------


def test_null_is_found(tmp_path: Path) -> None:
    """IS NULL finds the nulls in a file, although the file's bounds do not include null."""
    files = {"f0.parquet": pa.table({"a": [1, None]}), "f1.parquet": pa.table({"a": [5, 6]})}
    found = pyzorder.dataset(make(tmp_path, files))
    with duckdb.connect() as connection:
        connection.register("t", found)
        assert connection.sql("SELECT count(*) FROM t WHERE a IS NULL").fetchall() == [(1,)]
        query = "SELECT count(*) FROM t WHERE a IS DISTINCT FROM 1"
        assert connection.sql(query).fetchall() == [(3,)]


NAN = float("nan")


@pytest.mark.parametrize("width", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("values", [[NAN], [NAN, 1.0], [1.0, NAN], [None, NAN]])
def test_nan_is_above_every_bound(tmp_path: Path, values: list[Any], width: pa.DataType) -> None:
    """Rows with NaN are found, although the bounds do not include NaN. Polars and DuckDB order NaN
    above all other values, except in filters that DuckDB passes to PyArrow."""
    files = {
        "f0.parquet": pa.table({"x": pa.array(values, width)}),
        "f1.parquet": pa.table({"x": pa.array([2.0], width)}),
    }
    table = make(tmp_path, files)
    plain = ds.dataset([str(path) for path in sorted(table.glob("*.parquet"))])
    with duckdb.connect() as connection:
        connection.register("t", pyzorder.dataset(table))
        connection.register("plain", plain)
        for condition in ("x > 1e30", "x = 'NaN'::DOUBLE", "NOT (x < 5)", "x IS NOT NULL"):
            query = f"SELECT count(*) FROM {{}} WHERE {condition}"
            expected = connection.sql(query.format("plain")).fetchall()
            assert connection.sql(query.format("t")).fetchall() == expected, condition
        assert connection.sql("SELECT count(*) FROM t WHERE isnan(x)").fetchall() == [(1,)]
    found = pyzorder.scan_polars(table)
    for filter in (pl.col("x") > 1e30, pl.col("x") == NAN, pl.col("x").is_nan()):
        assert found.filter(filter).collect().height == 1


def test_the_sign_of_zero(tmp_path: Path) -> None:
    files = {"f0.parquet": pa.table({"x": [-0.0]}), "f1.parquet": pa.table({"x": [0.0]})}
    table = make(tmp_path, files)
    with duckdb.connect() as connection:
        connection.register("t", pyzorder.dataset(table))
        for condition in (
            "x = 0.0",
            "x = -0.0",
            "x >= 0.0",
            "x <= -0.0",
            "x IN (0.0)",
            "NOT (x < 0)",
        ):
            query = f"SELECT count(*) FROM t WHERE {condition}"
            assert connection.sql(query).fetchall() == [(2,)], condition
    for value in (0.0, -0.0):
        assert pyzorder.scan_polars(table).filter(pl.col("x") == value).collect().height == 2
        assert len(pyzorder.files(table, f"x = {value}D")) == 2


def test_long_and_odd_strings(tmp_path: Path) -> None:
    """Lookups find long strings, although the bounds of such strings are truncated. They also find
    strings with characters that UTF-8 and UTF-16 order differently."""
    texts = [
        "y" * 1100,
        "y" * 256,
        "y" * 256 + "\U0010ffff",
        "\ud7ff" * 100,
        "\uffff",
        "𝄞",
        "é",
        "",
    ]
    files = {f"f{k}.parquet": pa.table({"s": [text]}) for k, text in enumerate(texts)}
    found = pyzorder.dataset(make(tmp_path, files))
    for k, text in enumerate(texts):
        assert str(k) in opened(found, F("s") == text)
        assert found.to_table(filter=F("s") == text).num_rows == 1
        more = sum(t.encode() >= text.encode() for t in texts)
        assert found.to_table(filter=F("s") >= text).num_rows == more


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    """A file is always opened if its bounds are not valid UTF-8, because no engine can compare
    strings with them."""
    odd = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())
    files = {"f0.parquet": pa.table({"s": ["a"]}), "f1.parquet": pa.table({"s": ["b"]})}
    write(tmp_path, files)
    index(tmp_path, files, changed={"s": {"bounds": (b"\xff\xfe", b"\xff\xff")}})
    assert opened(pyzorder.dataset(tmp_path), F("s") == "a") == "01"
    assert odd.type == pa.string()


#: (a column in a file, the column's type in the index, a filter). PyArrow reads each column as a
#: type that differs from the type in the index.
OTHERWISE = [
    (pa.array([1], pa.uint32()), "long", F("c") == 7),
    (
        pa.array(["1.5"]).cast(pa.decimal128(5, 2)),
        "decimal(10,2)",
        F("c") == pa.scalar(Decimal(7), pa.decimal128(5, 2)),
    ),
    (
        pa.array([1], pa.timestamp("ns")),
        "timestamp_ntz",
        F("c") == pa.scalar(7, pa.timestamp("ns")),
    ),
    (pa.array([1], pa.timestamp("us")), "timestamp", F("c") == pa.scalar(7, pa.timestamp("us"))),
    (pa.array([1.5], pa.float32()), "double", F("c") == 7.0),
    (pa.array(["a"]).dictionary_encode(), "string", F("c") == "z"),
    (pa.array(["a"]), "string collate UNICODE_CI", F("c") == "A"),
]


@pytest.mark.parametrize(("values", "data_type", "condition"), OTHERWISE, ids=lambda v: str(v)[:30])
def test_columns_read_with_another_type(
    tmp_path: Path, values: pa.Array, data_type: str, condition: pc.Expression,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A file is opened if PyArrow reads the filtered column as a type that differs from the type in
    the index."""
    write(tmp_path, {"f0.parquet": pa.table({"c": values})})
    claimed = pa.table({"c": pa.array([None], pa.string() if "str" in data_type else pa.int64())})
    monkeypatch.setattr("tests.support.engine_tables.spark_name", lambda _: data_type)
    index(tmp_path, {"f0.parquet": claimed}, changed={"c": {"empty": False}})
    assert opened(pyzorder.dataset(tmp_path), condition) == "0"


def test_int96(tmp_path: Path) -> None:
    files = {"f0.parquet": rows(0).select(["ts"])}
    write(tmp_path, files, use_deprecated_int96_timestamps=True)
    index(tmp_path, files)
    found = pyzorder.dataset(tmp_path)
    assert found.schema.field("ts").type == pa.timestamp("ns")
    moment = rows(0)["ts"][0].cast(pa.timestamp("us")).cast(pa.timestamp("ns"))
    assert found.to_table(filter=F("ts") == moment).num_rows == 10


def test_a_file_that_lacks_a_column(tmp_path: Path) -> None:
    files = {"f0.parquet": pa.table({"a": [1], "b": [2]}), "f1.parquet": pa.table({"a": [3]})}
    found = pyzorder.dataset(make(tmp_path, files))
    assert found.to_table(filter=F("b").is_null()).to_pylist() == [{"a": 3, "b": None}]
    assert opened(found, F("b") > 0) == "0"


def test_widened_types(tmp_path: Path) -> None:
    files = {
        "f0.parquet": pa.table({"a": pa.array([2**40], pa.int64()), "x": [0.5]}),
        "f1.parquet": pa.table(
            {"a": pa.array([7], pa.int32()), "x": pa.array([0.1], pa.float32())}
        ),
    }
    table = make(tmp_path, files)
    found = pyzorder.dataset(table)
    assert found.to_table(filter=F("a") == 7).num_rows == 1
    assert found.to_table(filter=F("x") < 0.3).num_rows == 1
    assert pyzorder.scan_polars(table).filter(pl.col("a") == 7).collect().height == 1


def test_names_that_differ_in_case(tmp_path: Path) -> None:
    """PyArrow distinguishes upper and lower case in names, so it reads nulls if a file has a column
    `A` instead of `a`. IS NULL finds these nulls, although the index says that the column has no
    nulls."""
    files = {"f0.parquet": pa.table({"a": [1]}), "f1.parquet": pa.table({"A": [2]})}
    write(tmp_path, files)
    claimed = {"f0.parquet": files["f0.parquet"], "f1.parquet": pa.table({"a": [2]})}
    index(tmp_path, claimed)
    assert pyzorder.dataset(tmp_path).to_table(filter=F("a").is_null()).num_rows == 1


def test_changed_new_and_empty_files(tmp_path: Path) -> None:
    make(tmp_path, FILES)
    write(tmp_path, {"f5.parquet": rows(5), "f6.parquet": rows(6).slice(0, 0)})
    os.utime(tmp_path / "f2.parquet", (1, 1))
    assert opened(pyzorder.dataset(tmp_path), F("i") == 999) == "256"


# ---- partitions, formats, columns ---------------------------------------------------------------


def test_partition_columns(tmp_path: Path) -> None:
    """Partition columns have the same types and positions as in Spark. They replace columns of the
    same name in the files."""
    files = {
        f"p={p}/day={day}/f.parquet": pa.table({"a": [a], "P": ["file"], "b": [a]})
        for a, (p, day) in enumerate([(1, "2024-01-01"), (2, "__HIVE_DEFAULT_PARTITION__")])
    }
    found = pyzorder.dataset(make(tmp_path, files))
    assert found.schema.names == ["a", "p", "b", "day"]
    assert [f.type for f in found.schema][1::2] == [pa.int32(), pa.date32()]
    assert found.to_table(filter=F("day").is_null()).to_pylist() == [
        {"a": 1, "p": 2, "b": 1, "day": None}
    ]
    assert len(list(found.get_fragments(F("p") == 1))) == 1
    with duckdb.connect() as connection:
        connection.register("t", found)
        assert connection.sql("SELECT a FROM t WHERE p = 1 AND day > '2023-12-31'").fetchall() == [
            (0,)
        ]
    frame = pyzorder.scan_polars(tmp_path)
    assert frame.collect_schema().names() == ["a", "p", "b", "day"]
    assert frame.filter(pl.col("day").is_null()).collect().rows() == [(1, 2, 1, None)]


def test_orc(tmp_path: Path) -> None:
    files = {f"f{k}.orc": rows(k).select(["i", "s", "ts"]) for k in range(3)}
    found = pyzorder.dataset(make(tmp_path, files))
    assert opened(found, F("i") == 15) == "1" and found.count_rows() == 30
    assert found.to_table(filter=F("s") == "k13").num_rows == 1
    assert pyzorder.dataset(tmp_path, format="ORC").count_rows() == 30
    with pytest.raises(ZOrderError, match="scan_polars cannot read"):
        pyzorder.scan_polars(tmp_path)


def test_given_columns_and_schema(tmp_path: Path) -> None:
    make(tmp_path, FILES)
    for names in (["s"], ["S"], "s", ["s", "st"]):
        found = pyzorder.dataset(tmp_path, columns=names)
        assert opened(found, F("i") == 15) == "01234" and opened(found, F("s") == "k11") == "1"
    with pytest.raises(ZOrderError, match="has no column 'unknown'"):
        pyzorder.dataset(tmp_path, columns=["s", "unknown"])
    schema = pa.schema([("i", pa.int64()), ("new", pa.string())])
    found = pyzorder.dataset(tmp_path, schema=schema)
    assert opened(found, F("i") == 15) == "1"
    assert found.to_table(filter=F("i") == 15).to_pylist() == [{"i": 15, "new": None}]


def test_what_is_refused(tmp_path: Path) -> None:
    for options, condition in (
        ({}, "ZORDER_NO_FILES"), ({"format": "csv"}, "ZORDER_ENGINE_TABLE"),
        ({"max_staleness": "soon"}, "ZORDER_NOT_A_DURATION"),
    ):  # fmt: skip
        with pytest.raises(ZOrderError) as raised:
            pyzorder.dataset(tmp_path, **options)
        assert raised.value.condition == condition
    (tmp_path / "a.parquet").write_bytes(b"garbage")
    for function in (pyzorder.dataset, pyzorder.scan_polars):
        with pytest.raises(ZOrderError) as raised:
            function(tmp_path)
        assert raised.value.condition == "ZORDER_UNREADABLE_FILE"


def test_an_empty_table_with_a_schema(tmp_path: Path) -> None:
    found = open_dataset(tmp_path, pa.schema([("a", pa.int64())]), None, None, None, None)
    assert found.count_rows() == 0


def test_the_number_of_bounds_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, FILES)
    monkeypatch.setattr("pyzorder.engines.guarantees.MOST_BOUNDS", 5)
    found = pyzorder.dataset(tmp_path)
    assert opened(found, F("i") == 15) == "1" and opened(found, F("s") == "k11") == "01234"


def test_files_with_odd_names(tmp_path: Path) -> None:
    names = ["a b.parquet", "c%20d.parquet", "é[1]*.parquet", "q=1?.parquet"]
    files = {name: pa.table({"a": [k]}) for k, name in enumerate(names)}
    table = make(tmp_path, files)
    for k, name in enumerate(names):
        assert [Path(p).name for p in pyzorder.files(table, f"a = {k}")] == [name]
        assert pyzorder.dataset(table).to_table(filter=F("a") == k).num_rows == 1
        assert pyzorder.scan_polars(table).filter(pl.col("a") == k).collect().height == 1
    assert pq.read_table(tmp_path / names[0]).num_rows == 1
