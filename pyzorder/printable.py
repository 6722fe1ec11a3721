"""Makes untrusted text safe to show on a terminal or in a log."""

from __future__ import annotations

import unicodedata

#: The bidirectional classes of characters that change the order in which other characters are
#: shown.
REORDERING = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def printable(text: str) -> str:
    """Replaces characters that could control a terminal or mislead a reader.

    These are control characters (except line breaks), line separators, and characters that reorder
    text. The text may come from a table's folder, to which others can write.
    """
    return "".join("\ufffd" if _is_deceptive(c) else c for c in text)


def _is_deceptive(c: str) -> bool:
    is_control = unicodedata.category(c) in ("Cc", "Zl", "Zp") and c != "\n"
    return is_control or unicodedata.bidirectional(c) in REORDERING


def on_one_line(text: str) -> str:
    """Makes text printable on a single line, so it cannot forge a second line in a log."""
    return printable(" ".join(text.splitlines()))
