"""Makes text that others may have written safe to show on a terminal or in a log."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """Replaces control characters other than line breaks, which terminals may interpret.

    The text may come from a table's folder, where others can write.
    """
    is_command = [unicodedata.category(c) == "Cc" and c != "\n" for c in text]
    return "".join("\ufffd" if bad else c for c, bad in zip(text, is_command, strict=True))


def on_one_line(text: str) -> str:
    """Makes text printable, with spaces for line breaks, which could forge a line of a log."""
    return printable(" ".join(text.splitlines()))
