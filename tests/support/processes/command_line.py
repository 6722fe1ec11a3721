"""Runs pyzorder's command-line tool in processes of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.support.sessions import SUBMIT_OPTIONS

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}


def command(*arguments: str) -> list[str]:
    """A pyzorder command line."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": SUBMIT_OPTIONS,
    }
    conf = [word for item in settings.items() for word in ("--conf", "=".join(item))]
    return [sys.executable, "-m", "pyzorder", *arguments, "--master", "local[1]", *conf]


class Stopped(NamedTuple):
    """What a stopped process returned and printed. `before` and `after` are the parts of its
    standard error that it printed before and after the signal."""

    code: int
    output: str
    before: str
    after: str


def stopped(number: signal.Signals, step: str, folder: Path, *arguments: str) -> Stopped:
    """Runs a command in a folder, and sends it a signal once its standard error contains `step`."""
    with subprocess.Popen(
        command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        cwd=folder,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None and process.stdout is not None
        told = ""
        while step not in told:
            line = process.stderr.readline()
            assert line, told
            told += line
        if number == signal.SIGINT:  # a terminal sends the signal to the whole process group
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        last = process.stderr.read()
        printed = process.stdout.read()
    return Stopped(process.returncode, printed, told, last)
