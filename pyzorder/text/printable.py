"""Makes untrusted text safe to show on a terminal or in a log."""

from __future__ import annotations

import re

#: Line separators, characters that change the order in which other characters are shown, and all
#: control characters except line feeds.
DECEPTIVE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Replaces characters that could control a terminal or mislead a reader.

    The text may come from a table's folder, where other users can write.
    """
    return DECEPTIVE.sub("\ufffd", text)


def on_one_line(text: str) -> str:
    """Makes text printable on a single line, so that it cannot forge a second line in a log."""
    return printable(" ".join(text.splitlines()))
