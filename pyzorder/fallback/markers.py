"""The empty file that a run puts into every folder it touches, before RETIRE and until after DONE.

Whoever overwrites or drops a partition deletes its folder, and the marker with it; `_zorder` in the
table's folder would not tell. What io.pyzorder.publish does with Marker.
"""

from __future__ import annotations

import os
import re

from pyzorder.fallback.stores import TableFolder

_NAME = re.compile(r"_zorder\.(\d+)\.(.+)")


def path(table: TableFolder, run: int, incarnation: str, folder: str) -> str:
    """`day=1` of run 7: `day=1/_zorder.7.<incarnation>`."""
    return f"{table.resolve(folder)}/_zorder.{run}.{incarnation}"


def is_foreign(name: str, incarnation: str) -> bool:
    """Whether a file of that name is a marker of another table, or another life of this one."""
    found = _NAME.fullmatch(name)
    return found is not None and found[2] != incarnation


def left(table: TableFolder, run: int, incarnation: str) -> list[str]:
    """The folders where a run has left its marker: what one that was killed before its RETIRE has
    told nobody. Lists the whole table."""
    name = os.path.basename(path(table, run, incarnation, ""))
    found = []
    for folder, below, files in os.walk(table.root):
        below[:] = [f for f in below if f[0] != "." and (f[0] != "_" or "=" in f)]
        if name in files:
            found.append(folder.removeprefix(table.root).lstrip("/"))
    return found
