"""Names of pyzorder's files in a table's folder (sql/FORMAT.md, section "Journal")."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from pyzorder.index.stores import is_whole

_STORE = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?/")

_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")

#: Maximum length of a file name in bytes. File systems allow 255, but the names of Hadoop's
#: checksum files are 5 bytes longer: they add a leading dot and `.crc`.
_LONGEST = 250


@dataclass(frozen=True)
class TableFolder:
    """The folder of a table. `root` is a path in the form that `stores.plain` returns."""

    root: str

    @property
    def zorder(self) -> str:
        """The folder with all of pyzorder's files."""
        return f"{self.root}/_zorder"

    @property
    def index(self) -> str:
        """The folder with pointers and snapshots."""
        return f"{self.zorder}/_index"

    @property
    def journal(self) -> str:
        """The folder with the runs' records."""
        return f"{self.zorder}/_journal"

    @property
    def incarnation(self) -> str:
        """The file with the incarnation id. Overwriting the whole table deletes this file."""
        return f"{self.zorder}/_incarnation"

    def resolve(self, relative: str) -> str:
        """Returns the path of a data file or folder. Paths with a scheme are already absolute."""
        if is_whole(relative):
            return relative
        return f"{self.root}/{relative}" if relative else self.root

    def relative(self, path: str) -> str:
        """Returns a data file's path relative to the table's folder. This inverts `resolve`.

        A file in a folder that is named like a scheme, such as `file:`, keeps its absolute path,
        because its relative path would look like an absolute path.
        """
        name = path.removeprefix(f"{self.root}/")
        if not is_whole(name):
            return name
        return path if is_whole(path) else f"file:{path}"

    def marker(self, run: int, incarnation: str, folder: str) -> str:
        """Returns the path of the empty file that a run creates in each folder it changes."""
        return f"{self.resolve(folder)}/_zorder.{run}.{incarnation}"

    def staged(self, run: int, relative: str) -> str:
        """Returns the path of a run's new file before it is moved into place."""
        return self._hidden("_staging", run, relative, ".staged")

    def retired(self, run: int, relative: str) -> str:
        """Returns the path to which a run moves a file that it has replaced."""
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
    """Whether a value is a valid incarnation id.

    Ids become parts of file names, and anyone with write access to the table's folder can replace
    an id with arbitrary text.
    """
    return isinstance(incarnation, str) and _ID.fullmatch(incarnation) is not None


def leaves(relative: str) -> bool:
    """Whether a name is unsafe, because its `..` parts could lead outside the table's folder.

    Names with empty or `.` parts, NUL characters or lone surrogates are also unsafe. The same rules
    apply to absolute paths.
    """
    parts = f"/{_STORE.sub('', relative)}/"
    if any("\ud800" <= c <= "\udfff" for c in relative):
        return True  # a lone surrogate, which is possible in JSON but not in a file name
    return "\0" in relative or any(bad in parts for bad in ("//", "/./", "/../"))


def folders_above(path: str) -> list[str]:
    """Returns a path and its ancestors, up to the first one that is not named `name=value`."""
    found = [path]
    while "=" in path.rsplit("/", 1)[-1] and path.count("/") > 1:
        path = path.rsplit("/", 1)[0]
        found.append(path)
    return found
