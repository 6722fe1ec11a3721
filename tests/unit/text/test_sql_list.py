"""Splitting a list of columns and expressions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyzorder.text.sql_list import split

CASES: list[tuple[str, list[str] | None]] = [
    ("a", ["a"]),
    ("a, b.c", ["a", "b.c"]),
    ("lower(a), concat(b, ',')", ["lower(a)", "concat(b, ',')"]),
    ("a < b,c", ["a < b", "c"]),
    ("m['k,'], `odd, name`", ["m['k,']", "`odd, name`"]),
    ("concat(a, 'it''s', \"x)\"), 'a\\'b'", ["concat(a, 'it''s', \"x)\")", "'a\\'b'"]),
    ("", None),
    ("a,", None),
    ("a,,b", None),
    ("lower(a", None),
    ("a)", None),
    ("a) DRY RUN --", None),
    ("a -- b", None),
    ("a /* b */", None),
    ("a; DROP TABLE t", None),
    ("'a", None),
    ("`a", None),
]


@pytest.mark.parametrize("text, items", CASES)
def test_split(text: str, items: list[str] | None) -> None:
    assert split(text) == items


ITEMS = st.lists(
    st.sampled_from(["a", "`b,(`", "f(a, g(b))", "a < b", "m['k)']", "x[1]"]), min_size=1
)


@given(ITEMS)
def test_joined_items_are_split(items: list[str]) -> None:
    assert split(", ".join(items)) == items


@given(st.text(alphabet="a,()[]'\"`-/*;\\ "))
def test_items_cannot_end_the_list(text: str) -> None:
    """Each item is accepted on its own, and closes every bracket and quote that it opens."""
    items = split(text)
    for item in items or []:
        assert split(item) == [item]
        assert split(f"f({item}), b") == [f"f({item})", "b"]
