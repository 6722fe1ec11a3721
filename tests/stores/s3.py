"""Runs tests on S3: a moto server, accessed through S3A.

python -m tests.stores.s3 tests/stores …
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.stores import jars, s3_server
from tests.stores.run import run
from tests.support.processes.servers import free_port, listens, process, wait


def settings(port: int) -> dict[str, str]:
    """The Spark settings for accessing the server on a local port."""
    s3a = {
        "endpoint": f"http://127.0.0.1:{port}",
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "access.key": "tests",
        "secret.key": "tests",
    }
    return {
        "spark.jars": ",".join(map(str, jars.fetched("s3"))),
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()},
    }


def main(tests: list[str]) -> int:
    """Returns pytest's exit code."""
    with tempfile.TemporaryDirectory() as home:
        folder, port = Path(home), free_port()
        command = [sys.executable, str(Path(s3_server.__file__)), str(port)]
        with process(command, folder, "s3.log") as server:
            wait(lambda: listens(port), server, folder / "s3.log")
            return run(f"s3a://{s3_server.BUCKET}", settings(port), tests)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
