"""The last step of `make demo`: DuckDB and Polars answer lookups on the optimized table."""

from __future__ import annotations

import re
from functools import reduce
from operator import and_
from pathlib import Path
from typing import NamedTuple

import pyzorder


class EngineAnswer(NamedTuple):
    """An engine's row count for a query, and the number of files that the query opens."""

    engine: str
    rows: int
    opened: int


def ranges(predicate: str) -> dict[str, tuple[int, int]]:
    """Returns, for each column, the smallest and the largest value that a predicate allows.

    The predicate consists of comparisons `c = n` and `c BETWEEN n AND m`, joined by AND.
    """
    found = re.findall(r"(\w+) (?:= (\d+)|BETWEEN (\d+) AND (\d+))", predicate)
    return {name: (int(only or low), int(only or high)) for name, only, low, high in found}


def ask(folder: Path, predicate: str) -> list[EngineAnswer]:
    """Counts the matching rows of a table with DuckDB and Polars."""
    import duckdb
    import polars as pl
    import pyarrow.compute as pc

    table, spans = pyzorder.dataset(folder, where=predicate), ranges(predicate).items()
    wanted = reduce(
        and_, [(pc.field(c) >= low) & (pc.field(c) <= high) for c, (low, high) in spans]
    )
    with duckdb.connect() as connection:
        connection.register("store_sales", table)
        query = f"SELECT count(*) FROM store_sales WHERE {predicate}"
        ((by_duckdb,),) = connection.sql(query).fetchall()
    kept = [
        pl.col(name) == low if low == high else pl.col(name).is_between(low, high)
        for name, (low, high) in spans
    ]
    by_polars = pyzorder.scan_polars(folder).filter(*kept).select(pl.len()).collect().item()
    return [
        EngineAnswer("DuckDB", by_duckdb, len(list(table.get_fragments(wanted)))),
        EngineAnswer("Polars", by_polars, len(pyzorder.files(folder, predicate))),
    ]
