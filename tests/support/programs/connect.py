"""Runs tests in the environment of a Spark Connect client, with a server that this program starts.

    python -m tests.support.programs.connect .venv-4.3-connect/bin/python tests/spark/test_table.py …

The server uses the PySpark of the current Python. The client needs neither Java nor jars.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.processes.servers import free_port, spark_server

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


def main(python: str, tests: list[str]) -> int:
    """Returns pytest's exit code."""
    port = free_port()
    settings = {"spark.connect.grpc.binding.port": str(port)}
    with (
        tempfile.TemporaryDirectory() as folder,
        spark_server(Path(folder), port, SERVER, settings),
    ):
        environment = {**os.environ, "PYZORDER_TEST_REMOTE": f"sc://127.0.0.1:{port}"}
        command = [python, "-m", "pytest", "-m", "", *tests]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
