"""Spark jobs are shown as the steps of a statement."""

from __future__ import annotations

from pathlib import Path

from pyzorder import bridge
from pyzorder.steps import LAYS_OUT, step_of

ROOT = Path(__file__).parents[2]


def test_stages_of_a_step_count_alike() -> None:
    stages = (bridge.StageStatus(2, 2, 500), bridge.StageStatus(40, 10, 120))
    step = step_of(bridge.JobStatus(7, LAYS_OUT, True, stages))
    assert (step.share, step.rows, step.tasks, step.files) == (0.625, 120, (12, 42), (10, 40))


def test_steps_are_named_as_in_scala() -> None:
    sources = [file.read_text() for file in (ROOT / "jvm/src/main/scala").rglob("*.scala")]
    for said in (f'StepTag = "{bridge.STEP_TAG}"', f'"{LAYS_OUT}")('):
        assert any(said in source for source in sources), said
