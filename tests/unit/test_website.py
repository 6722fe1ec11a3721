"""Links between documents are rewritten for the website."""

from __future__ import annotations

import pytest

from pyzorder import errors
from tests.support.documents import ROOT
from website import breaks, links, reference

# (page of the site, a link in the repository, the same link on the site or None if there is no such
# page)
CASES = [
    ("index.md", "docs/guides/when.md", "guides/when.md"),
    ("index.md", "docs/flights.svg", "flights.svg"),
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


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("<td>ZORDER_CANNOT_RESTORE</td>", "<td>ZORDER_<wbr>CANNOT_<wbr>RESTORE</td>"),
        ("<h3>spark.sql.maxColumns</h3>", "<h3>spark.<wbr>sql.<wbr>max<wbr>Columns</h3>"),
        ("<td>a.optimize().where(b)</td>", "<td>a.<wbr>optimize().<wbr>where(<wbr>b)</td>"),
        ("<p>spark.sql.maxColumns</p>", None),
        (f"<p>{'a' * 20}.{'b' * 20}</p>", f"<p>{'a' * 20}.<wbr>{'b' * 20}</p>"),
        (
            "<code>--event-log DIR</code>",
            '<code><span class="option">--event-log</span> DIR</code>',
        ),
        ("<td>Spark 4.3, pyzorder.plot</td>", None),
        ('<td><a href="from_delta_to_pyzorder">a</a></td>', None),
        ("<td><pre>ZORDER_CANNOT_RESTORE</pre></td>", None),
    ],
)
def test_long_names_can_break(text: str, marked: str | None) -> None:
    page = "<nav>ZORDER_CANNOT_RESTORE</nav><article>{}</article><p>ZORDER_CANNOT_RESTORE</p>"
    assert breaks.mark(page.format(text)) == page.format(marked or text)


def test_names_in_the_table_of_contents_can_break() -> None:
    page = '<span class="md-ellipsis">\n  {}\n</span><article></article>'
    marked = page.format("spark.<wbr>sql.<wbr>max<wbr>Columns")
    assert breaks.mark(page.format("spark.sql.maxColumns")) == marked
