"""The fallback builds exactly the same k-d tree as the jar, and chooses the expected grids."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from pyzorder.fallback import kd_tree
from tests.property.test_kd_tree import leaves_of

# (number of files, spread of each column, number of slabs of each column). If the number of slabs
# is 0, the column is cut last, into as many slabs as needed.
GRIDS = [
    (64, (1, 1, 1), [4, 4, 0]),
    (90, (1, 1, 1), [6, 5, 0]),
    (90, (1, 1), [11, 0]),
    (100, (1, 0.99), [10, 0]),
    (256, (1, 1, 1, 1), [4, 4, 4, 0]),
    (64, (1, 1, 1, 1), [4, 3, 3, 0]),
    (1000, (1, 1, 1), [10, 10, 0]),
    (90, (1, 0, 1), [11, 1, 0]),
    (8, (1, 0.1, 0.1), [0, 1, 1]),
    (32, (1, 0.5, 1), [4, 2, 0]),
    (7, (0.3,), [0]),
    (47, (0.593, 0.792, 0.10007), [5, 7, 0]),  # 6 × 8 slabs would exceed the number of files
    (1, (1, 1), [1, 1]),
    (50, (0, 0), [1, 1]),
    (10, (1,) * 16, [3, 3, *[1] * 13, 0]),
]


@pytest.mark.variants
@pytest.mark.parametrize(("leaves", "spreads", "slabs"), GRIDS, ids=str)
def test_grids(leaves: int, spreads: tuple[float, ...], slabs: list[int]) -> None:
    assert kd_tree.grid(leaves, spreads) == slabs


@given(
    leaves=st.integers(1, 5000),
    spreads=st.lists(st.sampled_from([0.0, 0.001, 0.2, 0.5, 0.97, 1.0]), min_size=1, max_size=5),
)
def test_no_grid_opens_many_more(leaves: int, spreads: list[float]) -> None:
    """For any number of files, lookups open at most 25% more files than they would if the cells had
    the same length in all columns that are cut."""
    slabs = kd_tree.grid(leaves, spreads)
    others = math.prod(count for count in slabs if count != kd_tree.REST)
    last = leaves / others
    assert last >= 1
    opened = sum(s / (k or last) for s, k in zip(spreads, slabs, strict=True))
    cut = [s for s, k in zip(spreads, slabs, strict=True) if k != 1]
    if cut:
        even = len(cut) * (math.prod(cut) / leaves) ** (1 / len(cut))
        short = sum(s for s, k in zip(spreads, slabs, strict=True) if k == 1)
        assert opened <= (even + short) * 1.25


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(n, marks=pytest.mark.fallback) for n in range(2, 6))]
)
def test_same_leaves_as_the_jar(spark: SparkSession, seed: int) -> None:
    random = np.random.default_rng(seed)
    columns, rows = int(random.integers(1, 5)), 3000
    top = [int(random.choice([2, 7, 100, 60_000])) for _ in range(columns)]
    ids = [random.integers(0, t, rows).astype(np.int32) for t in top]
    if seed % 2:
        ids[0] = (ids[0] // 3 * 3).astype(np.int32)
        ids[0][: rows // 2] = 0  # half of the rows are null (id 0)
    for leaves in (1, 2, 7, 100):
        tree = kd_tree.build(ids, leaves)
        assert tree.leaf_count == leaves
        found = tree.leaves(ids, np.arange(rows))
        assert found.tolist() == leaves_of(spark, ids, ids, leaves).tolist()
