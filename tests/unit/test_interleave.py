"""Tests pyzorder.interleave with the shared vectors and the bit-string oracle."""

from __future__ import annotations

import numpy as np
import pytest

from pyzorder import interleave
from tests.vectors import oracle


@pytest.mark.parametrize("vector", oracle.read("interleave_bits"), ids=lambda v: v["why"])
def test_byte_strings(vector: dict) -> None:
    columns = [[None if c is None else bytes.fromhex(c)] for c in vector["columns"]]
    assert interleave.interleave_byte_strings(columns)[0].hex() == vector["z"]


@pytest.mark.parametrize("vector", oracle.read("interleave_bits"), ids=lambda v: v["why"])
def test_64_bits_each(vector: dict) -> None:
    if any(c is None or len(c) != 16 for c in vector["columns"]):
        pytest.skip("the columns do not have 64 bits each")
    columns = [np.array([int(c, 16)], dtype=np.uint64) for c in vector["columns"]]
    assert interleave.interleave_bytes(columns)[0].tobytes().hex() == vector["z"]


@pytest.mark.parametrize("vector", oracle.read("z_value_long"), ids=lambda v: v["why"])
def test_long(vector: dict) -> None:
    bits = interleave.bits_per_column(len(vector["ids"]))
    ids = [
        interleave.stretched(np.array([i]), count, bits)
        for i, count in zip(vector["ids"], vector["counts"], strict=True)
    ]
    assert interleave.interleave_long(ids, bits)[0] == vector["z"]


def test_bits_per_column() -> None:
    bits = [interleave.bits_per_column(n) for n in range(1, 10)]
    assert bits == [31, 31, 21, 15, 12, 10, 9, 7, 7]
    with pytest.raises(ValueError, match="1 to 63 columns"):
        interleave.bits_per_column(64)
