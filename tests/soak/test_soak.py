"""Runs the soak test for a quarter of a minute. `make soak` runs it for longer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_short_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", "--minutes", "0.25", "--pause", "0.5", "--seed", "1",
         "--folder", str(tmp_path / "soak")],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
