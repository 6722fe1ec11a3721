"""Cases that kill mutants of the predicate rules: `python -m tests.mutants`.

Each line in sql/skipping and each predicate in test_pruning is a separate test here. The regular
tests check a whole file or all predicates together, so mutation testing with them would take an
hour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark import test_pruning
from tests.spark.test_skipping_fixtures import FIXTURES, Fixture, fixtures_of, index_filter
from tests.support import scans

LINES = {path.stem: fixtures_of(path) for path in sorted(FIXTURES.glob("*.txt"))}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    """An empty table for each fixture file."""
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
    check([opened, judged["mayBeFalse"], judged["mayBeNull"]], fixture.filters)


@pytest.mark.parametrize("name", LINES)
def test_all_lines(spark: SparkSession, tables: None, name: str) -> None:
    """Checks the second and third filters (for FALSE and for NULL) of all lines in a fixture file.
    A single plan evaluates all lines, because some mutants are reached by so many lines that
    checking each line separately would take too long."""
    predicates = [fixture.predicate for fixture in LINES[name]]
    judged = scans.judgements(spark, f"mutants_{name}", predicates)
    for one, fixture in zip(judged, LINES[name], strict=True):
        check([one["mayBeFalse"], one["mayBeNull"]], fixture.filters[1:])


def check(found: list[str], expected: list[set[str]]) -> None:
    """Asserts that the filters match those in a fixture line."""
    for text, known in zip(found, expected, strict=True):
        assert text in known


Truth = dict[tuple[str, str], dict[str, dict[str, set[str]]]]

#: Views of 8 files each. Their columns and rows are defined in test_pruning.
VIEWS = {
    "pruned": (test_pruning.COLUMNS, test_pruning.ROWS),
    "odd": (test_pruning.ODD_COLUMNS, test_pruning.ODD_ROWS),
}

#: The predicates for each view and time zone, and the maximum number of files that may be opened
#: for each predicate. An empty time zone stands for the session time zone.
ZONES = {
    ("pruned", ""): test_pruning.PREDICATES,
    ("odd", ""): test_pruning.ODD_PREDICATES,
    ("odd", "America/St_Johns"): test_pruning.ODD_ELSEWHERE,
}


def within(spark: SparkSession, zone: str) -> AbstractContextManager[None]:
    """Sets the session time zone, if one is given."""
    given = {"spark__sql__session__timeZone": zone} if zone else {}
    return scans.settings(spark, **given)


@pytest.fixture(scope="module")
def pruned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Truth:
    """Creates the views. Computes the outcomes of each predicate in each file with plain Spark, and
    returns them."""
    found = {}
    for name, (columns, rows) in VIEWS.items():
        path = Path(tmp_path_factory.mktemp("mutants")) / name
        with test_pruning.rebased(spark) if name == "odd" else nullcontext():
            test_pruning.indexed(spark, path, name, columns, test_pruning.FILES * rows)
    for (name, zone), listed in ZONES.items():
        with within(spark, zone):
            predicates = [predicate for predicate, _ in listed]
            found[name, zone] = dict(
                zip(predicates, scans.truth(spark, name, predicates), strict=True)
            )
    return found


@pytest.mark.parametrize(
    ("view", "zone", "predicate", "most"),
    [(*key, *listed) for key, predicates in ZONES.items() for listed in predicates],
)
def test_files(
    spark: SparkSession, pruned: Truth, view: str, zone: str, predicate: str, most: int
) -> None:
    found = pruned[view, zone][predicate]
    with within(spark, zone):
        opened = scans.opened(spark.sql(f"SELECT * FROM {view} WHERE {predicate}"))
        assert found["true"] <= opened
        assert len(opened) == most if view == "odd" else len(opened) <= most
        (judged,) = scans.judgements(spark, view, [predicate])
        for file, outcomes in judged["files"].items():
            assert {outcome for outcome, files in found.items() if file in files} <= outcomes


@pytest.mark.parametrize(
    "check",
    [
        test_pruning.test_files_that_are_counted_unread,
        test_pruning.test_what_is_judged_of_odd_files_is_what_they_hold,
        test_pruning.test_sets_of_booleans,
        test_pruning.test_what_the_optimizer_would_have_left_out,
    ],
)
def test_odd(
    spark: SparkSession, pruned: Truth, check: Callable[[SparkSession, str], None]
) -> None:
    check(spark, "odd")


@pytest.mark.parametrize("predicate", ["b < 4 AND c > 1", "b < 2 OR c > 5", "b < c"])
def test_reasons(spark: SparkSession, tmp_path: Path, predicate: str) -> None:
    test_pruning.test_reasons_name_the_columns_without_statistics(spark, tmp_path, predicate)


def test_constants(spark: SparkSession, tmp_path: Path) -> None:
    test_pruning.test_constant_files_that_do_not_tell_all(spark, tmp_path)


@pytest.mark.parametrize("predicate", ["s LIKE 'ab%'", "s NOT LIKE 'x%'"])
def test_default(spark: SparkSession, predicate: str) -> None:
    test_pruning.test_prefixes_of_strings_without_bounds(spark, predicate)
    of_char = predicate.replace("s ", "c ", 1)
    test_pruning.test_prefixes_of_what_the_index_knows_as_char(spark, of_char)
