"""Runs tests on a standalone cluster with a master and two workers, each in a separate JVM.

    python -m tests.support.programs.cluster tests/spark/test_optimize.py …

On a cluster, the tasks of a session run outside the driver's process. A session uses one core on
each worker. Each worker has cores for two more sessions. Some tests need these cores, because they
stop a process and let another process take over its lock.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support import sessions
from tests.support.processes.servers import BIN, free_port, listens, process, wait

DEPLOY = "org.apache.spark.deploy"


@contextmanager
def cluster(folder: Path, cores: int = 1) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Runs a master and two workers during the block. Each worker has `cores` cores. Yields the
    master's address and the workers."""
    with ExitStack() as stack:

        def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
            run = [str(BIN / "spark-class"), f"{DEPLOY}.{name.lower()}.{name.title()}"]
            log = f"{name}-{len(list(folder.glob('*.log')))}.log"
            command = [*run, "--host", "127.0.0.1", "--webui-port", "0", *arguments]
            return stack.enter_context(process(command, folder, log))

        port = free_port()
        master = start("master", "--port", str(port))
        wait(lambda: listens(port), master, folder / "master-0.log")
        url = f"spark://127.0.0.1:{port}"
        room = ("--cores", str(cores), "--memory", f"{cores}g")
        worker = ("worker", *room, "--work-dir", str(folder / "work"))
        workers = [start(*worker, url) for _ in range(2)]
        for one, log in zip(workers, sorted(folder.glob("worker*.log")), strict=True):
            wait(lambda log=log: "registered with master" in log.read_text(), one, log)  # type: ignore[misc]
        yield url, workers


def main(tests: list[str]) -> int:
    """Returns pytest's exit code."""
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), cores=3) as (url, _):
        settings = {"spark.cores.max": "2", "spark.executor.cores": "1"}
        environment = {
            "SPARK_SUBMIT_OPTS": sessions.SUBMIT_OPTIONS,
            **os.environ,
            "PYZORDER_TEST_MASTER": url,
            "PYZORDER_TEST_SETTINGS": json.dumps(settings),
        }
        command = [sys.executable, "-m", "pytest", *tests]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
