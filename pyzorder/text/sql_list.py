"""Splits a list of columns and expressions in SQL."""

from __future__ import annotations

import re

#: A quoted string or name, the start of a comment, or any other character.
_TOKEN = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`|--|/\*|.", re.S)

_BRACKETS = {"(": 1, "[": 1, ")": -1, "]": -1}


def split(text: str) -> list[str] | None:
    """Splits text such as `a, concat(b, ',')` at the commas outside brackets and quotes.

    Returns None if an item is empty, if a bracket or quote is not closed, or if the text contains a
    comment or a semicolon. Such text could end a list that it becomes part of.
    """
    items = [""]
    depth = 0
    for token in _TOKEN.findall(text):
        depth += _BRACKETS.get(token, 0)
        if depth < 0 or token in ("--", "/*", ";", "'", '"', "`"):
            return None
        if token == "," and depth == 0:
            items.append("")
        else:
            items[-1] += token
    items = [item.strip() for item in items]
    return items if depth == 0 and all(items) else None
