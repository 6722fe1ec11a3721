"""Measures the memory of a Spark server: its heap after a full garbage collection, and its resident
set size."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bi.clients import Client

COLLECTED = re.compile(r"Pause Full \(System\.gc\(\)\) \d+M->(\d+)M\(")


@dataclass(frozen=True)
class Memory:
    """Memory in mebibytes."""

    heap: int
    resident: int


def options(log: Path) -> str:
    """Java options that make the server log its garbage collections."""
    return f"-Xlog:gc:file={log} -XX:TieredStopAtLevel=1"


def measure(client: Client, log: Path, process: int) -> Memory:
    """Triggers a garbage collection in the server's JVM with a query, then measures the memory.

    Repeats the query if no collection took place. The JVM skips a collection while native code,
    such as a compression library, has pinned an array.
    """
    found = before = COLLECTED.findall(log.read_text())
    for _ in range(20):
        client.rows("SELECT reflect('java.lang.System', 'gc')")
        found = COLLECTED.findall(log.read_text())
        if len(found) > len(before):
            break
        time.sleep(0.5)
    assert len(found) > len(before), f"no garbage collection in {log}"
    status = Path(f"/proc/{process}/status").read_text()
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert resident is not None, status
    return Memory(int(found[-1]), int(resident[1]) // 1024)
