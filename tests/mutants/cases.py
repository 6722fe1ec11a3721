"""What is to kill the mutants of the predicate rules, one case a test: `python -m tests.mutants`.

The lines of sql/skipping, and the predicates of test_pruning on files; there they are one test a
file and one for all, which would make a run over all mutants an hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark import test_pruning
from tests.spark.test_skipping_fixtures import FIXTURES, Fixture, fixtures_of, index_filter
from tests.support import scans
from tests.support.indexes import build

LINES = {path.stem: fixtures_of(path) for path in sorted(FIXTURES.glob("*.txt"))}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    """An empty table for each file of lines."""
    for name, fixtures in LINES.items():
        spark.sql(f"CREATE TABLE mutants_{name} ({fixtures[0].columns}) USING parquet")
    yield
    for name in LINES:
        spark.sql(f"DROP TABLE mutants_{name}")


@pytest.mark.parametrize(
    ("name", "fixture"),
    [pytest.param(name, f, id=f.predicate) for name, lines in LINES.items() for f in lines],
)
def test_line(spark: SparkSession, tables: None, name: str, fixture: Fixture) -> None:
    (judged,) = scans.judgements(spark, f"mutants_{name}", [fixture.predicate])
    opened = index_filter(spark, f"mutants_{name}", fixture.predicate)
    for text, known in zip(
        (opened, judged["mayBeFalse"], judged["mayBeNull"]), fixture.filters, strict=True
    ):
        assert re.sub(r"_common_expr_\d+", "_common_expr_0", text) in known


Truth = dict[str, dict[str, set[str]]]


@pytest.fixture(scope="module")
def pruned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Truth:
    """The view `mutants_pruned` of test_pruning's files; what holds in which, by plain Spark."""
    path = Path(tmp_path_factory.mktemp("mutants")) / "pruned"
    rows = spark.range(0, test_pruning.FILES * test_pruning.ROWS, 1, test_pruning.FILES)
    rows.selectExpr(*test_pruning._split(test_pruning.COLUMNS)).write.parquet(str(path))
    build(spark, path, "parquet")
    spark.read.parquet(str(path)).createOrReplaceTempView("mutants_pruned")
    predicates = [predicate for predicate, _ in test_pruning.PREDICATES]
    return dict(zip(predicates, scans.truth(spark, "mutants_pruned", predicates), strict=True))


@pytest.mark.parametrize(("predicate", "most"), test_pruning.PREDICATES)
def test_files(spark: SparkSession, pruned: Truth, predicate: str, most: int) -> None:
    found = pruned[predicate]
    opened = scans.opened(spark.sql(f"SELECT * FROM mutants_pruned WHERE {predicate}"))
    assert found["true"] <= opened
    assert len(opened) <= most
    (judged,) = scans.judgements(spark, "mutants_pruned", [predicate])
    for file, outcomes in judged["files"].items():
        assert {outcome for outcome, files in found.items() if file in files} <= outcomes
