"""The command line's words: names, sentences, exit codes, progress; no Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from pyzorder import bridge, errors
from pyzorder.cli.display import time_left
from pyzorder.cli.failures import CannotStart, Interrupted, exit_code, sentence
from pyzorder.cli.output import finite
from pyzorder.cli.steps import LAYS_OUT, step_of
from pyzorder.cli.targets import ColumnsType, Target, TargetType, names

ROOT = Path(__file__).parents[2]

# (as written on the command line, what it means)
NAMES = [
    ("a", [("a",)]),
    (" a , b ", [("a",), ("b",)]),
    ("a,c.d", [("a",), ("c", "d")]),
    ("unit price,x", [("unit price",), ("x",)]),
    ("`odd, name`.x", [("odd, name", "x")]),
    ("`a``b`", [("a`b",)]),
    ("a) DRY RUN --", [("a) DRY RUN --",)]),
    ("größe", [("größe",)]),
]

NO_NAMES = ["", ",", "a,", "a,,b", "a.", ".a", "`a", "a`b", "``", "`a`b"]

TARGETS = [
    ("sales", Target(name=("sales",))),
    ("db.sales", Target(name=("db", "sales"))),
    ("`a/b`", Target(name=("a/b",))),
    ("/data/sales", Target(path="/data/sales")),
    ("./sales", Target(path="./sales")),
    (".", Target(path=".")),
    ("s3a://bucket/a.b,c", Target(path="s3a://bucket/a.b,c")),
    ("/data/it's `odd`", Target(path="/data/it's `odd`")),
    ("parquet.`/data/sales`", Target(path="/data/sales", format="parquet")),
    ("ORC.`data`", Target(path="data", format="orc")),
    ("parquet./data/sales", Target(path="/data/sales", format="parquet")),
    ("parquet.s3a://b/t", Target(path="s3a://b/t", format="parquet")),
    ("parquet.sales", Target(name=("parquet", "sales"))),
]

# (what was raised, the exit code, the sentence)
FAILURES: list[tuple[BaseException, int, str]] = [
    (ValueError("[ZORDER_CONFLICT] Too late. SQLSTATE: 40001"), 4, "[ZORDER_CONFLICT] Too late"),
    (ValueError("[ZORDER_CONCURRENT_OPTIMIZE] Wait."), 4, "[ZORDER_CONCURRENT_OPTIMIZE] Wait."),
    (
        ValueError("[A.B] No such\ntable.; line 1 pos 14;\n'Project [*]\n+- 'Unresolved"),
        1,
        "[A.B] No such table",
    ),
    (ValueError("[X] Not this\n== SQL ==\nSELECT 1"), 1, "[X] Not this"),
    (
        ValueError("It stopped.\nThis stopped SparkContext was created at:\n\norg.apache.X(Y:1)"),
        1,
        "It stopped",
    ),
    (ValueError("plain\n\tat org.x.Y(Z.scala:1)"), 1, "plain"),
    (CannotStart("No Java."), 3, "No Java."),
    (Interrupted("Stopped."), 130, "Stopped."),
    (Interrupted("Stopped.", 15), 143, "Stopped."),
    (KeyError(), 1, "KeyError"),
]

# (share done, seconds since it began, what is said)
TIMES = [
    (0.0, 9.0, []),
    (1.0, 9.0, []),
    (0.5, 0.5, []),
    (0.5, 10.0, ["0:00:10 left"]),
    (0.01, 60.0, ["1:39:00 left"]),
]


@pytest.mark.parametrize(("text", "meant"), NAMES)
def test_names(text: str, meant: list[tuple[str, ...]]) -> None:
    assert names(text) == meant


@pytest.mark.parametrize("text", NO_NAMES)
def test_no_names(text: str) -> None:
    with pytest.raises(click.BadParameter):
        names(text)


def test_columns_are_quoted() -> None:
    assert ColumnsType().convert("a,c.d,`x``,y`", None, None) == ["`a`", "`c`.`d`", "`x``,y`"]


@pytest.mark.parametrize(("text", "meant"), TARGETS)
def test_targets(text: str, meant: Target) -> None:
    assert TargetType().convert(text, None, None) == meant


@pytest.mark.parametrize(("raised", "code", "says"), FAILURES)
def test_failures(raised: BaseException, code: int, says: str) -> None:
    assert (exit_code(raised), sentence(raised)) == (code, says)


@pytest.mark.parametrize(("share", "elapsed", "said"), TIMES)
def test_time_left(share: float, elapsed: float, said: list[str]) -> None:
    assert time_left(share, elapsed) == said


def test_stages_of_a_step_count_alike() -> None:
    stages = (bridge.StageStatus(2, 2, 500), bridge.StageStatus(40, 10, 120))
    step = step_of(bridge.JobStatus(7, LAYS_OUT, True, stages))
    assert (step.share, step.rows, step.tasks, step.files) == (0.625, 120, (12, 42), (10, 40))


def test_steps_are_named_as_in_scala() -> None:
    sources = [file.read_text() for file in (ROOT / "jvm/src/main/scala").rglob("*.scala")]
    for said in (f'StepTag = "{bridge.STEP_TAG}"', f'"{LAYS_OUT}")('):
        assert any(said in source for source in sources), said


def test_json_has_no_nan() -> None:
    assert finite({"a": [float("nan"), 1.5], "b": float("inf")}) == {"a": [None, 1.5], "b": None}


def test_without_click() -> None:
    script = "import sys; sys.modules['click'] = None; from pyzorder.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"Error: {errors.cli_missing('click')}\n"
