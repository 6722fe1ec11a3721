"""Results are printed as valid JSON."""

from __future__ import annotations

import json

import pytest

from pyzorder.cli.output import finite, print_json, print_text


def test_json_has_no_nan() -> None:
    assert finite({"a": [float("nan"), 1.5], "b": float("inf")}) == {"a": [None, 1.5], "b": None}


STEERING = "\x1b]0;theirs\x07\x9b2J\x7f"


def test_text_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    print_text(f"Error: {STEERING}", err=True)
    shown = capsys.readouterr().err
    assert "theirs" in shown and shown.rstrip("\n").isprintable()


def test_json_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters are escaped, so a parser reads the original value."""
    print_json(STEERING)
    shown = capsys.readouterr().out
    assert shown.rstrip("\n").isprintable() and json.loads(shown) == STEERING
