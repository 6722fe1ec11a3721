"""Links as they are written for a reader of the repository, and as the site needs them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

#: Pages of the site whose text lies outside of docs/: where it lies, and the page it becomes.
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
        for name in ("advisor", "layout_peers", "optimize_peers", "curve_ranges")
    },
}

LINK = re.compile(r"(\]\()([^)\s#]+)?(#[^)\s]*)?(\))")
FENCE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def page_of(path: str) -> str | None:
    """The site's page or picture for a file of the repository, by its path there; None: there is
    none."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return ELSEWHERE.get(path)


def source_of(page: str) -> str:
    """The path in the repository of what a page of the site is made of."""
    return {made: source for source, made in ELSEWHERE.items()}.get(page, f"docs/{page}")


def rewrite(text: str, change: Callable[[str], str | None]) -> str:
    """The text with the target of each relative link changed; None leaves it as it is."""

    def changed(link: re.Match[str]) -> str:
        target = link[2]
        if not target or re.match(r"[a-z]+:", target):
            return link[0]
        new = change(target)
        return link[0] if new is None else f"{link[1]}{new}{link[3] or ''}{link[4]}"

    parts = FENCE.split(text)  # code, which stays as it is, is every second one
    return "".join(part if i % 2 else LINK.sub(changed, part) for i, part in enumerate(parts))


def for_site(text: str, page: str, missing: Callable[[str], None]) -> str:
    """A page's text with its links leading to other pages of the site.

    `missing` is told of the files that links lead to and the site does not have.
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
