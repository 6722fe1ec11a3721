"""Renders HTML pages from the templates. The pages load no external resources and run no scripts.

Needs Jinja2: `pip install 'pyzorder-spark[plot]'`.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from pyzorder import errors
from pyzorder._version import __version__
from pyzorder.history import clock
from pyzorder.text.printable import printable
from pyzorder.text.wording import duration, percent, size

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
except ModuleNotFoundError as missing:
    if missing.name != "jinja2":
        raise
    raise errors.plot_missing("Jinja2") from None


def render(template: str, spark_version: str, **values: Any) -> str:
    """Renders a page.

    Args:
        template: the name of a file in `templates/`.
        values: the values that the template shows. All text is escaped.
    """
    environment = Environment(
        loader=PackageLoader("pyzorder"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=percent, size=size, number=number, clock=clock, duration=duration
    )
    page = environment.get_template(template).render(
        made=clock(datetime.now(timezone.utc)),
        versions=f"pyzorder {__version__}, Spark {spark_version}",
        **values,
    )
    return printable(page)


def number(value: float | None) -> str:
    """Formats a number, such as `1,234` or `0.25`. An unknown number becomes a dash."""
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
