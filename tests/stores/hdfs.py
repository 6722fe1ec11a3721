"""Runs tests on an HDFS cluster. A NameNode and two DataNodes run in one separate JVM.

python -m tests.stores.hdfs tests/stores …
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from tests.stores import jars
from tests.stores.run import run
from tests.support.processes.servers import free_port, process, wait

MANAGER = "org.apache.hadoop.test.MiniDFSClusterManager"

#: The replication factor. Each DataNode has one copy of each block.
SETTINGS = {"spark.hadoop.dfs.replication": "2"}


def main(tests: list[str]) -> int:
    """Returns pytest's exit code."""
    with tempfile.TemporaryDirectory() as home:
        folder, port, web = Path(home), free_port(), free_port()
        ready = folder / "ready.json"
        command = [
            "java", "-Xmx1g", "-cp", os.pathsep.join(map(str, jars.fetched("hdfs"))), MANAGER,
            "-format", "-datanodes", "2", "-nnport", str(port), "-httpport", str(web), "-writeDetails",
            str(ready),
            "-D", f"hdfs.minidfs.basedir={folder / 'hdfs'}",
        ]  # fmt: skip
        with process(command, folder, "hdfs.log") as server:
            wait(lambda: ready.exists() and bool(ready.read_text()), server, folder / "hdfs.log")
            assert json.loads(ready.read_text())["namenode_port"] == port
            address = {"spark.hadoop.dfs.namenode.http-address": f"127.0.0.1:{web}"}
            return run(f"hdfs://127.0.0.1:{port}/tests", SETTINGS | address, tests)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
