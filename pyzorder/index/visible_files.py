"""The data files that make up a table, determined from a listing of its folder and the journal.

The rules are those of the Scala class Overlay, which explains why no file is missed. A file that is
moved gets its new name before it loses the old one. If the journal did not change during the
listing, the direction in which files were moving is known.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from pyzorder.index.journal import FileRef, JournalState, Overlay
from pyzorder.index.local_files import is_hidden_name
from pyzorder.index.stores import Stat, Store
from pyzorder.index.table_folder import TableFolder

_TRIES = 50

Numbers = npt.NDArray[np.int64]


class VisibleFile(NamedTuple):
    """A data file of a table.

    Attributes:
        path: its path relative to the table's folder. The index identifies the file by this path.
        place: the full path to read it from. While a run is unfinished, this may be a path in
            `_zorder/_staging` or `_zorder/_retired`.
        size: its size in bytes.
        modified: its modification time in milliseconds since the epoch.
    """

    path: str
    place: str
    size: int
    modified: int

    @property
    def has_text_name(self) -> bool:
        """Whether the path is valid UTF-8. Only Python can open other files."""
        return not any("\ud800" <= c <= "\udfff" for c in self.path)


@dataclass(frozen=True)
class VisibleFiles:
    """The data files of a table, sorted by path.

    Attributes:
        root: the table's folder.
        paths: the path of each file, as in `VisibleFile`.
        sizes: the size of each file.
        modified: the modification time of each file.
        places: full paths, keyed by path. The other files are at their own paths in the folder.
    """

    root: str
    paths: list[str]
    sizes: Numbers
    modified: Numbers
    places: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, root: str, files: Sequence[VisibleFile]) -> VisibleFiles:
        """Returns a `VisibleFiles` for files that are given as objects, in any order."""
        ordered = sorted(files)
        return cls(
            root,
            [file.path for file in ordered],
            np.array([file.size for file in ordered], dtype=np.int64),
            np.array([file.modified for file in ordered], dtype=np.int64),
            {file.path: file.place for file in ordered},
        )

    def sorted(self) -> VisibleFiles:
        """Returns the files sorted by path."""
        order = sorted(range(len(self)), key=self.paths.__getitem__)
        return self._at(np.array(order, dtype=np.int64))

    def only(self, flags: Sequence[bool] | npt.NDArray[np.bool_]) -> VisibleFiles:
        """Returns the files whose flag is true."""
        return self._at(np.flatnonzero(flags))

    def _at(self, numbers: Numbers) -> VisibleFiles:
        return replace(
            self,
            paths=np.array(self.paths, dtype=object)[numbers].tolist(),
            sizes=self.sizes[numbers],
            modified=self.modified[numbers],
        )

    @cached_property
    def text(self) -> str:
        """All paths, one per line."""
        return "\n".join([*self.paths, ""])

    def place(self, number: int) -> str:
        """Returns the full path to read a file from."""
        path = self.paths[number]
        return self.places.get(path) or f"{self.root}/{path}"

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> VisibleFile:
        return VisibleFile(
            self.paths[number],
            self.place(number),
            int(self.sizes[number]),
            int(self.modified[number]),
        )

    def __iter__(self) -> Iterator[VisibleFile]:
        places = map(self.place, range(len(self)))
        return map(VisibleFile, self.paths, places, self.sizes.tolist(), self.modified.tolist())


class KeepsChanging(RuntimeError):
    """The journal changed during every attempt to list a table's files."""


def visible_files(store: Store, folder: TableFolder) -> VisibleFiles:
    """Returns the files of a table.

    Partitions that are stored outside the table's folder are recorded only in a catalog, so their
    files are not included.

    Raises:
        KeepsChanging: the journal changed during every attempt to list the folder.
    """
    for _ in range(_TRIES):
        state = JournalState(store, folder)
        overlay = state.overlay
        lost = _lost(store, state, overlay)
        found = _listed(store, folder)
        if overlay is not None:
            changed = {file.path: file for file in found}
            _apply(store, state, overlay, lost, changed)
            found = VisibleFiles.of(folder.root, list(changed.values()))
        again = JournalState(store, folder)
        if again.token == state.token and _lost(store, again, overlay) == lost:
            return found
    raise KeepsChanging(f"The journal of {folder.root} keeps changing. Retry the read.")


def is_hidden(relative: str) -> bool:
    """Whether a part of a file's path makes Spark ignore the file."""
    return any(map(is_hidden_name, relative.split("/")))


