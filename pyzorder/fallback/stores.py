"""Folders and files of a table's store, as the process that runs this sees them.

A local path has no scheme here: `file:/data/t` is `/data/t`. Other stores are read through
`pyarrow.fs`, and never written to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pyarrow.fs

_LOCAL = re.compile(r"^file:/+")
_WHOLE = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/")


class Stat(NamedTuple):
    """Bytes, and milliseconds since 1970 of the last modification."""

    size: int
    modified: int


class Store(Protocol):
    """What readers need of a store."""

    def names(self, folder: str) -> list[str]:
        """Names in a folder; none if there is no such folder."""

    def read(self, path: str) -> bytes:
        """A file's bytes. Raises OSError."""

    def stats(self, paths: Iterable[str]) -> dict[str, Stat]:
        """Those of the files that exist."""


class LocalStore:
    """The file system of this machine."""

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def stats(self, paths: Iterable[str]) -> dict[str, Stat]:
        found = {}
        for path in paths:
            try:
                seen = os.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            found[path] = Stat(seen.st_size, seen.st_mtime_ns // 1_000_000)
        return found


class ArrowStore:
    """A store that pyarrow knows by the scheme of its addresses."""

    def __init__(self, root: str) -> None:
        self._system, path = pyarrow.fs.FileSystem.from_uri(re.sub("^s3a:", "s3:", root))
        self._cut = len(root) - len(path) if root.endswith(path) else None

    def names(self, folder: str) -> list[str]:
        selector = pyarrow.fs.FileSelector(self._path(folder), allow_not_found=True)
        return sorted(info.base_name for info in self._system.get_file_info(selector))

    def read(self, path: str) -> bytes:
        with self._system.open_input_file(self._path(path)) as file:
            return bytes(file.read())

    def stats(self, paths: Iterable[str]) -> dict[str, Stat]:
        listed = list(paths)
        infos: Any = self._system.get_file_info([self._path(path) for path in listed])
        return {
            path: Stat(info.size, info.mtime_ns // 1_000_000)
            for path, info in zip(listed, infos, strict=True)
            if info.is_file and info.mtime_ns is not None
        }

    def _path(self, address: str) -> str:
        if self._cut is None:
            raise OSError(f"{address} is no path that pyarrow understands")
        return address[self._cut :]


def plain(location: str) -> str:
    """A location as it is written here: without the scheme of local ones, nor a slash at its
    end."""
    return (_LOCAL.sub("/", location).rstrip("/")) or "/"


def is_local(path: str) -> bool:
    """Whether a path, as `plain` gives it, lies on this machine as far as its name tells."""
    return _WHOLE.match(path) is None


def store_of(root: str) -> Store:
    """The store of a path as `plain` gives it. Raises what pyarrow does where it knows none."""
    return LocalStore() if is_local(root) else ArrowStore(root)


@dataclass(frozen=True)
class TableFolder:
    """Names of pyzorder's files in a table's folder; `root` is as `plain` gives it."""

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
        """The file with the random id of this life of the table."""
        return f"{self.zorder}/_incarnation"

    def resolve(self, relative: str) -> str:
        """The path of a data file or folder that the index or journal names."""
        if _WHOLE.match(relative):
            return plain(relative)
        return f"{self.root}/{relative}" if relative else self.root


def leaves(relative: str) -> bool:
    """Whether a name is none of a file in the table's folder: by `..`, or an empty part."""
    parts = f"/{relative}/"
    outside = any(bad in parts for bad in ("//", "/./", "/../"))
    return outside and _WHOLE.match(relative) is None


def folders_above(path: str) -> list[str]:
    """A path, and what is above it while its name looks like `name=value`."""
    found = [path]
    while "=" in path.rsplit("/", 1)[-1] and path.count("/") > 1:
        path = path.rsplit("/", 1)[0]
        found.append(path)
    return found


def is_whole(relative: str) -> bool:
    """Whether a data file's name is its whole path: it lies outside of the table's folder."""
    return _WHOLE.match(relative) is not None
