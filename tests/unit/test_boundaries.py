"""Tests pyzorder.boundaries with the shared vectors."""

from __future__ import annotations

import pytest

from pyzorder import boundaries
from tests.vectors import oracle


@pytest.mark.parametrize("vector", oracle.read("range_id"), ids=lambda v: v["why"])
def test_vectors(vector: dict) -> None:
    made = boundaries.from_values(
        vector["type"], [oracle.parse(b, vector["type"]) for b in vector["boundaries"]]
    )
    value = oracle.parse(vector["value"], vector["type"])
    assert made.range_ids([value])[0] == vector["range_id"]


def test_ids_are_stretched_over_all_bits() -> None:
    few = boundaries.from_values("int", list(range(198)))
    assert few.id_count == 200
    assert list(few.stretched(few.range_ids([None, 98, 500]), 10)) == [0, 512, 1018]


def test_types_without_order_are_refused() -> None:
    with pytest.raises(TypeError, match="no order"):
        boundaries.from_values("array<int>", [])