def _listed(store: Store, folder: TableFolder) -> VisibleFiles:
    listed = store.files(folder.root)
    found = VisibleFiles(
        folder.root,
        [path.removeprefix(f"{folder.root}/") for path in listed.paths],
        np.array(listed.sizes, dtype=np.int64),
        np.array(listed.times, dtype=np.int64),
    ).sorted()
    odd = _odd(found.paths)
    if not odd:
        return found
    flags = np.ones(len(found), dtype=bool)
    flags[odd] = False
    plain = found.only(flags)
    shown = [found[number] for number in odd if not is_hidden(found.paths[number])]
    if not shown:
        return plain
    shown = [file._replace(path=folder.relative(file.place)) for file in shown]
    return VisibleFiles.of(folder.root, [*plain, *shown])


def _odd(paths: list[str]) -> list[int]:
    """Returns the positions of paths that may be hidden, or may look like full paths.

    The paths are sorted.
    """
    dots, underscores = (
        range(bisect_left(paths, first), bisect_left(paths, chr(ord(first) + 1))) for first in "._"
    )
    others = (
        range(dots.start),
        range(dots.stop, underscores.start),
        range(underscores.stop, len(paths)),
    )
    odd = [*dots, *underscores]
    for numbers in others:
        text = "\n".join(paths[numbers.start : numbers.stop])
        if any(part in text for part in ("/_", "/.", ":")):
            odd += [n for n in numbers if re.search(r"/_|/\.|:", paths[n])]
    return odd


def _lost(store: Store, state: JournalState, overlay: Overlay | None) -> frozenset[str]:
    """Returns the folders that have lost the run's marker, because another writer overwrote them.

    In these folders, all listed files are visible except for the run's new files.
    """
    if overlay is None:
        return frozenset()
    folders = {ref.folder for ref in (*overlay.shown, *overlay.hidden)}
    markers = {f: state.folder.marker(state.run, overlay.incarnation, f) for f in folders}
    there = store.stats(markers.values())
    return frozenset(f for f, path in markers.items() if path not in there)


def _apply(
    store: Store, state: JournalState, overlay: Overlay, lost: frozenset[str],
    found: dict[str, VisibleFile],
) -> None:  # fmt: skip
    new = set(overlay.shown if overlay.committed else overlay.hidden)
    # Other files, such as a README in the table's folder, say nothing about the partitions.
    folders = {path.rpartition("/")[0] for path in found if path.endswith((".parquet", ".orc"))}
    columns = set(map(_partition_columns, folders))
    for ref in {*overlay.hidden, *(ref for ref in new if ref.folder in lost)}:
        seen = found.get(ref.path)
        # On some stores, a move is a copy, which changes the modification times of the run's new
        # files.
        if seen and seen.size == ref.size:
            is_same = ref in new or seen.modified == ref.modified
            if is_same or _is_copied(store, state, overlay, ref.folder):
                del found[ref.path]
    for ref in overlay.shown:
        # A forged record may name hidden files, which a listing never contains, or files whose
        # folders have other partition columns than those of all other files.
        is_new = ref.path not in found and not is_hidden(ref.path)
        if columns and _partition_columns(ref.folder) not in columns:
            continue
        if is_new and ref.folder not in lost:
            place = _place(store, state, overlay, ref)
            if place is not None:
                found[ref.path] = place


def _partition_columns(folder: str) -> tuple[str, ...]:
    """Returns the partition columns in a folder's path, in lower case."""
    named = [part.partition("=")[0] for part in folder.split("/") if "=" in part]
    return tuple(unquote(name).lower() for name in named)


def _is_copied(store: Store, state: JournalState, overlay: Overlay, folder: str) -> bool:
    """Whether the folder is a copy. If so, its files no longer have the recorded modification
    times."""
    if folder not in overlay.marked:
        return False
    marker = state.folder.marker(state.run, overlay.incarnation, folder)
    there: Stat | None = store.stats([marker]).get(marker)
    return there is not None and there.modified != overlay.marked[folder]


def _place(store: Store, state: JournalState, overlay: Overlay, ref: FileRef) -> VisibleFile | None:
    """Locates a file that is in `_zorder/_staging` or `_zorder/_retired`, or that was moved into
    place after the listing."""
    hidden = state.folder.staged if overlay.committed else state.folder.retired
    other, own = hidden(state.run, ref.path), state.folder.resolve(ref.path)
    moved: Stat | None = store.stats([other]).get(other)
    if moved is not None and moved.size == ref.size:
        return VisibleFile(ref.path, other, ref.size, ref.modified)
    there: Stat | None = store.stats([own]).get(own)
    return VisibleFile(ref.path, own, *there) if there else None
