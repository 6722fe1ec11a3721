"""The data files that make up a table, determined from a listing of its folder and the journal.

The rules are those of Scala's Overlay, which explains why no file is missed. A file that is moved
gets its new name before it loses the old one. If the journal did not change during the listing, the
direction in which files were moving is known.
"""

from __future__ import annotations

from typing import NamedTuple

from pyzorder.index.journal import FileRef, JournalState, Overlay
from pyzorder.index.stores import Stat, Store
from pyzorder.index.table_folder import TableFolder

_TRIES = 50


class VisibleFile(NamedTuple):
    """A data file of a table.

    Attributes:
        path: its path relative to the table's folder. The index identifies the file by this path.
        place: the full path to read it from. While a run is unfinished, this may be the path of a
            staged or retired file.
        size: its size in bytes.
        modified: its modification time in milliseconds since the epoch.
    """

    path: str
    place: str
    size: int
    modified: int


def visible_files(store: Store, folder: TableFolder) -> list[VisibleFile]:
    """Returns the files of a table, sorted by path.

    Partitions that are stored outside the table's folder are recorded only in a catalog, so their
    files are not included.

    Raises:
        RuntimeError: the journal changed during every attempt to list the folder.
    """
    for _ in range(_TRIES):
        state = JournalState(store, folder)
        overlay = state.overlay
        lost = _lost(store, state, overlay)
        found = _listed(store, folder)
        if overlay is not None:
            _apply(store, state, overlay, lost, found)
        again = JournalState(store, folder)
        if again.token == state.token and _lost(store, again, overlay) == lost:
            return [found[path] for path in sorted(found)]
    raise RuntimeError(f"The journal of {folder.root} keeps changing. Retry the read.")


def is_hidden(relative: str) -> bool:
    """Whether a part of a file's path makes Spark ignore the file."""
    return any(
        part.startswith(".") or (part.startswith("_") and "=" not in part)
        for part in relative.split("/")
    )


def _listed(store: Store, folder: TableFolder) -> dict[str, VisibleFile]:
    listed = store.files(folder.root)
    if not listed:
        return {}
    names = [path.removeprefix(f"{folder.root}/") for path in listed]
    files = map(VisibleFile, names, listed, *zip(*listed.values(), strict=True))
    found = dict(zip(names, files, strict=True))
    for name in [n for n in names if n[:1] in "_." or "/_" in n or "/." in n or ":" in n]:
        file = found.pop(name)
        if not is_hidden(name):
            relative = folder.relative(file.place)
            found[relative] = file._replace(path=relative)
    return found


def _lost(store: Store, state: JournalState, overlay: Overlay | None) -> frozenset[str]:
    """Returns the folders that have lost the run's marker, because another writer overwrote them.

    In these folders, the listed files are visible, except the run's new files.
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
    for ref in {*overlay.hidden, *(ref for ref in new if ref.folder in lost)}:
        seen = found.get(ref.path)
        # On some stores a move is a copy, which changes the modification times of the run's new
        # files.
        if seen and seen.size == ref.size:
            is_same = ref in new or seen.modified == ref.modified
            if is_same or _is_copied(store, state, overlay, ref.folder):
                del found[ref.path]
    for ref in overlay.shown:
        # A forged record may name hidden files, which a listing never shows.
        is_new = ref.path not in found and not is_hidden(ref.path)
        if is_new and ref.folder not in lost:
            place = _place(store, state, overlay, ref)
            if place is not None:
                found[ref.path] = place


def _is_copied(store: Store, state: JournalState, overlay: Overlay, folder: str) -> bool:
    """Whether the folder is a copy whose files have other modification times than the record."""
    if folder not in overlay.marked:
        return False
    marker = state.folder.marker(state.run, overlay.incarnation, folder)
    there: Stat | None = store.stats([marker]).get(marker)
    return there is not None and there.modified != overlay.marked[folder]


def _place(store: Store, state: JournalState, overlay: Overlay, ref: FileRef) -> VisibleFile | None:
    """Locates a file that is staged or retired, or that was moved into place after the listing."""
    hidden = state.folder.staged if overlay.committed else state.folder.retired
    other, own = hidden(state.run, ref.path), state.folder.resolve(ref.path)
    moved: Stat | None = store.stats([other]).get(other)
    if moved is not None and moved.size == ref.size:
        return VisibleFile(ref.path, other, ref.size, ref.modified)
    there: Stat | None = store.stats([own]).get(own)
    return VisibleFile(ref.path, own, *there) if there else None
