"""The k-d tree grows as the jar's does, node by node."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession

from pyzorder.fallback import kd_tree
from tests.property.test_kd_tree import leaves_of


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
        ids[0][: rows // 2] = 0  # half of the rows are null there
    for leaves in (1, 2, 7, 100):
        tree = kd_tree.build(ids, leaves)
        assert tree.leaf_count == leaves
        found = tree.leaves(ids, np.arange(rows))
        assert found.tolist() == leaves_of(spark, ids, ids, leaves).tolist()
