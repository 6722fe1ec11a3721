"""In a browser, a report or the page about a maintenance run does not load any other resources, and
all of its text is visible and has enough contrast."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from pyzorder import report
from pyzorder.cli.app import app
from tests.support.scans import settings

pytestmark = pytest.mark.browser

ODD = "<script>alert(1)</script>"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

#: A script that finds labels outside a picture's frame, and pairs of labels that overlap.
MISPLACED = """() => [...document.querySelectorAll('svg')].flatMap((svg, picture) => {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  const out = texts.filter(([, r]) => r.left < frame.left - 1 || r.right > frame.right + 1
    || r.top < frame.top - 1 || r.bottom > frame.bottom + 1).map(([t]) => `${picture}: ${t}`);
  texts.forEach(([t, a], i) => texts.slice(i + 1).forEach(([u, b]) => {
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4) out.push(`${picture}: ${t} / ${u}`);
  }));
  return out;
})"""

#: A script that returns the lowest contrast ratio between text and page, as defined in WCAG 2.
CONTRAST = """() => {
  const light = css => css.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const page = light(getComputedStyle(document.body).backgroundColor);
  return Math.min(...[...document.querySelectorAll('h1, h2, p, dt, dd, td, li, svg text')].map(e => {
    const style = getComputedStyle(e);
    const ink = light(e.tagName == 'text' ? style.fill : style.color);
    return (Math.max(ink, page) + 0.05) / (Math.min(ink, page) + 0.05);
  }));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The Chromium on this machine or, if there is none, the Chromium that Playwright has
    downloaded."""
    sync_api = pytest.importorskip(
        "playwright.sync_api",
        reason="playwright is not installed: pip install 'pyzorder-spark[browser]'",
    )
    named = os.environ.get("PYZORDER_BROWSER")
    path = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_api.sync_playwright() as playwright:
        try:
            found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except sync_api.Error as failure:
            pytest.skip(f"no browser: install chromium, or run playwright install: {failure}")
        yield found
        found.close()


@pytest.fixture(scope="module")
def pages(
    browser: Any, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """A report on a table and a query, and a page about a maintenance run. The table has a column
    with an unusual name and a file with only nulls.

    Spark is started only if a browser is available.
    """
    spark: SparkSession = request.getfixturevalue("spark")
    folder = tmp_path_factory.mktemp("report")
    table = str(folder / "t")
    rows = spark.range(0, 20_000, 1, 8).selectExpr(
        "timestamp'2024-01-01' + make_dt_interval(0, id * 31 % 8760) AS moment",
        "pow(id * 7919 % 2000 / 100, 3) AS delay",
        f"concat('customer number ', id % 5000) AS `{ODD}`",
    )
    rows.write.parquet(table)
    with settings(spark, spark__sql__zorder__optimize__targetFileSize="12000"):
        spark.sql(f"OPTIMIZE '{table}' ZORDER BY (moment, delay, `{ODD}`)").collect()
    nulls = rows.limit(9).selectExpr("moment", "cast(null AS double) AS delay", f"`{ODD}`")
    nulls.coalesce(1).write.mode("append").parquet(table)
    where = "delay > 500 AND moment BETWEEN '2024-05-01' AND '2024-06-15'"
    pages = {"report": report.write(spark, table, folder / "report.html", where=where)}
    pages["maintenance"] = folder / "maintenance.html"
    arguments = ["maintain", table, "/no/where", "--budget", "1k", "--report", pages["maintenance"]]
    done = CliRunner().invoke(app, [*map(str, arguments)], obj=spark)
    assert done.exit_code == 1, done.output
    return pages


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize(("name", "odd"), [("report", 4), ("maintenance", 1)])
def test_as_a_browser_shows_it(
    browser: Any, pages: dict[str, Path], scheme: str, width: int, name: str, odd: int
) -> None:
    """`odd` is the minimum number of places in which the page shows the column's name."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(pages[name].as_uri())
    if "PYZORDER_SCREENSHOTS" in os.environ:
        to = Path(os.environ["PYZORDER_SCREENSHOTS"]) / f"{name}-{scheme}-{width}.png"
        page.screenshot(path=to, full_page=True)
    assert asked == [pages[name].as_uri()]
    assert said == []
    assert page.evaluate("document.scripts.length") == 0
    assert page.get_by_text(ODD).count() >= odd
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(MISPLACED) == []
    assert page.evaluate(CONTRAST) >= 4.5
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    if width > 1000 and name == "report":
        heights = page.evaluate(
            "[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height)"
        )
        assert min(heights) >= 9
    page.close()
