"""Starts Spark servers with pyzorder for tests that connect to them as clients."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from pyzorder import session

BIN = Path(pyspark.__file__).parent / "bin"


def free_port() -> int:
    """Returns a port that no process listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether a process on this machine accepts connections on the port."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def spark_server(
    folder: Path, port: int, main_class: str, settings: dict[str, str], *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a Spark server as a separate process in the working folder `folder` during the block."""
    command = [str(BIN / "spark-submit"), "--master", "local[2]", "--driver-memory", "1g"]
    command += ["--class", main_class, "--jars", str(session.jar())]
    common = {
        "spark.sql.extensions": session.EXTENSION,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.zorder.optimize.targetFileSize": "4k",
    }
    for name, value in {**common, **settings}.items():
        command += ["--conf", f"{name}={value}"]
    with process([*command, "spark-internal", *arguments], folder, "server.log") as server:
        wait(lambda: listens(port), server, folder / "server.log")
        yield server


@contextmanager
def process(command: list[str], folder: Path, log: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program in the working folder `folder` during the block. The program writes its output
    to a file in this folder."""
    with (folder / log).open("w") as output:
        started = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield started
    finally:
        os.killpg(started.pid, signal.SIGTERM)
        started.wait(timeout=60)


def wait(ready: Callable[[], bool], server: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until the server is ready. If the server exits or takes too long, fails with the end of
    the server's log."""
    deadline = time.monotonic() + 240
    while not ready():
        assert server.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.5)
