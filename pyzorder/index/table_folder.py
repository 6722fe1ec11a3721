"""Names of pyzorder's files in a table's folder: sql/FORMAT.md, section "Journal"."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from pyzorder.index.stores import is_whole

_STORE = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?/")

_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")

#: Disks take names of 255 bytes; the dot and `.crc` of Hadoop's checksums are 5 of them.
_LONGEST = 250


@dataclass(frozen=True)
class TableFolder:
    """The folder of a table; `root` is as `stores.plain` gives it."""

    root: str

    @property
    def zorder(self) -> str:
        """The folder of everything that is pyzorder's."""
        return f"{self.root}/_zorder"

    @property
    def index(self) -> str:
        """The folder of pointers and snapshots."""
        return f"{self.zorder}/_index"

    @property
    def journal(self) -> str:
        """The folder of the runs' records."""
        return f"{self.zorder}/_journal"

    @property
    def incarnation(self) -> str:
        """The file with the random id that an overwrite of the whole table ends."""
        return f"{self.zorder}/_incarnation"

    def resolve(self, relative: str) -> str:
        """The path of a data file or folder; what has a scheme is a whole path already."""
        if is_whole(relative):
            return relative
        return f"{self.root}/{relative}" if relative else self.root

    def marker(self, run: int, incarnation: str, folder: str) -> str:
        """The empty file that a run puts into each folder it touches."""
        return f"{self.resolve(folder)}/_zorder.{run}.{incarnation}"

    def staged(self, run: int, relative: str) -> str:
        """Where a run's new file waits until it is moved in."""
        return self._hidden("_staging", run, relative, ".staged")

    def retired(self, run: int, relative: str) -> str:
        """Where a run keeps a file that it replaced."""
        return self._hidden("_retired", run, relative, ".retired")

    def _hidden(self, place: str, run: int, relative: str, suffix: str) -> str:
        *folders, name = relative.split("/")
        below = [*(_bounded("_", part, "") for part in folders), _bounded("_", name, suffix)]
        return f"{self.zorder}/{place}/_{run}/{'/'.join(below)}"


def _bounded(prefix: str, name: str, suffix: str) -> str:
    whole = prefix + name + suffix
    if len(whole.encode()) <= _LONGEST:
        return whole
    return prefix + hashlib.sha256(name.encode()).hexdigest() + suffix


def is_id(incarnation: Any) -> bool:
    """Whether this can be the id of a table's life. Ids become parts of file names, and whoever may
    write into the table's folder can put anything in the place of one."""
    return isinstance(incarnation, str) and _ID.fullmatch(incarnation) is not None


def leaves(relative: str) -> bool:
    """Whether a name leads out of the table's folder, by `..`, or has an empty part. A whole path
    that is spelled so is no name either."""
    parts = f"/{_STORE.sub('', relative)}/"
    if any("\ud800" <= c <= "\udfff" for c in relative):
        return True  # half a character, which JSON can have and no name can
    return "\0" in relative or any(bad in parts for bad in ("//", "/./", "/../"))


def folders_above(path: str) -> list[str]:
    """A path, and what is above it while its name looks like `name=value`."""
    found = [path]
    while "=" in path.rsplit("/", 1)[-1] and path.count("/") > 1:
        path = path.rsplit("/", 1)[0]
        found.append(path)
    return found
