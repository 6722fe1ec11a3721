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


def test_scala_lines_fit() -> None:
    """As .scalafmt.conf's maxColumn says; scalafmt itself leaves comments and strings alone."""
    files = sorted((ROOT / "jvm" / "src").rglob("*.scala"))
    lines = [(f.name, n, line) for f in files for n, line in enumerate(f.open(encoding="utf-8"), 1)]
    assert [place for *place, line in lines if len(line.rstrip("\n")) > 100] == []
