"""Reads and changes a table's folder on any store, through Hadoop's FileSystem."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


class Folder:
    """A folder on any store. Its methods do what other programs may do to a table."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        self.spark = spark
        self.url = url
        self._hadoop: Any = spark._jvm.org.apache.hadoop
        self._root = self._hadoop.fs.Path(url)
        self.conf = spark._jsparkSession.sessionState().newHadoopConf()
        self._fs = self._root.getFileSystem(self.conf)

    @property
    def scheme(self) -> str:
        return str(self._fs.getUri().getScheme())

    def path(self, name: str = "") -> Any:
        """The Hadoop path of a file or subfolder. By default, the path of the folder itself."""
        return self._hadoop.fs.Path(f"{self.url}/{name}") if name else self._root

    def everything(self) -> dict[str, tuple[int, int]]:
        """The size and modification time of each file below the folder. The keys are the files'
        relative paths."""
        if not self._fs.exists(self._root):
            return {}
        prefix = self._fs.makeQualified(self._root).toString() + "/"
        found, files = {}, self._fs.listFiles(self._root, True)
        while files.hasNext():
            status = files.next()
            name = status.getPath().toString().removeprefix(prefix)
            found[name] = (status.getLen(), status.getModificationTime())
        return found

    def data(self) -> list[str]:
        """The names of the data files that any engine would list."""
        return sorted(
            name
            for name in self.everything()
            if not any(part[0] in "_." for part in name.split("/"))
        )

    def pyzorder_files(self, suffix: str = "") -> list[str]:
        """The names of pyzorder's files that end in `suffix`. By default, the names of all of
        pyzorder's files."""
        return sorted(n for n in self.everything() if "_zorder" in n and n.endswith(suffix))

    def copy(self, name: str, to: str) -> None:
        """Copies a file. A copy is the first step of a rename on S3."""
        copied = self._hadoop.fs.FileUtil.copy(
            self._fs, self.path(name), self._fs, self.path(to), False, True, self.conf
        )
        assert copied

    def read(self, name: str) -> bytes:
        """Returns a file's bytes."""
        stream = self._fs.open(self.path(name))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Writes a file with the given content. Replaces an existing file of the same name."""
        stream = self._fs.create(self.path(name), True)
        stream.write(bytearray(content))
        stream.close()

    def move(self, name: str, to: Any) -> None:
        """Moves a file to a path. Creates the path's folder if it does not exist."""
        self._fs.mkdirs(to.getParent())
        assert self._fs.rename(self.path(name), to)

    def remove(self, name: str) -> None:
        """Deletes a file."""
        assert self._fs.delete(self.path(name), False)

    def delete(self) -> None:
        """Deletes the folder and everything in it."""
        self._fs.delete(self._root, True)
