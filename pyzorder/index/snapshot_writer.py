"""Publishes snapshots of the index (sql/FORMAT.md, section "Index table").

Publishing uses optimistic concurrency, without a lock. If the next version already has a pointer,
the writer loads that version's snapshot, applies its own change to it, and tries to publish the
result as the version after that.
"""

from __future__ import annotations

import contextlib
import io
import uuid
import zlib
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyzorder import errors
from pyzorder.index.coverage import Coverage
from pyzorder.index.entries import FileEntry, has_gaps, kept_rows, table_of
from pyzorder.index.pointers import (
    GREATEST,
    MOST_READ,
    IndexedColumn,
    NewerFormat,
    Pointer,
    pointer_name,
    read_incarnation,
    read_pointer,
    segment_version,
    versions,
)
from pyzorder.index.snapshots import Snapshot, latest
from pyzorder.index.stores import Store
from pyzorder.index.table_folder import TableFolder

#: Number of attempts to read or create the incarnation id.
_TRIES = 10

#: Number of snapshots that are kept when a new one is published, including the new one.
KEPT_SNAPSHOTS = 10


def incarnation_of(store: Store, folder: TableFolder) -> str:
    """Returns the table's incarnation id, creating one if there is none.

    The id is random. It remains the same until the whole table is overwritten.

    Raises:
        ZOrderError: the incarnation file exists but does not contain a valid id.
    """
    for _ in range(_TRIES):
        known = read_incarnation(store, folder)
        if known is not None:
            return known
        made = str(uuid.uuid4())
        if store.create(folder.incarnation, made.encode()):
            return made
    raise errors.damaged(folder.incarnation, "it does not contain an id")


def publish(
    store: Store,
    folder: TableFolder,
    columns: Callable[[Sequence[IndexedColumn]], Sequence[IndexedColumn]],
    keep: Callable[[pa.Table], Sequence[bool]] = lambda rows: [True] * rows.num_rows,
    entries: Iterable[FileEntry] = (),
    is_denied: Callable[[IndexedColumn], bool] = lambda column: False,
    coverage: Callable[[Snapshot | None, pa.Table], Coverage | None] = lambda old, rows: None,
) -> Pointer:
    """Publishes a snapshot with `entries` and the rows of the latest snapshot that `keep` selects.

    A damaged index is treated as empty.

    Args:
        columns: maps the columns that had statistics to the columns of the new snapshot. If a
            column is dropped or its type changes, its statistics are not carried over.
        keep: selects rows of the latest snapshot.
        entries: rows to add. A row is ignored if `keep` selects a row for the same file.
        is_denied: true for columns that must not be recorded in the index. Older snapshots with
            such a column are deleted.
        coverage: computes the new snapshot's coverage from the latest snapshot and the new rows.

    Raises:
        ZOrderError: the latest version is the highest possible one, or is in a newer format.
    """
    added = list(entries)
    while True:
        known = versions(store, folder)
        base = known[-1] if known else 0
        if base >= GREATEST - 1:
            raise errors.used_up_numbers(folder.index)
        check_format(store, folder)
        old = latest(store, folder)
        if old is not None and (old.pointer.version != base or has_gaps(old)):
            old = None
        wanted = columns(old.pointer.columns if old is not None else ())
        kept = tuple(c for c in wanted if not is_denied(c))
        rows = table_of(kept, added)
        if old is not None:
            others = kept_rows(old, kept, keep)
            is_new = pc.invert(pc.is_in(rows["path"], others["path"].combine_chunks()))
            rows = pa.concat_tables([others, rows.filter(is_new)])
        is_lost = base > 0 and old is None  # the latest snapshot is unusable
        pointer = _try(
            store,
            folder,
            kept,
            rows.sort_by("path"),
            base + 1,
            None if is_lost else coverage(old, rows),
            base + 1 if is_lost else old.pointer.coverable_since if old is not None else 0,
            old.pointer if old is not None else None,
        )
        if pointer is not None:
            _delete_old(store, folder, is_denied)
            return pointer


def check_format(store: Store, folder: TableFolder) -> None:
    """Raises a ZOrderError if a later version of pyzorder wrote the latest snapshot.

    Replacing it with a snapshot in an older format would lose its entries.
    """
    known = versions(store, folder)
    try:
        if known:
            read_pointer(store, folder, known[-1])
    except NewerFormat as reason:
        raise errors.newer_index(folder.root, str(reason)) from None
    except Exception:  # the pointer is damaged, or was just deleted
        return


