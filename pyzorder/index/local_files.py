"""Files of the index on a local disk, each created whole and by one writer only."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator

#: The names of files begin so until they are complete.
TEMPORARY = "_temporary-"

#: Of names that no file has: too long ones too, and links that lead in a circle.
_MISSING = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}


def create_if_absent(path: str, data: bytes) -> bool:
    """Creates a file with exactly `data`, and the folders below a `_zorder` that it lies in.

    False: the name is taken, nothing was done. A hard link of a complete file has one winner only.
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
    """Whether a symbolic link stands at `_zorder` or below it on the way to a path: pyzorder makes
    none, and whoever may write there could lead readers anywhere."""
    parts = path.split("/")
    own = parts.index("_zorder") if "_zorder" in parts else len(parts)
    return any(os.path.islink("/".join(parts[: i + 1])) for i in range(own, len(parts)))


def strange(root: str, path: str) -> bool:
    """Whether a file, or a folder on the way to it from a table's, is a link of another owner than
    what it leads to: its writer need not have the right to read that, and an index in the table's
    folder must not tell its minima and maxima."""
    parts = path.removeprefix(f"{root}/").split("/")
    links = ["/".join([root, *parts[: i + 1]]) for i in range(len(parts))]
    return any(
        os.path.islink(link) and os.lstat(link).st_uid != os.stat(link).st_uid for link in links
    )


def walk(folder: str, above: frozenset[str] = frozenset()) -> Iterator[str]:
    """The files below a folder. Links to folders are followed, as Spark does, but not in circles.

    `above`: the folders on the way here, without links.
    """
    here = os.path.realpath(folder)
    if here in above or not os.path.isdir(here):
        return
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if _is_folder(entry):
            yield from walk(f"{folder}/{entry.name}", above | {here})
        else:
            yield f"{folder}/{entry.name}"


def is_missing(failure: OSError) -> bool:
    """Whether a path could not be looked up because nothing is there."""
    return failure.errno in _MISSING


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as failure:
        if is_missing(failure):
            return False
        raise


def remove(path: str) -> None:
    """Deletes a file, if there is one."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.remove(path)


def _make_folder(folder: str) -> None:
    """Makes a folder, with those on the way but not what holds `_zorder`: the table's folder may
    just have been dropped, and must not come back. Raises FileNotFoundError then."""
    if os.path.isdir(folder):
        return
    if os.path.basename(folder) != "_zorder":
        _make_folder(os.path.dirname(folder))
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
        _share(folder)


def _share(made: str) -> None:
    """Gives a new file the permissions, group and owner of the folder around it, as far as
    possible: an index tells minima and maxima to those who may read the table, and nobody else."""
    around, own = os.stat(os.path.dirname(made)), os.stat(made)
    wanted = stat.S_IMODE(around.st_mode)
    if not stat.S_ISDIR(own.st_mode):
        wanted &= 0o666
    with contextlib.suppress(OSError):
        # Narrowed first: a file must not be open to a group that it is about to lose.
        os.chmod(made, stat.S_IMODE(own.st_mode) & wanted)
        if own.st_gid != around.st_gid:
            os.chown(made, -1, around.st_gid)
        os.chmod(made, wanted)
        if own.st_uid != around.st_uid:
            os.chown(made, around.st_uid, -1)
