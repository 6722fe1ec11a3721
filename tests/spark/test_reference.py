"""The reference pages contain exactly the lists that the jar generates."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.support.documents import PAGES, text
from website import reference


def test_every_setting(spark: SparkSession) -> None:
    shown = {row.key: row for row in spark.sql("SET -v").collect() if ".zorder." in row.key}
    found = {setting.key: setting for setting in reference.settings(spark)}
    assert set(found) == set(shown) and len(found) > 10
    for key, setting in found.items():
        assert setting.doc == shown[key].meaning


@pytest.mark.variants
@pytest.mark.parametrize("line", reference.lines("accepted.txt"))
def test_every_statement(spark: SparkSession, line: str) -> None:
    words = line.upper().replace("/* A COMMENT */", "").replace("/* ANOTHER */", "").split()
    first = "DESCRIBE" if words[0] == "DESC" else words[0]
    assert first == "SELECT" or [u for u in reference.usages(spark) if u.startswith(first)]


def test_every_piece_has_its_place(spark: SparkSession) -> None:
    wanted = [name for page in PAGES for name in reference.MARKER.findall(text(page))]
    made = reference.pieces(spark)
    assert sorted(wanted) == sorted(made)
    assert "| `metrics.numFilesAdded` | bigint | Number of new files |" in made["results"]
    assert "|  |" not in made["results"].replace("| column | type |  |", "")  # all have comments
    assert "number of files skipped by join keys" in made["metrics in the UI"]
    assert "| `zorder_value(a, ...)` |" in made["functions"]
