"""Truncated bounds still enclose all values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyzorder.index.truncated_bounds import MAX_BYTES, truncated

#: The characters before and after each point at which the UTF-8 encoding gets longer, and the
#: characters before and after the surrogates.
EDGES = "az\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010fffe\U0010ffff"
TEXTS = st.text(st.sampled_from(EDGES) | st.characters(exclude_categories=["Cs"]), max_size=8)
LONG = st.builds(lambda text, times: text * times, TEXTS, st.integers(1, 400))
BYTES = st.builds(lambda part, times: part * times, st.binary(max_size=8), st.integers(1, 400))

# (minimum, maximum, whether they are text, the truncated bounds)
CASES = [
    (b"a", b"b", True, (b"a", b"b")),
    (b"a" * 300, b"b" * 300, True, (b"a" * 256, b"b" * 255 + b"c")),
    (b"a", b"\xff" * 300, False, None),
    (b"a", b"a" + b"\xff" * 300, False, (b"a", b"b")),
    (b"a", "\U0010ffff".encode() * 100, True, None),
    (b"a", ("x" + "\ud7ff" * 100).encode(), True, (b"a", ("x" + "\ud7ff" * 84 + "\ue000").encode())),
    (b"a", b"\xfe\xff" * 200, True, (b"a", b"\xfe\xff" * 127 + b"\xff")),
]  # fmt: skip


@pytest.mark.parametrize(("least", "greatest", "is_text", "bounds"), CASES)
def test_cases(
    least: bytes, greatest: bytes, is_text: bool, bounds: tuple[bytes, bytes] | None
) -> None:
    assert truncated(least, greatest, is_text) == bounds


@given(LONG, LONG)
def test_texts(one: str, other: str) -> None:
    least, greatest = sorted([one.encode(), other.encode()])
    found = truncated(least, greatest, is_text=True)
    if found is None:
        assert one == other == "" or set(max(one, other)[: MAX_BYTES // 4]) == {"\U0010ffff"}
        return
    lower, upper = found
    assert lower <= least and greatest <= upper
    assert lower.decode() or not least
    assert (
        upper.decode() and len(lower) <= MAX_BYTES and len(upper) <= MAX_BYTES + 1 or not greatest
    )


@given(BYTES, BYTES)
def test_bytes(one: bytes, other: bytes) -> None:
    least, greatest = sorted([one, other])
    found = truncated(least, greatest, is_text=False)
    if found is None:
        assert set(greatest[:MAX_BYTES]) == {255}
        return
    lower, upper = found
    assert lower <= least and greatest <= upper and max(map(len, found)) <= MAX_BYTES
