"""Encoding preserves order. The encoded bits and bytes of two values have the same order as the
values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyzorder import boundaries, interleave, ordered_bytes
from tests.support.values import BY_TYPE
from tests.vectors import oracle


def key(value: Any, data_type: str) -> Any:
    """A key that makes Python sort values in Spark's order. NaN is last, and strings are sorted by
    their UTF-8 bytes."""
    if data_type in {"float", "double"}:
        return (value != value, 0.0 if value != value else value)
    return value.encode() if data_type == "string" else value


@pytest.mark.variants
@pytest.mark.parametrize("data_type", sorted(BY_TYPE))
@given(data=st.data())
def test_order(data_type: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(BY_TYPE[data_type], min_size=2, max_size=8))
    ordered = sorted(values, key=lambda v: key(v, data_type))
    keys = [key(v, data_type) for v in ordered]
    bits = [int(b) for b in ordered_bytes.of(ordered, data_type)]
    wholes = [w or b"" for w in ordered_bytes.whole_of(ordered, data_type)]
    for i in range(1, len(ordered)):
        assert 0 < bits[i - 1] <= bits[i]
        assert (wholes[i - 1] < wholes[i]) == (keys[i - 1] < keys[i])
        if ordered_bytes.is_long(data_type) and data_type not in {"bigint", "interval second"}:
            assert (bits[i - 1] < bits[i]) == (keys[i - 1] < keys[i])
    ranks = boundaries.from_values(data_type, ordered).range_ids(ordered)
    assert list(ranks) == [1 + len({k for k in keys if k <= mine}) for mine in keys]


@pytest.mark.parametrize("data_type", sorted(BY_TYPE))
@given(data=st.data())
def test_the_oracle_agrees(data_type: str, data: st.DataObject) -> None:
    value = data.draw(st.none() | BY_TYPE[data_type])
    expected = oracle.ordered_bits(value, data_type)
    assert format(int(ordered_bytes.of([value], data_type)[0]), "064b") == expected


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=140))
def test_interleaving_agrees_with_the_oracle(columns: list[int]) -> None:
    expected = oracle.to_hex(oracle.interleave([format(c, "064b") for c in columns]))
    made = interleave.interleave_bytes([np.array([c], dtype=np.uint64) for c in columns])
    assert made[0].tobytes().hex() == expected


@given(st.integers(1, 63), st.data())
def test_long_z_values_agree_with_the_oracle(n: int, data: st.DataObject) -> None:
    bits = interleave.bits_per_column(n)
    ids = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=n, max_size=n))
    expected = int(oracle.interleave([format(i, f"0{bits}b") for i in ids]), 2)
    assert interleave.interleave_long([np.array([i]) for i in ids], bits)[0] == expected
