"""Chooses the variants of a test that a run of all tests includes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def _sampled(cases: Iterable[Any], keep: tuple[Any, ...], mark: pytest.MarkDecorator) -> list[Any]:
    """The cases as parameters of a test. The cases outside `keep` have the mark, so a run of all
    tests leaves them out. A tuple stands for several parameters."""
    return [
        case
        if case in keep
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=mark)
        for case in cases
    ]


def crash(cases: Iterable[Any], *keep: Any) -> list[Any]:
    """`make test-crash` tests all cases, and `make test` only those in `keep`."""
    return _sampled(cases, keep, pytest.mark.crash)


def every(step: int, cases: Iterable[Any]) -> list[Any]:
    """`make test` tests every `step`-th case, and `make test-long` the others."""
    listed = list(cases)
    return long(listed, *listed[::step])


def long(cases: Iterable[Any], *keep: Any) -> list[Any]:
    """`make test-long` tests the other cases, and `make test` only those in `keep`."""
    return _sampled(cases, keep, pytest.mark.long)
