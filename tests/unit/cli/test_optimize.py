"""`pyzorder optimize` parses target sizes, and rejects invalid ones before Spark starts."""

from __future__ import annotations

import click
import pytest

from pyzorder.cli.optimize import SizeType

SIZES = ["1", "64m", "64M", "128mb", " 1g ", "300kb", "007k", "2t", "1p", "5b"]

NO_SIZES = ["", "huge", "0", "0m", "-5m", "1.5g", "64 m", "m", "64x", "64mib", "٣m"]


@pytest.mark.parametrize("text", SIZES)
def test_sizes(text: str) -> None:
    assert SizeType().convert(text, None, None) == text.strip()


@pytest.mark.parametrize("text", NO_SIZES)
def test_no_sizes(text: str) -> None:
    with pytest.raises(click.BadParameter, match="such as 64m"):
        SizeType().convert(text, None, None)
