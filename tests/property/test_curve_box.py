"""Checks whether a box contains a z-value between two given z-values, against an exhaustive search
of a small space."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

#: How many of the highest bits are random in each column. The lower bits are all 0 or all 1.
BITS = 3


def interleaved(cell: tuple[int, ...]) -> str:
    """The z-value of a cell's highest bits, as a string of '0' and '1' characters."""
    return "".join(format(c, f"0{BITS}b")[i] for i in range(BITS) for c in cell)


def longs(spark: SparkSession, values: list[int], rest: int) -> Any:
    """A Java long[] with the given highest bits; all other bits are equal to `rest`."""
    gateway = spark.sparkContext._gateway
    array = gateway.new_array(gateway.jvm.long, len(values))
    for i, value in enumerate(values):
        bits = (value << (64 - BITS)) | (((1 << (64 - BITS)) - 1) if rest else 0)
        array[i] = bits - (1 << 64) if bits >= 1 << 63 else bits
    return array


@st.composite
def questions(draw: Any) -> tuple[list[int], list[int], tuple[int, ...], tuple[int, ...]]:
    """The corners of a box, and two cells ordered by z-value."""
    n = draw(st.integers(1, 3))
    value = st.integers(0, 2**BITS - 1)
    ends = [sorted(draw(st.tuples(value, value))) for _ in range(n)]
    cells = draw(st.tuples(*[st.tuples(*[value] * n)] * 2))
    least, greatest = sorted(cells, key=interleaved)
    return [low for low, _ in ends], [high for _, high in ends], least, greatest


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(questions())
def test_meets(spark: SparkSession, question: Any) -> None:
    low, high, least, greatest = question
    n = len(low)
    between = [
        cell
        for cell in product(range(2**BITS), repeat=n)
        if interleaved(least) <= interleaved(cell) <= interleaved(greatest)
    ]
    expected = any(
        all(a <= c <= b for a, c, b in zip(low, cell, high, strict=True)) for cell in between
    )
    jvm = spark._jvm.io.pyzorder.expressions
    box = jvm.CurveBox(longs(spark, low, 0), longs(spark, high, 1))
    found = box.meets(
        jvm.InterleaveBits.bytes(longs(spark, list(least), 0)),
        jvm.InterleaveBits.bytes(longs(spark, list(greatest), 1)),
    )
    assert found == expected


def test_bounds_that_were_cut_short(spark: SparkSession) -> None:
    jvm = spark._jvm.io.pyzorder.expressions
    box = jvm.CurveBox(longs(spark, [0, 0], 0), longs(spark, [0, 0], 0))
    assert box.meets(bytearray(b"\xff"), bytearray(b"\xff" * 16))
