"""Finds a table's data files for engines other than Spark, using the journal.

The table has the same files as in Spark, which ignores empty and hidden files. If the table has
partition columns, Spark also ignores files directly in the table's folder. If it has no partition
columns, Spark also ignores the files in subfolders.
"""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, wraps
from itertools import islice
from typing import Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa
import pyarrow.fs

from pyzorder.engines import failures
from pyzorder.engines.partitions import PartitionColumn, partition_columns
from pyzorder.engines.staleness import covered_files
from pyzorder.index import (
    Snapshot,
    Store,
    TableFolder,
    VisibleFile,
    VisibleFiles,
    latest,
    visible_files,
)
from pyzorder.index.fsspec_store import FsspecStore
from pyzorder.index.parquet import footer_checks
from pyzorder.index.stores import ArrowStore, LocalStore, is_whole, plain, store_of
from pyzorder.index.table_folder import folders_above
from pyzorder.index.visible_files import KeepsChanging

_Path = str | os.PathLike[str]
_P = ParamSpec("_P")
_T = TypeVar("_T")

#: Names that mark the folders of other table formats.
_FOREIGN = {"_delta_log": "Delta", ".hoodie": "Hudi"}

#: File name extensions of formats other than Parquet and ORC. The files may be compressed.
_OTHER_FORMAT = re.compile(
    r"\.(avro|csv|json|jsonl|ndjson|tsv|txt|xml)(\.(bz2|deflate|gz|lz4|snappy|xz|zst))?$",
    re.IGNORECASE,
)

#: The ending that Hadoop adds to the names of files while it copies them.
_COPYING = "._COPYING_"


@dataclass(frozen=True)
class Table:
    """A table's files at one point in time.

    Attributes:
        location: the folder that was opened, in the form that `stores.plain` returns. It may be the
            folder of a partition.
        folder: the folder with the journal and index.
        store: the store of the files.
        files: the data files, sorted by path.
        partitions: the partition columns.
        snapshot: the index, or None if there is no usable index.
    """

    location: str
    folder: TableFolder
    store: Store
    files: VisibleFiles
    partitions: list[PartitionColumn]
    snapshot: Snapshot | None

    @cached_property
    def folders(self) -> list[str]:
        """The folder of each file, relative to `location`."""
        start = len(self.folder.resolve("")) + 1
        inside = self.location[start:]
        cut = len(inside) + 1 if inside else 0
        paths = self.files.paths
        if "/" not in self.files.text:
            return [""] * len(paths)
        found = [path.rpartition("/")[0] for path in paths]
        return [folder[cut:] for folder in found] if cut else found


