"""Simulates the steps that a file system takes to delete a table's folder."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path


def delete_all_but(table: Path, left: list[str]) -> None:
    """Deletes everything in the table's folder and in `_zorder`, except for `_zorder` itself and
    the names in `left`."""
    for path in [*table.iterdir(), *(table / "_zorder").iterdir()]:
        if path.name not in ("_zorder", *left):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def delete_all_but_record(table: Path, record: str) -> None:
    """Deletes everything except for one record. This simulates a record that is written after the
    process that deletes the table has listed the journal."""
    delete_all_but(table, ["_journal"])
    for path in (table / "_zorder" / "_journal").iterdir():
        if path.name != record:
            path.unlink()


def deleter_behind(table: Path) -> threading.Thread:
    """A thread that waits until the journal is deleted, and then deletes the last file in
    `_zorder`."""
    last = table / "_zorder" / "last"
    last.touch()

    def give_up() -> None:
        while (table / "_zorder" / "_journal").exists():
            time.sleep(0.02)
        last.unlink()

    return threading.Thread(target=give_up, daemon=True)


def eventually_left(folder: Path) -> list[Path]:
    """Waits up to 15 seconds for the folder to become empty. Returns the files that are left."""
    until = time.monotonic() + 15
    while list(folder.iterdir()) and time.monotonic() < until:
        time.sleep(0.1)
    return list(folder.iterdir())
