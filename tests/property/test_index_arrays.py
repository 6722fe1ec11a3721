"""In the driver's in-memory index, packed longs unpack to their original values, and every path can
be found."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

LONGS = st.integers(-(2**63), 2**63 - 1)

# The largest differences that fit into one, two, four and eight bytes, and the next larger ones.
SPREADS = [0, 1, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1]

SPARK = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def array(spark: SparkSession, values: list[int]) -> Any:
    """Copies the values to a Java long[]."""
    gateway = spark.sparkContext._gateway
    made = gateway.new_array(gateway.jvm.long, len(values))
    for i, value in enumerate(values):
        made[i] = value
    return made


def packed(spark: SparkSession, values: list[int]) -> tuple[list[int], int]:
    """Packs and unpacks the values. Returns the unpacked values and the packed size in bytes."""
    held = spark.sparkContext._jvm.io.pyzorder.index.memory.PackedLongs.of(array(spark, values))
    assert held.length() == len(values)
    return [held.apply(i) for i in range(len(values))], held.estimatedBytes()


@SPARK
@given(values=st.lists(LONGS, max_size=6))
def test_packed_longs(spark: SparkSession, values: list[int]) -> None:
    assert packed(spark, values)[0] == values


@pytest.mark.parametrize("spread", SPREADS)
def test_packed_longs_at_the_limits_of_a_width(spark: SparkSession, spread: int) -> None:
    for least in {-(2**63), min(5, 2**63 - 1 - spread), 2**63 - 1 - spread}:
        values = [least, least + spread, least]
        found, taken = packed(spark, values)
        widths = [w for w in (0, 1, 2, 4) if spread < 256**w]
        assert (found, taken) == (values, 3 * (widths[0] if widths else 8))


@SPARK
@given(paths=st.lists(st.text(max_size=6), max_size=20), other=st.text(max_size=6))
def test_paths_are_found(spark: SparkSession, paths: list[str], other: str) -> None:
    paths = [p for p in paths if p.isprintable()]
    builder = spark.sparkContext._jvm.io.pyzorder.index.memory.__getattr__("PathTable$Builder")(
        len(paths)
    )
    for i, path in enumerate(paths):
        builder.set(i, path.encode())
    if len(set(paths)) < len(paths):
        with pytest.raises(Exception, match="two of its entries have the same path"):
            builder.result()
        return
    table = builder.result()
    assert table.length() == len(paths)
    for path in [*paths, *([other] if other.isprintable() else []), ""]:
        assert table.find(path) == (paths.index(path) if path in paths else -1)
