"""What a disk does to a table's folder while it is deleted, step by step."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path


def dying(table: Path, left: list[str]) -> None:
    """Takes away what a disk has deleted already."""
    for path in [*table.iterdir(), *(table / "_zorder").iterdir()]:
        if path.name not in ("_zorder", *left):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def dying_but(table: Path, record: str) -> None:
    """As above, to the last record of the journal, which came when the others were listed."""
    dying(table, ["_journal"])
    for path in (table / "_zorder" / "_journal").iterdir():
        if path.name != record:
            path.unlink()


def emptied_behind(table: Path) -> threading.Thread:
    """Once started, the disk gives up the journal, and takes the last file beside it away."""
    last = table / "_zorder" / "last"
    last.touch()

    def give_up() -> None:
        while (table / "_zorder" / "_journal").exists():
            time.sleep(0.02)
        last.unlink()

    return threading.Thread(target=give_up, daemon=True)


def left_in_the_end(folder: Path) -> list[Path]:
    """What is in a folder when nothing is any more, or after 15 seconds."""
    until = time.monotonic() + 15
    while list(folder.iterdir()) and time.monotonic() < until:
        time.sleep(0.1)
    return list(folder.iterdir())
