"""Ibis and DataFusion, if installed, skip files when they read `pyzorder.dataset`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyzorder
from tests.support.engine_tables import make, spoil


@pytest.fixture
def table(tmp_path: Path) -> Path:
    files = {f"f{k}.parquet": pa.table({"a": [10 * k, None], "b": ["x", "y"]}) for k in range(3)}
    return make(tmp_path, files)


def test_ibis(table: Path) -> None:
    ibis = pytest.importorskip("ibis")
    sales = ibis.memtable(pyzorder.dataset(table))
    spoil(table, ["f1.parquet"])
    assert ibis.duckdb.connect().execute(sales.filter(sales.a == 10).b).tolist() == ["x"]


def test_datafusion(table: Path) -> None:
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    context.register_dataset("sales", pyzorder.dataset(table))
    spoil(table, ["f1.parquet"])
    assert context.sql("SELECT b FROM sales WHERE a = 10").to_pydict() == {"b": ["x"]}
