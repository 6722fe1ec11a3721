"""Tests pyzorder.ordered_bytes with the shared vectors. Also tests the errors for types that have
no order."""

from __future__ import annotations

import numpy as np
import pytest

from pyzorder import ordered_bytes
from tests.vectors import oracle

VECTORS = oracle.read("ordered_bytes")


def test_vectors_agree_with_the_oracle() -> None:
    for name in ("ordered_bytes", "interleave_bits", "range_id", "z_value_long"):
        for vector in oracle.read(name):
            assert {**vector, **oracle.answer(name, vector)} == vector


@pytest.mark.parametrize("data_type", sorted({v["type"] for v in VECTORS}))
def test_vectors(data_type: str) -> None:
    vectors = [v for v in VECTORS if v["type"] == data_type]
    values = [oracle.parse(v["value"], data_type) for v in vectors]
    bits = [format(int(b), "016x") for b in ordered_bytes.of(values, data_type)]
    wholes = [None if w is None else w.hex() for w in ordered_bytes.whole_of(values, data_type)]
    for vector, got, whole in zip(vectors, bits, wholes, strict=True):
        assert (got, whole) == (vector["bits"], vector["whole"]), vector["why"]


def test_a_numpy_column_equals_a_list() -> None:
    masked = np.ma.MaskedArray([1, 2, -3], mask=[False, True, False])
    assert list(ordered_bytes.of(masked, "int")) == list(ordered_bytes.of([1, None, -3], "int"))


@pytest.mark.parametrize("data_type", ["map<int,int>", "array<int>", "variant", "struct<a:int>",
                                       "string collate UNICODE", "void"])  # fmt: skip
def test_types_without_order_are_refused(data_type: str) -> None:
    assert not ordered_bytes.supports(data_type)
    with pytest.raises(TypeError, match="no ordered bytes"):
        ordered_bytes.of([None], data_type)


def test_a_decimal_with_more_digits_than_its_type_is_an_error() -> None:
    with pytest.raises(ValueError, match="more than 1 digits"):
        ordered_bytes.of([oracle.Decimal("0.25")], "decimal(5,1)")
