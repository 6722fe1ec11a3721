"""Files of the index on a local disk. Each is created atomically by a single writer."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from operator import attrgetter

#: Prefix of the names of incomplete files.
TEMPORARY = "_temporary-"

#: Errors for paths where no file exists, including names that are too long and cycles of links.
_MISSING = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}


def create_if_absent(path: str, data: bytes) -> bool:
    """Creates a file that contains `data`. Also creates missing parent folders from `_zorder` down.

    Each writer creates a hard link at `path` to a complete temporary file. Only one writer
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
        _share(temporary)
        os.link(temporary, path)
        return True
    except FileExistsError:
        return False
    finally:
        remove(temporary)


def linked(path: str) -> bool:
    """Whether a path goes through a symbolic link at or below `_zorder`.

    pyzorder does not create links. Anyone with write access to the folder could create one, and
    redirect readers to arbitrary files.
    """
    parts = path.split("/")
    own = parts.index("_zorder") if "_zorder" in parts else len(parts)
    return any(os.path.islink("/".join(parts[: i + 1])) for i in range(own, len(parts)))


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


def walk(folder: str, above: frozenset[str] = frozenset()) -> Iterator[tuple[str, os.stat_result]]:
    """Yields the path and the status of each regular file below a folder.

    Follows links to folders, as Spark does, but not in cycles.

    Args:
        above: the resolved paths of the folders above this one.
    """
    here = os.path.realpath(folder)
    if here in above or not os.path.isdir(here):
        return
    for entry in sorted(os.scandir(folder), key=attrgetter("name")):
        try:
            seen = None if entry.is_dir() else entry.stat()
        except OSError as failure:
            if is_missing(failure):
                continue
            raise
        if seen is None:
            yield from walk(entry.path, above | {here})
        elif stat.S_ISREG(seen.st_mode):
            yield entry.path, seen


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
        _share(folder)


def _share(made: str) -> None:
    """Gives a new file or folder the permissions, group and owner of its parent, if permitted.

    An index reveals minima and maxima, so only users who may read the table may read its index.
    """
    around, own = os.stat(os.path.dirname(made)), os.stat(made)
    wanted = stat.S_IMODE(around.st_mode)
    if not stat.S_ISDIR(own.st_mode):
        wanted &= 0o666
    with contextlib.suppress(OSError):
        # Restrict the permissions until the file has the folder's group.
        os.chmod(made, stat.S_IMODE(own.st_mode) & wanted)
        if own.st_gid != around.st_gid:
            os.chown(made, -1, around.st_gid)
        os.chmod(made, wanted)
        if own.st_uid != around.st_uid:
            os.chown(made, around.st_uid, -1)
