"""Creates table layouts without Spark, for tests that draw pictures of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyzorder.layout import Column, DataFile, Layout


def layout(
    files: Sequence[tuple[Any, ...]],
    columns: Sequence[tuple[str, str]] = (("a", "INT"), ("b", "INT")),
    **more: Any,
) -> Layout:
    """A layout whose files have the given bounds. Each file has one pair of bounds per column. None
    stands for unknown bounds, and () stands for a column that is null in every row."""
    told = [
        DataFile(
            path=f"file:/t/{i}",
            size=100,
            rows=10,
            indexed=True,
            clustered_by=(),
            bounds=tuple(pair or None for pair in bounds),
            empty=tuple(pair == () for pair in bounds),
        )
        for i, bounds in enumerate(files)
    ]
    named = tuple(Column(*column) for column in columns)
    return Layout("t", "`t`", True, "file:/t", "parquet", "UTC", named, tuple(told), **more)


GRID = layout([((x, x + 9), (y, y + 9)) for x in (0, 10, 20) for y in (0, 10)])
