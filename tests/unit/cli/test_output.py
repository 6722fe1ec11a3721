"""Results as JSON."""

from __future__ import annotations

from pyzorder.cli.output import finite


def test_json_has_no_nan() -> None:
    assert finite({"a": [float("nan"), 1.5], "b": float("inf")}) == {"a": [None, 1.5], "b": None}
