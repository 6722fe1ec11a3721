"""How much memory a server of Spark's holds: its heap after a full collection, and its pages."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bi.clients import Client

COLLECTED = re.compile(r"Pause Full \(System\.gc\(\)\) \d+M->(\d+)M\(")


@dataclass(frozen=True)
class Memory:
    """Mebibytes."""

    heap: int
    resident: int


def options(log: Path) -> str:
    """Java options of a server whose collections are read from a log."""
    return f"-Xlog:gc:file={log} -XX:TieredStopAtLevel=1"


def measure(client: Client, log: Path, process: int) -> Memory:
    """Collects all garbage by a query, which runs in the server's own JVM, and looks.

    Asks again where there was no collection: a JVM leaves one out while a thread is in native code
    that holds an array, as compression does.
    """
    found = before = COLLECTED.findall(log.read_text())
    for _ in range(20):
        client.rows("SELECT reflect('java.lang.System', 'gc')")
        found = COLLECTED.findall(log.read_text())
        if len(found) > len(before):
            break
        time.sleep(0.5)
    assert len(found) > len(before), f"no collection in {log}"
    status = Path(f"/proc/{process}/status").read_text()
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert resident is not None, status
    return Memory(int(found[-1]), int(resident[1]) // 1024)
