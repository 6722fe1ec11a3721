"""If a package that the command-line tool needs is missing, the error message names it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pyzorder import errors

ROOT = Path(__file__).parents[2]


def test_without_click() -> None:
    script = "import sys; sys.modules['click'] = None; from pyzorder.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"Error: {errors.cli_missing('click')}\n"
