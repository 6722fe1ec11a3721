"""Converts links between files of the repository to links between pages of the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

#: Files outside docs/ that are pages of the site, and the paths of these pages.
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing/code.md",
    "tests/README.md": "contributing/tests.md",
    "SECURITY.md": "contributing/security.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "license.md",
    "sql/FORMAT.md": "reference/format.md",
    **{
        f"benchmarks/results/{name}.md": f"results/{name}.md"
        for name in (
            "advisor",
            "many_files",
            "s3_tables",
            "scale",
            "layout_peers",
            "optimize_peers",
            "curve_ranges",
            "engines",
            "row_groups",
            "auto",
            "drift",
            "needle",
            "ngrams",
        )
    },
}

LINK = re.compile(r"(\]\()([^)\s#]+)?(#[^)\s]*)?(\))")
FENCE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def page_of(path: str) -> str | None:
    """Returns the site's page or picture for a path in the repository, or None if there is none."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return ELSEWHERE.get(path)


def source_of(page: str) -> str:
    """Returns the repository path of a page's source."""
    return {made: source for source, made in ELSEWHERE.items()}.get(page, f"docs/{page}")


def rewrite(text: str, change: Callable[[str], str | None]) -> str:
    """Replaces the target of each relative link with the result of `change`, unless the result is
    None."""

    def changed(link: re.Match[str]) -> str:
        target = link[2]
        if not target or re.match(r"[a-z]+:", target):
            return link[0]
        new = change(target)
        return link[0] if new is None else f"{link[1]}{new}{link[3] or ''}{link[4]}"

    parts = FENCE.split(text)  # every second part is code and remains unchanged
    return "".join(part if i % 2 else LINK.sub(changed, part) for i, part in enumerate(parts))


def for_site(text: str, page: str, missing: Callable[[str], None]) -> str:
    """Returns a page's text, with its links changed to point to pages of the site.

    Calls `missing` with the path of each linked file that is not on the site.
    """
    folder = posixpath.dirname(source_of(page))

    def change(target: str) -> str | None:
        path = posixpath.normpath(posixpath.join(folder, target))
        other = page_of(path)
        if other is None:
            missing(path)
            return None
        return posixpath.relpath(other, posixpath.dirname(page) or ".")

    return rewrite(text, change)
