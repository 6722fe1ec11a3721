"""Runs tests in a folder on a store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence


def run(root: str, settings: Mapping[str, str], tests: Sequence[str]) -> int:
    """Returns pytest's exit code.

    Args:
        root: the URL of a folder that the tests may modify freely.
        settings: Spark settings that sessions need to access the folder.
        tests: the arguments for pytest.
    """
    environment = {
        **os.environ,
        "PYZORDER_TEST_STORE": root,
        "PYZORDER_TEST_SETTINGS": json.dumps(dict(settings)),
    }
    command = [sys.executable, "-m", "pytest", "-m", "stores", *tests]
    return subprocess.run(command, env=environment, check=False).returncode
