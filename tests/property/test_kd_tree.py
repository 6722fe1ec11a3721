"""The k-d tree has exactly the requested number of cells, all of similar size, and keeps equal ids
together. Queries open no more files than with a grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyspark.sql import SparkSession

Ids = NDArray[np.int32]


def jvm_ints(spark: SparkSession, values: Ids) -> Any:
    """Copies the values to a Java int[]. The values are transferred as bytes."""
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    array = gateway.new_array(gateway.jvm.int, len(values))
    raw = jvm.java.nio.ByteBuffer.wrap(bytearray(np.asarray(values, dtype=">i4").tobytes()))
    raw.asIntBuffer().get(array)
    return array


def python_ints(spark: SparkSession, array: Any) -> Ids:
    """Copies the values from a Java int[]. The values are transferred as bytes."""
    raw = spark._jvm.java.nio.ByteBuffer.allocate(4 * len(array))
    raw.asIntBuffer().put(array)
    return np.frombuffer(raw.array(), dtype=">i4").astype(np.int32)


def leaves_of(
    spark: SparkSession, sample: list[Ids], rows: list[Ids], leaves: int, lexical: bool = False
) -> Ids:
    """The leaf to which each row belongs, in a tree that is built from the sample."""
    gateway = spark.sparkContext._gateway
    int_array = spark._jvm.java.lang.Class.forName("[I")

    def columns(table: list[Ids]) -> Any:
        array = spark._jvm.java.lang.reflect.Array.newInstance(int_array, len(table))
        for position, ids in enumerate(table):
            array[position] = jvm_ints(spark, ids)
        return array

    assert gateway is not None
    jvm = spark._jvm
    tree = jvm.io.pyzorder.layout.cells.KdTree.build(
        columns(sample), leaves, lexical, jvm.scala.Option.empty()
    )
    assert tree.leafCount() == leaves
    return python_ints(spark, tree.leaves(columns(rows)))


def touched(rows: list[Ids], leaf: Ids, leaves: int, share: float) -> float:
    """The mean share of files whose bounds intersect a random box. A box spans `share` of each
    column's range. If `share` is 0, the boxes are lookups of random values in one column."""
    random = np.random.default_rng(5)
    low = np.array([np.full(leaves, 2**31 - 1)] * len(rows))
    high = np.full((len(rows), leaves), -1)
    for column, ids in enumerate(rows):
        np.minimum.at(low[column], leaf, ids)
        np.maximum.at(high[column], leaf, ids)
    hits = []
    for _ in range(300):
        if share == 0:
            for column, ids in enumerate(rows):
                value = random.choice(ids)
                hits.append(np.mean((low[column] <= value) & (value <= high[column])))
        else:
            hit = np.ones(leaves, dtype=bool)
            for column, ids in enumerate(rows):
                span = ids.max() * share
                start = random.uniform(0, ids.max() - span)
                hit &= (low[column] <= start + span) & (start <= high[column])
            hits.append(np.mean(hit))
    return float(np.mean(hits))


@pytest.mark.parametrize(
    ("columns", "leaves", "point", "box"),
    [(2, 100, 0.100, 0.040), (3, 1000, 0.100, 0.0080), (3, 90, 0.2333, 0.0305)],
)
def test_uniform_rows_touch_the_files_of_a_grid(
    spark: SparkSession, columns: int, leaves: int, point: float, box: float
) -> None:
    random = np.random.default_rng(1)
    rows = [random.integers(1, 60_000, 1_000_000, dtype=np.int32) for _ in range(columns)]
    sample = [ids[: max(100_000, 200 * leaves)] for ids in rows]
    leaf = leaves_of(spark, sample, rows, leaves)
    assert touched(rows, leaf, leaves, 0) <= point * 1.02
    assert touched(rows, leaf, leaves, 0.1) <= box * 1.05
    sizes = np.bincount(leaf, minlength=leaves) * leaves / len(leaf)
    assert sizes.min() > 0.75 and sizes.max() < 1.25


@pytest.mark.parametrize(("columns", "leaves"), [(2, 90), (3, 90), (3, 256), (4, 64), (4, 100)])
def test_the_first_columns_are_cut_finer(spark: SparkSession, columns: int, leaves: int) -> None:
    random = np.random.default_rng(6)
    rows = [random.integers(1, 8192, 100_000, dtype=np.int32) for _ in range(columns)]
    leaf = leaves_of(spark, rows, rows, leaves)
    shares = [touched([ids], leaf, leaves, 0) for ids in rows]
    assert shares[0] <= min(shares) * 1.03
    assert shares[-1] >= max(shares) * 0.97


def test_lexical_is_a_plain_sort(spark: SparkSession) -> None:
    random = np.random.default_rng(2)
    rows = [random.integers(1, 60_000, 100_000, dtype=np.int32) for _ in range(2)]
    leaf = leaves_of(spark, rows, rows, 50, lexical=True)
    ordered = np.argsort(rows[0], kind="stable")
    assert np.all(np.diff(leaf[ordered]) >= 0)


def test_a_value_heavier_than_a_file_is_dealt_out(spark: SparkSession) -> None:
    random = np.random.default_rng(4)
    ids = np.where(random.random(100_000) < 0.9, 7, random.integers(8, 999, 100_000))
    ids = ids.astype(np.int32)
    sizes = np.bincount(leaves_of(spark, [ids], [ids], 20), minlength=20) / 5000
    assert sizes.min() > 0.9 and sizes.max() < 1.1


def test_a_column_of_two_values_is_cut_once(spark: SparkSession) -> None:
    random = np.random.default_rng(3)
    rows = [random.integers(low, high, 50_000, dtype=np.int32) for low, high in ((1, 3), (0, 9999))]
    leaf = leaves_of(spark, rows, rows, 16)
    assert all(len(set(rows[0][leaf == number])) == 1 for number in range(16))


small_ids = st.integers(0, 12)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    table=st.integers(1, 3).flatmap(
        lambda n: st.lists(st.tuples(*[small_ids] * n), min_size=0, max_size=60)
    ),
    leaves=st.integers(1, 40),
    lexical=st.booleans(),
)
def test_any_table_any_number_of_leaves(
    spark: SparkSession, table: list[tuple[int, ...]], leaves: int, lexical: bool
) -> None:
    width = len(table[0]) if table else 1
    rows = [np.array([row[c] for row in table], dtype=np.int32) for c in range(width)]
    leaf = leaves_of(spark, rows, rows, leaves, lexical)
    assert len(leaf) == len(table)
    assert np.all((leaf >= 0) & (leaf < leaves))
    boxes = [
        [(ids[leaf == number].min(), ids[leaf == number].max()) for ids in rows]
        for number in sorted(set(leaf.tolist()))
    ]
    for one, box in enumerate(boxes):
        for other in boxes[one + 1 :]:
            same_point = box == other and all(low == high for low, high in box)
            apart = any(a[1] < b[0] or b[1] < a[0] for a, b in zip(box, other, strict=True))
            assert apart or same_point, "two files overlap"
