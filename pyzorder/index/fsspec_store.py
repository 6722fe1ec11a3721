"""A read-only store in an fsspec file system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pyzorder.index.stores import UNKNOWN_TIME, Listing, Stat, check_length

#: The keys under which file systems report when a file was last modified.
_MODIFIED = ("mtime", "LastModified", "last_modified", "updated")

#: The key under which WebHDFS reports a file's modification time, in milliseconds.
_MILLIS = "modificationTime"


class FsspecStore:
    """A read-only store. Its paths have no scheme.

    Attributes:
        system: the file system.
    """

    def __init__(self, system: Any) -> None:
        self.system = system
        self.key = id(system)

    def names(self, folder: str) -> list[str]:
        return sorted(path.rpartition("/")[2] for path in self._listed(folder))

    def files(self, folder: str) -> Listing:
        self.system.invalidate_cache()  # some file systems cache their listings
        try:
            found = self.system.find(folder, detail=True)
        except FileNotFoundError:
            found = {}
        return Listing.of({_below(folder, path): _stat(info) for path, info in found.items()})

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        if length is not None:
            return bytes(self.system.cat_file(path, start=start, end=start + length))
        info = self.system.info(path)
        if info["type"] != "file":
            raise FileNotFoundError(f"{path} is not a file")
        check_length(path, int(info["size"] or 0))
        return bytes(self.system.cat_file(path))

    def stats(self, paths: Iterable[str]) -> dict[str, Stat]:
        found = {}
        for path in paths:
            try:
                info = self.system.info(path)
            except FileNotFoundError:
                continue
            if info["type"] == "file":
                found[path] = _stat(info)
        return found

    def create(self, path: str, data: bytes) -> bool:
        raise NotImplementedError("this store is read-only")

    def remove(self, path: str) -> None:
        raise NotImplementedError("this store is read-only")

    def _listed(self, folder: str) -> list[str]:
        self.system.invalidate_cache()
        try:
            return [str(path).rstrip("/") for path in self.system.ls(folder, detail=False)]
        except (FileNotFoundError, NotADirectoryError):
            return []


def _below(folder: str, path: str) -> str:
    """Returns a file's path, with the folder spelled as in `folder`.

    File systems may add or remove a leading slash.
    """
    return folder.rstrip("/") + path.lstrip("/").removeprefix(folder.strip("/"))


def _stat(info: Mapping[str, Any]) -> Stat:
    """Returns a file's status. Not all file systems report when a file was modified."""
    found = next((info[name] for name in _MODIFIED if info.get(name) is not None), None)
    if isinstance(found, str):
        found = datetime.fromisoformat(found.replace("Z", "+00:00"))
    if isinstance(found, datetime):
        found = found.timestamp()
    modified = UNKNOWN_TIME if found is None else int(float(found) * 1000)
    modified = int(info.get(_MILLIS, modified))
    return Stat(int(info["size"] or 0), modified)
