"""Runs the command-line tool in a process without PySpark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]

_SCRIPT = """
import sys
sys.modules["pyspark"] = sys.modules["py4j"] = None
sys.argv = ["pyzorder", *sys.argv[1:]]
from pyzorder.cli import main
main()
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs `pyzorder` with these arguments."""
    command = [sys.executable, "-c", _SCRIPT, *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=_ROOT, timeout=60)
