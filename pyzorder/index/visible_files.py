"""The files that a table consists of: a listing of its folder, as the journal has it read.

The rules and the reason why none is missed are those of Scala's Overlay: a file that
changes places has its new name before it loses the old one, and a journal that is the same before
and after the listing proves in which direction files were moving.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyzorder.index.journal import FileRef, JournalState, Overlay
from pyzorder.index.stores import Stat, Store
from pyzorder.index.table_folder import TableFolder

_TRIES = 50


@dataclass(frozen=True)
class VisibleFile:
    """
    A data file.

    path            its name in the table's folder, which the index knows it by
    place           the path that it is read from: elsewhere while a run has it moved
    size, modified  bytes, and milliseconds since 1970
    """

    path: str
    place: str
    size: int
    modified: int


def visible_files(store: Store, folder: TableFolder) -> list[VisibleFile]:
    """The files of a table, in the order of their names.

    Those of partitions that lie elsewhere are not among them: only a catalog knows these.

    Raises:
        RuntimeError: the journal has changed during each of many listings.
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
    raise RuntimeError(f"The journal of {folder.root} changes all the time. Read the table again.")


def is_hidden(relative: str) -> bool:
    """Whether Spark takes a file for none of the table's data, by a name on its path."""
    return any(
        part.startswith(".") or (part.startswith("_") and "=" not in part)
        for part in relative.split("/")
    )


def _listed(store: Store, folder: TableFolder) -> dict[str, VisibleFile]:
    prefix = f"{folder.root}/"
    named = {
        path.removeprefix(prefix): (path, stat) for path, stat in store.files(folder.root).items()
    }
    return {
        name: VisibleFile(name, path, *stat)
        for name, (path, stat) in named.items()
        if not is_hidden(name)
    }


def _lost(store: Store, state: JournalState, overlay: Overlay | None) -> frozenset[str]:
    """Folders without the run's marker: others have overwritten them, and their files count."""
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
        # A new file may have another time at its place: on some stores a move is a copy.
        if seen and seen.size == ref.size and (ref in new or seen.modified == ref.modified):
            del found[ref.path]
    for ref in overlay.shown:
        # Nor is a file shown that no listing shows, which a forged record may name.
        is_new = ref.path not in found and not is_hidden(ref.path)
        if is_new and ref.folder not in lost:
            place = _place(store, state, overlay, ref)
            if place is not None:
                found[ref.path] = place


def _place(store: Store, state: JournalState, overlay: Overlay, ref: FileRef) -> VisibleFile | None:
    """Where a file is that was not listed: moved away, or back again since."""
    hidden = state.folder.staged if overlay.committed else state.folder.retired
    other, own = hidden(state.run, ref.path), state.folder.resolve(ref.path)
    moved: Stat | None = store.stats([other]).get(other)
    if moved is not None and moved.size == ref.size:
        return VisibleFile(ref.path, other, ref.size, ref.modified)
    there: Stat | None = store.stats([own]).get(own)
    return VisibleFile(ref.path, own, *there) if there else None
