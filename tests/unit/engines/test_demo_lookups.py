"""The demo's lookups with DuckDB and Polars open no more files than the demo reports."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from pyzorder.engines import demo_lookups
from tests.support.engine_tables import make, spoil


def test_ranges() -> None:
    assert demo_lookups.ranges("a = 7") == {"a": (7, 7)}
    assert demo_lookups.ranges("a BETWEEN 1 AND 2 AND b = 3") == {"a": (1, 2), "b": (3, 3)}


def test_answers(tmp_path: Path) -> None:
    files = {f"f{k}.parquet": pa.table({"a": [10 * k, 10 * k + 9], "b": [k, k]}) for k in range(4)}
    make(tmp_path, files)
    expected = [("DuckDB", 1, 1), ("Polars", 1, 1)]
    assert demo_lookups.ask(tmp_path, "a BETWEEN 5 AND 15 AND b = 0") == expected
    spoil(tmp_path, ["f0.parquet"])
    assert demo_lookups.ask(tmp_path, "a BETWEEN 5 AND 15 AND b = 0") == expected