def opening(function: Callable[Concatenate[_Path, _P], _T]) -> Callable[Concatenate[_Path, _P], _T]:
    """Decorates a function whose first argument is a table's path (see `_opening`)."""

    @wraps(function)
    def opened(path: _Path, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        with _opening(path):
            return function(path, *args, **kwargs)

    return opened


@contextmanager
def _opening(path: str | os.PathLike[str]) -> Iterator[None]:
    """Reports failures of the store as pyzorder's errors. Pauses garbage collection, which would
    otherwise visit all listed files repeatedly."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    except PermissionError as failure:
        reason = failure.strerror or str(failure)
        raise failures.not_readable(failure.filename or os.fspath(path), reason) from failure
    except KeepsChanging as failure:
        raise failures.keeps_changing(os.fspath(path)) from failure
    except (OSError, UnicodeError, pa.ArrowException) as failure:
        raise failures.store_failed(os.fspath(path), failure) from failure
    finally:
        if was_enabled:
            gc.enable()


def open_table(path: str | os.PathLike[str], filesystem: Any, staleness: float) -> Table:
    """Finds the files of a table.

    Args:
        path: the table's folder, or the folder of one of its partitions.
        filesystem: the PyArrow or fsspec file system that contains the path; None for a local path
            or a URI.
        staleness: the maximum age in seconds of the index's information about the files; 0 to list
            the files.

    Raises:
        ZOrderError: the folder is missing, belongs to a table in another format, or cannot be
            reached.
    """
    location, folder, store = locate(path, filesystem)
    known = covered_files(store, folder, staleness) if staleness else None
    if known is None:
        check_plain(store, folder.root, location)
        with ThreadPoolExecutor(1) as pool:  # the listing and the index need not match
            snapshot = pool.submit(latest, store, folder)
            known = visible_files(store, folder), snapshot.result()
    files, index = known
    if files and index is None and has_other_format(files.paths):
        raise failures.other_format(location)
    if not files and not isinstance(store, LocalStore) and not store.names(location):
        raise failures.path_not_found(location)
    return table_of(location, folder, store, files, index)


def has_other_format(paths: Iterable[str]) -> bool:
    """Whether the first thousand names of a table's files are those of neither Parquet nor ORC
    files."""
    return all(map(_OTHER_FORMAT.search, islice(paths, 1000)))


def locate(path: str | os.PathLike[str], filesystem: Any) -> tuple[str, TableFolder, Store]:
    """Returns a table's location, the folder with its journal and index, and its store.

    The arguments are those of `open_table`.
    """
    location = _located(os.fspath(path), filesystem)
    store = _store(location, filesystem)
    return location, _folder(store, location), store


def table_of(
    location: str,
    folder: TableFolder,
    store: Store,
    files: VisibleFiles,
    snapshot: Snapshot | None,
) -> Table:
    """Returns the table at a location, with the visible files that belong to it."""
    if location != folder.root:
        inside = folder.relative(location) + "/"
        files = files.only([path.startswith(inside) for path in files.paths])
    if not files.sizes.all():
        files = files.only(files.sizes > 0)
    if f"{_COPYING}\n" in files.text:
        files = files.only([not path.endswith(_COPYING) for path in files.paths])
    table = Table(location, folder, store, files, [], snapshot)
    found = dict.fromkeys(table.folders)
    partitions = partition_columns(location, list(found))
    wanted = set(partitions[0].values) if partitions else {""}
    if found.keys() <= wanted:
        table.partitions.extend(partitions)
        return table
    kept = files.only([own in wanted for own in table.folders])
    return Table(location, folder, store, kept, partitions, snapshot)


def _located(path: str, filesystem: Any) -> str:
    if not path:
        raise failures.path_not_found(path)
    location = plain(path)
    is_remote = filesystem is not None and not _is_local(filesystem)
    if is_remote or is_whole(location):
        return location
    return os.path.abspath(location)


def _is_local(filesystem: Any) -> bool:
    """Whether a file system has the same paths as the local disk. Only LocalStore checks links and
    pipes, which exist only there."""
    if isinstance(filesystem, pyarrow.fs.FileSystem):
        return isinstance(filesystem, pyarrow.fs.LocalFileSystem)
    protocol = getattr(filesystem, "protocol", ())
    return "file" in ((protocol,) if isinstance(protocol, str) else protocol)


def _store(location: str, filesystem: Any) -> Store:
    try:
        if filesystem is None or _is_local(filesystem):
            return store_of(location)
        if isinstance(filesystem, pyarrow.fs.FileSystem):
            return ArrowStore(location, filesystem)
        if not hasattr(filesystem, "find"):
            raise TypeError("the argument filesystem is not a PyArrow or fsspec file system")
        return FsspecStore(filesystem)
    except Exception as failure:  # each file system raises different errors
        raise failures.unreachable(location, str(failure).rstrip(".")) from failure


def _folder(store: Store, location: str) -> TableFolder:
    """Returns the folder with the journal and index. It may be above a partition's folder."""
    for path in folders_above(location):
        if {"_index", "_journal"} & set(store.names(f"{path}/_zorder")):
            return TableFolder(path)
    return TableFolder(location)


def check_plain(store: Store, root: str, location: str) -> None:
    """Raises a ZOrderError unless the path is the folder of a plain table."""
    if isinstance(store, LocalStore) and not os.path.isdir(location):
        exists = os.path.exists(location)
        raise failures.single_file(location) if exists else failures.path_not_found(location)
    for name, format in _FOREIGN.items():
        if store.names(f"{root}/{name}"):
            raise failures.foreign(root, format)
    if store.names(f"{root}/_spark_metadata"):
        raise failures.streaming_sink(root)


def place_of(file: VisibleFile) -> str:
    """Returns the path from which an engine reads a file.

    Raises:
        ZOrderError: the path is not valid UTF-8.
    """
    if not file.has_text_name:
        shown = os.fsencode(file.path).decode("utf-8", "backslashreplace")
        raise failures.unreadable(shown, failures.NOT_TEXT)
    return file.place


def check_schema(table: Table, file: VisibleFile) -> None:
    """Checks the schema of a Parquet file on a local disk (see `footer_checks.check_schema`)."""
    if isinstance(table.store, LocalStore):
        footer_checks.check_schema(place_of(file))


def arrow_system(table: Table) -> tuple[pyarrow.fs.FileSystem, int]:
    """Returns PyArrow's file system for a table, and the length of the scheme in its paths."""
    if isinstance(table.store, ArrowStore):
        return table.store.system, len(table.store.scheme)
    if isinstance(table.store, FsspecStore):
        return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(table.store.system)), 0
    return pyarrow.fs.LocalFileSystem(), 0
