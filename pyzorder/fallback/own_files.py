"""Makes folders and files below `_zorder` on a local disk, each whole and by one writer only.

What io.pyzorder.publish does with OwnFiles, CreateIfAbsent and MoveFile, for the scheme `file`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import time
import uuid

#: How the names begin that files have until they are complete.
TEMPORARY = "_temporary-"

#: Seconds without a change after which a folder is nobody's, and how often they are waited for.
_MOMENT, _MOMENTS = 0.5, 4


def make_folder(folder: str) -> None:
    """Makes a folder at or below a `_zorder`, with those on the way but not what holds it.

    Raises FileNotFoundError: the table's folder is gone.
    """
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    if os.path.basename(folder) != "_zorder":
        make_folder(parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
        share(folder)


def share(made: str) -> None:
    """Gives what was just made the permissions, group and owner of the folder around it, as far as
    it may: what index and journal tell is for those whom the table is for."""
    around, own = os.stat(os.path.dirname(made)), os.stat(made)
    wanted = stat.S_IMODE(around.st_mode)
    if not stat.S_ISDIR(own.st_mode):
        wanted &= 0o666
    with contextlib.suppress(OSError):
        # First those who must not: a file with a stranger's group is not opened to that group.
        os.chmod(made, stat.S_IMODE(own.st_mode) & wanted)
        if own.st_gid != around.st_gid:
            os.chown(made, -1, around.st_gid)
        os.chmod(made, wanted)
        if own.st_uid != around.st_uid:
            os.chown(made, around.st_uid, -1)


def create_if_absent(path: str, data: bytes) -> bool:
    """Creates a file with exactly `data`; nobody ever sees a part of it.

    False: the name is taken, nothing was done. A hard link is what can have one winner only.
    """
    temporary = os.path.join(os.path.dirname(path), f"{TEMPORARY}{uuid.uuid4()}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        share(temporary)
        os.link(temporary, path)
        return True
    except FileExistsError:
        return False
    finally:
        remove(temporary)


def fitting(prefix: str, name: str, suffix: str) -> str:
    """`name` between the other two; where that is too long, the SHA-256 of it, in hexadecimal.

    Disks take 255 bytes; the dot and `.crc` of Hadoop's checksums are 5 of them.
    """
    whole = prefix + name + suffix
    if fits(whole):
        return whole
    return prefix + hashlib.sha256(name.encode()).hexdigest() + suffix


def fits(name: str) -> bool:
    """Whether a file of that name can have one with a checksum beside it."""
    return len(name.encode()) <= 250


def move(source: str, target: str) -> str:
    """Moves a file without ever replacing another; may be repeated after a kill at any moment.

    It is seen under one of its names at every moment. Gives "moved" (now or before), "gone",
    "taken" (another file has the new name), or "no folder".
    """
    # Hadoop's own checksum file of a file that has moved would lie about it.
    folder, name = os.path.split(source)
    if fits(name):
        remove(os.path.join(folder, f".{name}.crc"))
    try:
        _link_or_rename(source, target)
    except FileExistsError:
        if os.path.exists(source) and not os.path.samefile(source, target):
            return "taken"
    except FileNotFoundError:
        if os.path.exists(source):
            return "no folder"
        return "moved" if os.path.exists(target) else "gone"
    remove(source)
    return "moved"


def _link_or_rename(source: str, target: str) -> None:
    """A link, which never replaces; a rename where links are not allowed, as of another user's
    file or on some mounted stores."""
    try:
        os.link(source, target)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:
        if os.path.exists(target):
            raise FileExistsError(target) from None
        os.rename(source, target)


def is_full(failure: OSError) -> bool:
    """Whether there was no room left, or a quota was used up."""
    return failure.errno in (errno.ENOSPC, errno.EDQUOT)


def remove_empty(folder: str) -> None:
    """Deletes a folder, if there is one and nothing is in it."""
    with contextlib.suppress(OSError):  # it is gone, or holds something
        os.rmdir(folder)


def remove_unused(folder: str) -> None:
    """Deletes an empty folder when nobody changes it for a moment; waits for that a few moments."""
    for _ in range(_MOMENTS):
        before = _changed(folder)
        if before is None:
            return
        time.sleep(_MOMENT)
        if _changed(folder) == before:
            remove_empty(folder)
            return


def _changed(folder: str) -> int | None:
    try:
        return os.stat(folder).st_mtime_ns
    except FileNotFoundError:
        return None


def remove(path: str) -> None:
    """Deletes a file, if there is one."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.remove(path)
