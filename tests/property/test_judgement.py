"""If a predicate has an outcome (TRUE, FALSE or NULL) for some row of a file, this outcome is
judged possible for the file."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.fuzz.differential import VIEW, make, session
from tests.fuzz.predicates import near, predicates
from tests.fuzz.worlds import File, World, on_drawn
from tests.support import scans

#: The columns of files in which all rows are equal. Zero is excluded, because a floating-point zero
#: can have either sign.
COLUMNS = {"i": "int", "d": "double", "s": "string", "b": "boolean", "t": "date"}


def test_every_outcome_is_judged_possible(spark: SparkSession, tmp_path: Path) -> None:
    impossible = 0

    def run(world: World) -> None:
        nonlocal impossible
        with session(spark, world):
            asked = make(spark, tmp_path / "t", world)
            if asked:
                impossible += scans.check_judged(spark, VIEW, asked)

    on_drawn(run, examples=10, cases=15)
    assert impossible > 200  # without this check, rules that exclude nothing would also pass


def test_constant_files_have_one_outcome(spark: SparkSession, tmp_path: Path) -> None:
    """If all rows of a file are equal, exactly one outcome is judged possible. This test detects
    rules that are weaker than necessary."""

    @settings(
        max_examples=4, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(
        st.lists(st.integers(301, 1000), min_size=3, max_size=3),
        st.lists(predicates(COLUMNS), min_size=20, max_size=20),
    )
    def run(values: list[int], drawn: list[str]) -> None:
        files = [
            File(f"{i}.parquet", COLUMNS, [{c: near(t, v) for c, t in COLUMNS.items()}] * 2)
            for i, v in enumerate(values)
        ]
        world = World(
            "parquet",
            "pyarrow",
            COLUMNS,
            files,
            [],
            [],
            "UTC",
            ansi=False,
            stale=False,
            predicates=drawn,
        )
        with session(spark, world):
            asked = make(spark, tmp_path / "t", world) or []
            judged = scans.judgements(spark, VIEW, asked)
            vague = [
                f"{predicate}: {outcomes}, {judgement['mayBeTrue']}"
                for predicate, judgement in zip(asked, judged, strict=True)
                for outcomes in judgement["files"].values()
                if len(outcomes) != 1
            ]
            scans.check_judged(spark, VIEW, asked)
        assert not vague, "\n".join(vague)
        assert asked

    run()
