"""Access to the folders and files of a table's store.

Local paths are written without a scheme. For example, `file:/data/t` is written as `/data/t`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import pyarrow.fs

from pyzorder import errors
from pyzorder.index import local_files

_LOCAL = re.compile(r"^file:/+")
_WHOLE = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/")


#: Maximum size in bytes of the pyzorder files that are read as a whole.
LONGEST = 256 << 20


#: Stands for the modification time of a file if the store does not report it. No index entry has
#: this value.
UNKNOWN_TIME = -1


def check_length(path: str, length: int) -> None:
    """Raises FileNotFoundError if a file is longer than any that pyzorder writes."""
    if length > LONGEST:
        raise FileNotFoundError(f"{path} is too large to be a pyzorder file")


class Stat(NamedTuple):
    """A file's size in bytes, and its modification time in milliseconds since the epoch."""

    size: int
    modified: int


class Listing(NamedTuple):
    """The files below a folder, one element per file in each list.

    A folder may contain so many files that creating an object for each of them would take too long.
    """

    paths: list[str]
    sizes: list[int]
    times: list[int]

    @classmethod
    def of(cls, stats: Mapping[str, Stat]) -> Listing:
        """Returns a listing of the files whose statuses are given, keyed by path."""
        return cls(
            list(stats), [s.size for s in stats.values()], [s.modified for s in stats.values()]
        )


class Store(Protocol):
    """The operations that the index needs from a store."""

    @property
    def key(self) -> Hashable:
        """A key that two stores share only if every path refers to the same file in both."""

    def names(self, folder: str) -> list[str]:
        """Lists the names in a folder. Returns an empty list if the folder does not exist."""

    def files(self, folder: str) -> Listing:
        """Lists the files below a folder in any order. May omit files in hidden folders."""

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        """Reads a file from `start` to its end. If `length` is given, reads at most `length` bytes.

        Raises:
            FileNotFoundError: there is no such file, or the path is not a regular file.
            OSError: reading fails.
        """

    def stats(self, paths: Iterable[str]) -> dict[str, Stat]:
        """Returns the status of each file that exists, keyed by path."""

    def create(self, path: str, data: bytes) -> bool:
        """Creates a file with these bytes, unless the name is taken.

        On a local disk, only one of several writers succeeds, and readers never see a partial
        file. On other stores, use this method only in folders that nobody else writes to.

        Returns:
            False if the name is taken. The existing file is left unchanged.
        """

    def remove(self, path: str) -> None:
        """Deletes a file if it exists."""


class LocalStore:
    """The local file system. Paths through symbolic links in `_zorder` are treated as missing."""

    key = "local"

    def names(self, folder: str) -> list[str]:
        if local_files.linked(folder):
            return []
        try:
            return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def files(self, folder: str) -> Listing:
        found = Listing([], [], [])
        for paths, sizes, times in local_files.statuses(folder):
            found.paths.extend(paths)
            found.sizes.extend(sizes)
            found.times.extend(times)
        return found

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        if local_files.linked(path):
            raise FileNotFoundError(f"{path} is a symbolic link")
        if path not in self.stats([path]):
            raise FileNotFoundError(f"{path} is not a file")
        # Without O_NONBLOCK, this would block forever if a named pipe has just taken its place.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise FileNotFoundError(f"{path} is not a file")
            file.seek(start)
            data = file.read(LONGEST + 1 if length is None else length)
        check_length(path, len(data))
        return data

    def stats(self, paths: Iterable[str]) -> dict[str, Stat]:
        found = {}
        for path in paths:
            if local_files.linked(path):
                continue
            try:
                seen = os.stat(path)
            except OSError as failure:
                if local_files.is_missing(failure):
                    continue
                raise
            if stat.S_ISREG(seen.st_mode):
                found[path] = Stat(seen.st_size, seen.st_mtime_ns // 1_000_000)
        return found

    def create(self, path: str, data: bytes) -> bool:
        if local_files.linked(path):
            raise errors.linked(path)
        return local_files.create_if_absent(path, data)

    def remove(self, path: str) -> None:
        if not local_files.linked(os.path.dirname(path)):
            local_files.remove(path)


class ArrowStore:
    """A store that PyArrow supports, chosen by the scheme of the path.

    Attributes:
        system: PyArrow's file system.
        scheme: the scheme, which is removed from paths that are passed to the file system.
    """

    def __init__(self, root: str, system: pyarrow.fs.FileSystem | None = None) -> None:
        """Connects to the store of `root`.

        Args:
            system: the file system, if it is known. Paths are then passed to it as they are.

        Raises PyArrow's error if PyArrow does not support the store, or cannot reach it.
        """
        self.scheme = ""
        self.system: Any = system
        self.key = "arrow" if system is None else id(system)
        if system is None:
            self.system, path = pyarrow.fs.FileSystem.from_uri(re.sub("^s3a:", "s3:", root))
            if not root.endswith(path):
                raise OSError(f"{root} is not a path that PyArrow understands")
            self.scheme = root[: len(root) - len(path)]

    def names(self, folder: str) -> list[str]:
        selector = pyarrow.fs.FileSelector(self._path(folder), allow_not_found=True)
        try:
            return sorted(info.base_name for info in self.system.get_file_info(selector))
        except NotADirectoryError:
            return []

    def files(self, folder: str) -> Listing:
        selector = pyarrow.fs.FileSelector(self._path(folder), allow_not_found=True, recursive=True)
        infos = self.system.get_file_info(selector)
        return Listing.of(self._stats((self.scheme + info.path, info) for info in infos))

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        try:
            opened = self.system.open_input_file(self._path(path))
        except OSError as failure:
            if path in self.stats([path]):
                raise
            raise FileNotFoundError(f"{path} is not a file") from failure
        with opened as file:
            check_length(path, file.size() if length is None else length)
            file.seek(start)
            return bytes(file.read(length))

    def stats(self, paths: Iterable[str]) -> dict[str, Stat]:
        listed = list(paths)
        infos = self.system.get_file_info([self._path(path) for path in listed])
        return self._stats(zip(listed, infos, strict=True))

    def create(self, path: str, data: bytes) -> bool:
        if self.stats([path]):
            return False
        target = self._path(path)
        self.system.create_dir(os.path.dirname(target), recursive=True)
        with self.system.open_output_stream(target) as file:
            file.write(data)
        return True

    def remove(self, path: str) -> None:
        if self.stats([path]):
            self.system.delete_file(self._path(path))

    def _path(self, address: str) -> str:
        return address[len(self.scheme) :]

    @staticmethod
    def _stats(found: Iterable[tuple[str, Any]]) -> dict[str, Stat]:
        return {
            path: Stat(
                info.size,
                UNKNOWN_TIME if info.mtime_ns is None else info.mtime_ns // 1_000_000,
            )
            for path, info in found
            if info.is_file
        }


def plain(location: str) -> str:
    """Normalizes a location: local paths lose their scheme, and trailing slashes are removed."""
    return (_LOCAL.sub("/", location).rstrip("/")) or "/"


def is_whole(path: str) -> bool:
    """Whether a path begins with a scheme."""
    return _WHOLE.match(path) is not None


def store_of(root: str) -> Store:
    """Returns the store of `root`, a path in the form that `plain` returns.

    Raises PyArrow's error if PyArrow does not support the store.
    """
    return ArrowStore(root) if is_whole(root) else LocalStore()
