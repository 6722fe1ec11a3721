"""MkDocs hooks that add pages from outside docs/ and fill in the reference pages."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

from website import breaks, links, reference

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

log = logging.getLogger("mkdocs.hooks.website")  # a strict build fails on a warning


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the files in `links.ELSEWHERE` to the site's pages."""
    for source, page in links.ELSEWHERE.items():
        text = (reference.ROOT / source).read_text(encoding="utf-8")
        if source == "LICENSE":
            text = f"# License\n\n```\n{text}\n```\n"
        files.append(File.generated(config, page, content=text))
    style = (reference.ROOT / "website" / "site.css").read_text(encoding="utf-8")
    files.append(File.generated(config, "assets/site.css", content=style))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Points links to pages of the site, and replaces markers with text generated from the code."""
    uri = page.file.src_uri
    text = links.for_site(
        markdown, uri, lambda path: log.warning("%s links to %s, which is not a page", uri, path)
    )
    return reference.MARKER.sub(lambda marker: made()[marker[1]], text)


def on_page_content(html: str, *, page: Page, **_: Any) -> str:
    """Restores the backquotes in the commands' help, which is plain text and not Markdown."""
    if page.file.src_uri != "reference/cli.md":
        return html
    written, heading, from_code = html.partition('<h2 id="pyzorder">')
    return written + heading + reference.unquoted(from_code)


def on_post_page(output: str, **_: Any) -> str:
    """Lets long names break. The search index already contains the unbroken names."""
    return breaks.mark(output)


@cache
def made() -> dict[str, str]:
    """Returns the generated parts of the reference. The first call starts Spark."""
    with reference.session() as spark:
        return reference.pieces(spark)
