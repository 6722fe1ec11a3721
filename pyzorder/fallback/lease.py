"""Who holds a table's lock: one process, as long as it gives signs of life.

What io.pyzorder.publish does with ProcessId and Lease.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from functools import lru_cache
from typing import Any, NamedTuple

from pyzorder.fallback.journal import JournalState, path_of
from pyzorder.fallback.own_files import TEMPORARY, remove, share
from pyzorder.fallback.stores import LocalStore, TableFolder

#: Milliseconds that a lock outlives its owner's last sign of life, where that is not known to be
#: dead; the default of spark.sql.zorder.journal.lease.
LEASE = 120_000

#: Owners of the writers that run in this process.
_live: set[str] = set()


class ProcessId(NamedTuple):
    """A process, told apart from every other one: machine, boot and pid namespace; its number; when
    it began, in clock ticks, -1: not known."""

    host: str
    pid: int
    started: int

    @property
    def is_dead(self) -> bool:
        """Proved: the process has ended. False for others' processes, and when it is not known."""
        return (
            self.host == current().host
            and self.started >= 0
            and os.path.exists("/proc/self/stat")
            and _started(self.pid) != self.started
        )

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host.partition('/')[0]}"


@lru_cache(maxsize=1)
def _host() -> str:
    boot, space = _text("/proc/sys/kernel/random/boot_id").strip(), ""
    with contextlib.suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return f"{socket.gethostname()}/{boot}/{space}"


def current() -> ProcessId:
    """This process."""
    started = _started(os.getpid())
    return ProcessId(_host(), os.getpid(), -1 if started is None else started)


def _started(pid: int) -> int | None:
    """Clock ticks from boot to the process's start; None: it runs no more."""
    text = _text(f"/proc/{pid}/stat")
    fields = text[text.rfind(")") + 2 :].split(" ")
    return None if len(fields) < 20 or fields[0] in "ZX" else int(fields[19])


def _text(path: str) -> str:
    try:
        with open(path, encoding="latin-1") as file:
            return file.read()
    except OSError:
        return ""


class Lease:
    """A writer's sign of life: `_<n>.lease`, written anew every quarter of its length."""

    def __init__(self, folder: TableFolder, run: int, owner: str, length: int) -> None:
        """`length` in milliseconds."""
        self._path = path_of(folder, run, "lease")
        self._prepare = path_of(folder, run, "prepare")
        self.owner, self._seconds = owner, length / 1000
        self._renewed = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"zorder-lease-{run}", daemon=True)

    def claim(self) -> None:
        """Before PREPARE: from now on nobody in this process takes the owner for dead."""
        _live.add(self.owner)

    def start(self) -> None:
        """After PREPARE."""
        self._thread.start()

    @property
    def held(self) -> bool:
        """Whether nobody can have declared this writer dead yet: a pause of the process shows."""
        return time.monotonic() - self._renewed < self._seconds / 4 * 3

    def end(self) -> None:
        """Ends a lease that was claimed, and perhaps started."""
        self._ended.set()
        _live.discard(self.owner)
        if self._thread.is_alive():
            self._thread.join(5)
            remove(self._path)

    def _keep(self) -> None:
        is_shared = False
        while not self._ended.is_set():
            now = time.monotonic()
            with contextlib.suppress(OSError):  # the next try may succeed; until then `held` tells
                os.stat(self._prepare)  # gone: another life of the table has this number now
                with open(self._path, "w", encoding="utf-8") as file:
                    file.write(self.owner)
                if not is_shared:
                    share(self._path)
                is_shared, self._renewed = True, now
            self._ended.wait(self._seconds / 4)


def process_of(prepare: dict[str, Any]) -> ProcessId:
    """The process that a PREPARE names."""
    return ProcessId(str(prepare["host"]), int(prepare["pid"]), int(prepare["started"]))


def is_alive(state: JournalState, default_length: int) -> bool:
    """Whether the last run's owner may still be at work."""
    prepare = state.record("prepare")
    if prepare is not None:
        process = process_of(prepare)
        if process == current():
            return prepare["owner"] in _live
        if process.is_dead:
            return False
    length = int(prepare["lease"]) if prepare is not None else default_length
    folder = state.folder.journal
    signs = [f"{folder}/_{state.run}.lease", f"{folder}/_{state.run}.prepare"]
    last = max((s.modified for s in LocalStore().stats(signs).values()), default=0)
    return _store_time(folder) - last <= length


def _store_time(folder: str) -> int:
    """The time it is now by the clock that stamps the journal's files, milliseconds."""
    probe = f"{folder}/{TEMPORARY}{uuid.uuid4()}"
    with open(probe, "xb"):
        pass
    try:
        return LocalStore().stats([probe])[probe].modified
    finally:
        remove(probe)
