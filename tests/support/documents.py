"""The documents for users, and the code blocks in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: By their paths from the project's folder.
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]

#: Documents for developers, whose links count too.
OTHERS = ["CONTRIBUTING.md", "tests/README.md", "sql/FORMAT.md", "CHANGELOG.md"]

BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A code block; `language` is all that stands after the back-quotes."""

    page: str
    language: str
    code: str


def text(page: str) -> str:
    """A document's text."""
    return (ROOT / page).read_text(encoding="utf-8")


def prose(page: str) -> str:
    """A document's text without its code blocks."""
    return BLOCK.sub("", text(page))


def blocks(page: str) -> list[Block]:
    """A document's code blocks, in order."""
    return [Block(page, language, code) for language, code in BLOCK.findall(text(page))]
