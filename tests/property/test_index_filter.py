"""A nested filter reports which columns it uses and how many conditions it contains."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.property.test_z_value_range_filter import Filter, Java

A, B, C = ("Below", "a", 5, True), ("HasNull", "b"), ("OneOf", "c", [1, 2])

#: Filters, the columns that they use, and their sizes.
COMPOSED: list[tuple[Filter, list[str], int]] = [
    (A, ["a"], 1),
    (("And", A, B), ["a", "b"], 2),
    (("Or", A, B), ["a", "b"], 2),
    (("And", A, ("HasValue", "a")), ["a"], 2),
    (("Or", ("HasValue", "a"), A), ["a"], 2),
    (("And", ("Or", A, B), C), ["a", "b", "c"], 3),
    (("And", C, ("Or", A, B)), ["c", "a", "b"], 3),
    (("Or", ("And", A, B), C), ["a", "b", "c"], 3),
    (("Or", C, ("And", A, B)), ["c", "a", "b"], 3),
]


@pytest.mark.parametrize(
    ("filter_", "columns", "size"), COMPOSED, ids=[str(f) for f, *_ in COMPOSED]
)
def test_composed(spark: SparkSession, filter_: Filter, columns: list[str], size: int) -> None:
    java = Java(spark, {})
    made = java.filter(filter_)
    assert made.columns() == java.seq([java.column(name) for name in columns])
    assert made.size() == size
