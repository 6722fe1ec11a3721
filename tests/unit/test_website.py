"""Links between documents are rewritten for the website."""

from __future__ import annotations

import pytest

from pyzorder import errors
from tests.support.documents import ROOT
from website import links, reference

# (page of the site, a link in the repository, the same link on the site or None if there is no such
# page)
CASES = [
    ("index.md", "docs/guides/when.md", "guides/when.md"),
    ("index.md", "docs/flights.png", "flights.png"),
    ("index.md", "CONTRIBUTING.md", "contributing/code.md"),
    ("guides/when.md", "columns.md#which-types", "columns.md#which-types"),
    ("guides/when.md", "../../README.md#limits", "../index.md#limits"),
    ("promises.md", "../tests/README.md#run", "contributing/tests.md#run"),
    ("contributing/code.md", "docs/architecture.md", "../architecture.md"),
    ("contributing/tests.md", "../sql/FORMAT.md", "../reference/format.md"),
    ("tour.md", "https://spark.apache.org/x.md", "https://spark.apache.org/x.md"),
    ("tour.md", "#joins", "#joins"),
    ("tour.md", "../pyproject.toml", None),
]


PAGES = [
    *(str(path.relative_to(ROOT / "docs")) for path in sorted((ROOT / "docs").rglob("*.md"))),
    *(page for page in links.ELSEWHERE.values() if page != "license.md"),
]


@pytest.mark.parametrize(("page", "written", "on_site"), CASES)
def test_links(page: str, written: str, on_site: str | None) -> None:
    missing: list[str] = []
    text = links.for_site(f"[a]({written}), `[b]({written})`", page, missing.append)
    assert text == f"[a]({on_site or written}), `[b]({written})`"
    assert missing == ([] if on_site else ["pyproject.toml"])


@pytest.mark.parametrize("page", PAGES)
def test_no_page_links_to_what_is_not_on_the_site(page: str) -> None:
    text = (ROOT / links.source_of(page)).read_text(encoding="utf-8")
    links.for_site(text, page, pytest.fail)


def test_code_blocks_stay() -> None:
    text = "```python\nx[0](y)\n```\n"
    assert links.for_site(text, "tour.md", pytest.fail) == text


@pytest.mark.parametrize("source", links.ELSEWHERE)
def test_pages_from_elsewhere_exist(source: str) -> None:
    assert (ROOT / source).is_file()
    assert links.source_of(links.ELSEWHERE[source]) == source


def test_the_list_of_conditions_is_the_catalogue() -> None:
    rows = reference.conditions_text().splitlines()[2:]
    listed = [row.split(" | ")[0].strip("| `") for row in rows]
    messages = [
        condition
        for condition, entry in errors.conditions().items()
        for _ in entry.get("variants", [1])
    ]
    assert listed == messages
    assert "<!-- from the code: error conditions -->" in (
        ROOT / "docs" / "reference" / "errors.md"
    ).read_text(encoding="utf-8")


def test_placeholders_are_no_html() -> None:
    assert reference.placeholders("<a> and x.`<b>`.") == r"*a* and x.\`*b*\`."
    assert "<" not in reference.conditions_text()


def test_paragraphs_of_help_show_backquotes() -> None:
    html = "<p>So is <code>a b</code>.</p><pre><code>x</code></pre>"
    assert reference.unquoted(html) == "<p>So is `a b`.</p><pre><code>x</code></pre>"
