"""Files on a local disk. Each file of the index is created atomically, by a single writer."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyarrow.fs import FileInfo, LocalFileSystem

#: Prefix of the names of incomplete files.
TEMPORARY = "_temporary-"

#: Number of files whose status is read at once, and number of threads that read the statuses.
_CHUNK, _THREADS = 10_000, 2

#: The maximum number of folders that are reached through symbolic links.
_MOST_LINKED = 10_000

_SYSTEM = LocalFileSystem()

#: Errors for paths where no file exists, including paths with names that are too long and paths
#: through cycles of links.
_MISSING = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}


def create_if_absent(path: str, data: bytes) -> bool:
    """Creates a file that contains `data`. Also creates missing parent folders from `_zorder` down.

    Each writer tries to create a hard link at `path` to a complete temporary file. Only one writer
    succeeds.

    Returns:
        False if the name is taken. The existing file is left unchanged.
    """
    folder = os.path.dirname(path)
    _make_folder(folder)
    temporary = os.path.join(folder, f"{TEMPORARY}{uuid.uuid4()}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            _share(file.fileno(), folder)
        os.link(temporary, path)
        return True
    except FileExistsError:
        return False
    finally:
        remove(temporary)


def linked(path: str) -> bool:
    """Whether a path goes through a symbolic link at or below `_zorder`.

    pyzorder does not create links. Anyone with write access to the folder could create one and
    thereby redirect readers to arbitrary files.
    """
    parts = path.split("/")
    own = parts.index("_zorder") if "_zorder" in parts else len(parts)
    return any(os.path.islink("/".join(parts[: i + 1])) for i in range(own, len(parts)))


def is_hidden_name(name: str) -> bool:
    """Whether Spark ignores files and folders with this name."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def is_special(path: str) -> bool:
    """Whether there is something other than a regular file at a path. Opening a named pipe would
    block forever."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def strange(root: str, path: str) -> bool:
    """Whether the path from a table's folder to a file contains a link with a foreign target.

    A target is foreign if its owner is not the owner of the link. The link's owner might not be
    allowed to read the target, and the table's index must not reveal the target's minima and
    maxima.
    """
    parts = path.removeprefix(f"{root}/").split("/")
    links = ["/".join([root, *parts[: i + 1]]) for i in range(len(parts))]
    return any(
        os.path.islink(link) and os.lstat(link).st_uid != os.stat(link).st_uid for link in links
    )


def strange_link(folder: str) -> str | None:
    """Returns a link with a foreign target (see `strange`) that Spark would follow to infer the
    schema of a folder: a data file, a summary file of Parquet, or a folder."""
    for path, entries in _walk(folder):
        for entry in entries:
            if _is_read(entry.name) and os.path.exists(entry.path) and strange(path, entry.path):
                return entry.path
    return None


def _is_read(name: str) -> bool:
    return name in ("_metadata", "_common_metadata") or not is_hidden_name(name)


def statuses(folder: str) -> Iterator[tuple[list[str], list[int], list[int]]]:
    """Yields paths, sizes and modification times (in ms) of the regular files below a folder.

    Follows links to folders, as Spark does, unless they form a cycle. Each step yields many files
    at once, because yielding them one by one would take longer.
    """
    entries = _entries(folder)
    chunks = [entries[i : i + _CHUNK] for i in range(0, len(entries), _CHUNK)]
    if len(chunks) < 2:
        yield _one_by_one(entries)
        return
    with ThreadPoolExecutor(_THREADS) as pool:
        for chunk, infos in zip(chunks, pool.map(_infos, chunks), strict=True):
            if infos is None:
                yield _one_by_one(chunk)
            else:
                paths = [entry.path for entry in chunk]
                times = [info.mtime_ns // 1_000_000 for info in infos]
                yield paths, [info.size for info in infos], times


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Returns everything below a folder, except folders and the contents of hidden folders."""
    return [entry for _, entries in _walk(folder) for entry in entries if not _is_folder(entry)]


