"""Chooses the variants of a test that a run of all tests includes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

#: These tests are fast, because they do not start Spark.
UNIT = Path(__file__).parents[1] / "unit"


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


def long(cases: Iterable[Any], *keep: Any) -> list[Any]:
    """`make test-long` tests the other cases, and `make test` only those in `keep`."""
    return _sampled(cases, keep, pytest.mark.long)


#: How many variants of a test `make test` runs if the test does not have the mark `variants`.
VARIANTS = 2


def sample(items: Sequence[pytest.Item], suites: set[str]) -> None:
    """Marks variants of tests that start Spark as `long`. `make test` then runs only some variants
    of each test: the first, the last and, if more are wanted, some between them.

    Args:
        suites: the marks of tests that do not belong to `make test`.
    """
    tests = defaultdict(list)
    for item in items:
        own = {mark.name for mark in item.iter_markers()}
        if UNIT not in item.path.parents and own.isdisjoint(suites):
            tests[item.nodeid.split("[")[0]].append(item)
    for variants in tests.values():
        mark = variants[0].get_closest_marker("variants")
        count = VARIANTS if mark is None else mark.args[0] if mark.args else len(variants)
        if len(variants) > count:
            step = (len(variants) - 1) / max(count - 1, 1)
            kept = {round(i * step) for i in range(count)}
            for position in set(range(len(variants))) - kept:
                variants[position].add_marker(pytest.mark.long)
