"""Access to stores from a Spark session.

A classic session uses Hadoop's FileSystem in its JVM, with the session's credentials. A Spark
Connect client has no JVM, and uses the local file system and PyArrow.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyzorder import bridge
from pyzorder.index.stores import Listing, LocalStore, Stat, Store, check_length, is_whole, plain
from pyzorder.index.stores import store_of as store_by_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HadoopStore:
    """Any store that Spark supports, through Hadoop's FileSystem."""

    key = "hadoop"

    def __init__(self, spark: Any, root: str) -> None:
        self._jvm = spark._jvm
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        self._fs = self._path(root).getFileSystem(conf)

    def qualified(self, path: str) -> str:
        """Returns the path with its scheme and authority."""
        return str(self._fs.makeQualified(self._path(path)).toString())

    def names(self, folder: str) -> list[str]:
        return sorted(str(status.getPath().getName()) for status in self._listed(folder))

    def files(self, folder: str) -> Listing:
        found: dict[str, Stat] = {}
        if self._fs.exists(self._path(folder)):
            below = self._fs.listFiles(self._path(folder), True)
            while below.hasNext():
                status = below.next()
                found[str(status.getPath().toString())] = _stat(status)
        return Listing.of(found)

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        if not self._fs.exists(self._path(path)):
            raise FileNotFoundError(path)
        size = self._fs.getFileStatus(self._path(path)).getLen()
        wanted = size - start if length is None else min(length, size - start)
        check_length(path, wanted)
        stream = self._fs.open(self._path(path))
        try:
            stream.seek(start)
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, wanted))
        finally:
            stream.close()

    def stats(self, paths: Iterable[str]) -> dict[str, Stat]:
        wanted = set(paths)
        return {path: stat for path, stat in self._seen(wanted) if path in wanted}

    def create(self, path: str, data: bytes) -> bool:
        if self._fs.exists(self._path(path)):
            return False
        stream = self._fs.create(self._path(path), False)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
        return True

    def remove(self, path: str) -> None:
        self._fs.delete(self._path(path), False)

    def _seen(self, paths: set[str]) -> Iterator[tuple[str, Stat]]:
        """Yields the status of each path that is a file, and possibly the status of other files.

        Folders that contain several of the paths are listed, which is cheaper than requesting the
        status of each path.
        """
        folders = Counter(os.path.dirname(path) for path in paths)
        for path in sorted(p for p in paths if folders[os.path.dirname(p)] == 1):
            if self._fs.exists(self._path(path)):
                yield from self._of([self._fs.getFileStatus(self._path(path))])
        for folder in sorted(f for f, count in folders.items() if count > 1):
            yield from self._of(self._listed(folder))

    @staticmethod
    def _of(found: Iterable[Any]) -> Iterator[tuple[str, Stat]]:
        return ((str(s.getPath().toString()), _stat(s)) for s in found if s.isFile())

    def _listed(self, folder: str) -> list[Any]:
        path = self._path(folder)
        return list(self._fs.listStatus(path)) if self._fs.exists(path) else []

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)


def _stat(status: Any) -> Stat:
    return Stat(int(status.getLen()), int(status.getModificationTime()))


def located(spark: SparkSession, path: str) -> str:
    """Converts a path to the form of pyzorder.index.stores.

    A path without a scheme is in Spark's default store or, for a Connect client, on the local disk.
    """
    if bridge.is_connect(spark):
        return plain(path) if is_whole(plain(path)) else os.path.abspath(plain(path))
    return plain(HadoopStore(spark, path).qualified(path))


def store_of(spark: SparkSession, location: str) -> Store | None:
    """Returns the store of `location`, or None if this process cannot reach it."""
    if not is_whole(location):
        return LocalStore()
    try:
        if bridge.is_connect(spark):
            return store_by_arrow(location)
        return HadoopStore(spark, location)
    except Exception:  # the scheme is not supported, or the store does not respond
        return None