def _try(
    store: Store,
    folder: TableFolder,
    columns: tuple[IndexedColumn, ...],
    rows: pa.Table,
    version: int,
    coverage: Coverage | None,
    coverable_since: int,
    before: Pointer | None,
) -> Pointer | None:
    """Writes a snapshot and its pointer. Returns None if another writer published first.

    Args:
        before: the pointer to the previous snapshot, whose segments of sketches remain in use.
    """
    sink = io.BytesIO()
    pq.write_table(rows, sink, store_decimal_as_integer=True, compression="snappy")
    data = sink.getvalue()
    used = set(pc.unique(rows["sketch_file"]).to_pylist())
    pointer = Pointer(
        folder,
        version,
        incarnation_of(store, folder),
        f"_snapshot-{version}-{uuid.uuid4()}",
        len(data),
        zlib.crc32(data),
        rows.num_rows,
        columns,
        coverage,
        coverable_since,
        tuple(s for s in before.sketches if s.file in used) if before is not None else (),
        _still(before.sketched, columns) if before is not None else None,
        before.lineage if before is not None else str(uuid.uuid4()),
    )
    path, name = f"{folder.index}/{pointer.file}", f"{folder.index}/{pointer.name}"
    store.create(path, data)
    if store.create(name, pointer.to_json().encode()):
        if _is_up_to_date(store, pointer, before):
            return pointer
        store.remove(name)
    store.remove(path)
    return None


def _is_up_to_date(store: Store, pointer: Pointer, before: Pointer | None) -> bool:
    """Whether a snapshot that has just been published belongs to the current index.

    It does not if the index was dropped and created again in the meantime, or if so many snapshots
    were published that old numbers are free again.

    Args:
        before: the pointer to the snapshot on which the new one is built, if it was usable.
    """
    known = versions(store, pointer.folder)
    if not known:  # the index has been dropped since
        return True
    base = pointer.version - 1
    found = None
    with contextlib.suppress(Exception):
        found = read_pointer(store, pointer.folder, base or known[-1])
    if base == 0:
        return found is None or found.lineage == pointer.lineage
    return base in known and (before is None or found is None or found.file == before.file)


def _still(
    sketched: tuple[str, ...] | None, columns: Sequence[IndexedColumn]
) -> tuple[str, ...] | None:
    """Returns the columns that get sketches, without those that are no longer indexed."""
    if sketched is None:
        return None
    return tuple(c.name for c in columns if c.name in sketched)


def _delete_old(
    store: Store, folder: TableFolder, is_denied: Callable[[IndexedColumn], bool]
) -> None:
    """Deletes all but the newest snapshots, and all up to the last one with a denied column.

    Deletes each snapshot's file before its pointer. Snapshots are deleted in ascending order, so
    there is never a gap between the remaining ones. Stops at the first failure.
    """
    before = versions(store, folder)[:-1]
    recent = before[1 - KEPT_SNAPSHOTS :]
    denied = [version for version in recent if _has_denied(store, folder, version, is_denied)]
    last = max([*before[: -len(recent) or None], *denied], default=0)
    with contextlib.suppress(Exception):
        names = store.names(folder.index)
        for version in (version for version in before if version <= last):
            for name in names:
                if name.startswith(f"_snapshot-{version}-"):
                    store.remove(f"{folder.index}/{name}")
            store.remove(f"{folder.index}/{pointer_name(version)}")
    with contextlib.suppress(Exception):  # segments that remain do no harm
        _delete_segments(store, folder)


def _has_denied(
    store: Store,
    folder: TableFolder,
    version: int,
    is_denied: Callable[[IndexedColumn], bool],
) -> bool:
    """Whether a snapshot has a denied column. False if its pointer is unusable."""
    with contextlib.suppress(Exception):
        return any(map(is_denied, read_pointer(store, folder, version).columns))
    return False


def _delete_segments(store: Store, folder: TableFolder) -> None:
    """Deletes sketch segments to which no pointer refers, except for those of newer snapshots."""
    found = {name: segment_version(name) for name in store.names(folder.index)}
    if any(found.values()):
        known = versions(store, folder)
        if len(known) > MOST_READ:
            return
        pointers = [read_pointer(store, folder, version) for version in known]
        used = {segment.file for pointer in pointers for segment in pointer.sketches}
        for name, version in found.items():
            if name not in used and 0 < version <= known[-1]:
                store.remove(f"{folder.index}/{name}")
