"""Marks where a browser may break long names, so that they fit on a narrow screen."""

from __future__ import annotations

import re

TAG = re.compile(r"(<[^>]*>)")
CODE_BLOCK = re.compile(r"<(/?)(?:pre|script|style|svg)\b")
NARROW = re.compile(r"<(/?)(?:td|th|h[1-6])\b")
LONG = re.compile(r"[^\s<>&;]{16,}")
LONGER = re.compile(r"[^\s<>&;]{36,}")
PLACE = re.compile(r"(?<=[\w)][._/=(])(?=\w)|(?<=[a-z])(?=[A-Z])")
MENU_ITEM = re.compile(r'(?<=<span class="md-ellipsis">)[^<]+')
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def mark(page: str) -> str:
    """Returns a page in which long names in the article can break at `<wbr>`, and in which options
    such as `--dry-run` do not break.

    In table cells, headings and the table of contents, names of 16 or more characters can break;
    elsewhere, only names that may not fit on a line. Code blocks are not changed.
    """
    head, start, rest = page.partition("<article")
    article, end, tail = rest.partition("</article>")
    parts = TAG.split(start + article)
    code_blocks = narrow = 0
    for i, part in enumerate(parts):
        if i % 2:
            if tag := CODE_BLOCK.match(part):
                code_blocks += -1 if tag[1] else 1
            elif tag := NARROW.match(part):
                narrow += -1 if tag[1] else 1
        elif not code_blocks:
            names = LONG if narrow else LONGER
            parts[i] = OPTION.sub(r'<span class="option">\g<0></span>', broken(names, part))
    head = MENU_ITEM.sub(lambda item: broken(LONG, item[0]), head)
    return head + "".join(parts) + end + tail


def broken(names: re.Pattern[str], text: str) -> str:
    """Returns the text with places to break in each match of `names`."""
    return names.sub(lambda name: PLACE.sub("<wbr>", name[0]), text)
