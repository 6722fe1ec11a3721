"""Finds the documents and their code blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: The documents for users. Their paths are relative to the project's folder.
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]

#: The documents for developers. Their links are checked, but their code blocks are not run.
OTHERS = ["CONTRIBUTING.md", "tests/README.md", "sql/FORMAT.md", "CHANGELOG.md"]

BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A code block. `language` is the text after the opening backquotes."""

    page: str
    language: str
    code: str


def text(page: str) -> str:
    """The text of a document."""
    return (ROOT / page).read_text(encoding="utf-8")


def prose(page: str) -> str:
    """The text of a document without its code blocks."""
    return BLOCK.sub("", text(page))


def blocks(page: str) -> list[Block]:
    """The code blocks in a document, in order."""
    return [Block(page, language, code) for language, code in BLOCK.findall(text(page))]
