"""Text from a table's folder is sanitized before it is printed or logged, because other users can
write to the folder."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyzorder.text.printable import on_one_line, printable


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    assert not any(is_control(c) for c in printable(text) if c != "\n")
    assert "\n" not in on_one_line(text)


@given(st.text(st.characters(categories=("L", "N", "P", "S"))))
def test_other_text_stays(text: str) -> None:
    assert printable(text) == text


def test_text_that_is_shown_in_another_order() -> None:
    assert printable("t\u202egol\u202c.parquet") == "t\ufffdgol\ufffd.parquet"
    assert on_one_line("a\u2028b\u2067c") == "a b\ufffdc"


def is_control(character: str) -> bool:
    return ord(character) < 32 or 127 <= ord(character) < 160
