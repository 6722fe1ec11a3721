"""What the documents name must exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCALA = ROOT / "jvm" / "src" / "main" / "scala" / "io" / "pyzorder"


def walked_files() -> list[str]:
    """The Scala files that CONTRIBUTING's two walks name."""
    walks = (ROOT / "CONTRIBUTING.md").read_text().split("## Two walks")[1]
    return re.findall(r"`(\w+/\w+\.scala)`", walks)


@pytest.mark.parametrize("name", walked_files())
def test_walks_name_files_that_exist(name: str) -> None:
    assert (SCALA / name).is_file()


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "tests/README.md"])
def test_links_lead_somewhere(document: str) -> None:
    path = ROOT / document
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_scala_never_catches_throwable() -> None:
    caught = re.compile(r"case \w+: (java\.lang\.)?Throwable\b")
    files = sorted((ROOT / "jvm" / "src").rglob("*.scala"))
    assert [file.name for file in files if caught.search(file.read_text())] == []