def _walk(folder: str) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """Yields the path and the contents of a folder and of each folder below it, except of hidden
    folders and of cycles of links. Folders may be nested more deeply than Python's calls.

    Raises:
        OSError: links lead to the same folders in more than `_MOST_LINKED` ways. A few links can
            lead to a folder in billions of ways.
    """
    linked = 0
    top = here = os.path.realpath(folder)
    # A folder's path, its path without links, and the latter for the folders above it
    pending: list[tuple[str, str, frozenset[str]]] = [(folder, here, frozenset())]
    while pending:
        path, here, above = pending.pop()
        if here in above or not os.path.isdir(path):
            continue
        linked += path[len(folder) :] != here[len(top) :]
        if linked > _MOST_LINKED:
            raise OSError(errno.ELOOP, "too many folders are reached through symbolic links", path)
        with os.scandir(path) as listed:
            entries = list(listed)
        yield path, entries
        inner = above | {here}
        for entry in entries:
            if _is_folder(entry) and not is_hidden_name(entry.name):
                is_link = entry.is_symlink()
                own = os.path.realpath(entry.path) if is_link else f"{here}/{entry.name}"
                pending.append((entry.path, own, inner))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a cycle of links, for example
        return False


def _infos(entries: Sequence[os.DirEntry[str]]) -> list[FileInfo] | None:
    """Returns the statuses of files, or None if the files must be examined one by one.

    PyArrow releases the GIL, so threads can do this in parallel.
    """
    try:
        found: list[FileInfo] = _SYSTEM.get_file_info([entry.path for entry in entries])
    except (OSError, UnicodeError):  # a status cannot be read, or a name is not UTF-8
        return None
    return None if any(info.size is None for info in found) else found  # not a regular file


def _one_by_one(
    entries: Sequence[os.DirEntry[str]],
) -> tuple[list[str], list[int], list[int]]:
    found = []
    for entry in entries:
        try:
            seen = entry.stat()
        except OSError as failure:
            if is_missing(failure):
                continue
            raise
        if stat.S_ISREG(seen.st_mode):
            found.append((entry.path, seen.st_size, seen.st_mtime_ns // 1_000_000))
    return [one[0] for one in found], [one[1] for one in found], [one[2] for one in found]


def is_missing(failure: OSError) -> bool:
    """Whether an error means that nothing exists at the path."""
    return failure.errno in _MISSING


def remove(path: str) -> None:
    """Deletes a file if it exists."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.remove(path)


def _make_folder(folder: str) -> None:
    """Creates a folder and its parents up to `_zorder`, but not the table's folder.

    If the table's folder is missing, the table may have been dropped, and its folder must not be
    recreated. In that case, this function raises FileNotFoundError.
    """
    if os.path.isdir(folder):
        return
    if os.path.basename(folder) != "_zorder":
        _make_folder(os.path.dirname(folder))
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
        with contextlib.suppress(OSError):
            made = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                _share(made, os.path.dirname(folder))
            finally:
                os.close(made)


def _share(made: int, folder: str) -> None:
    """Gives a new file or folder the permissions, group and owner of its parent, if permitted.

    An index reveals minima and maxima, so only users who may read the table may read its index.

    Args:
        made: an open descriptor. Another user could replace the new file's name by a link to a file
            outside the table's folder.
        folder: the path of the parent.
    """
    around, own = os.stat(folder), os.fstat(made)
    wanted = stat.S_IMODE(around.st_mode)
    if not stat.S_ISDIR(own.st_mode):
        wanted &= 0o666
    with contextlib.suppress(OSError):
        # Restrict the permissions until the file has the folder's group.
        os.fchmod(made, stat.S_IMODE(own.st_mode) & wanted)
        if own.st_gid != around.st_gid:
            os.fchown(made, -1, around.st_gid)
        os.fchmod(made, wanted)
        if own.st_uid != around.st_uid:
            os.fchown(made, around.st_uid, -1)
