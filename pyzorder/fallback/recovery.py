"""Brings a run to its end: until COMMIT it is undone, after COMMIT it is completed.

COMMIT and ABORT are one create-if-absent object: a run's own writer, should it wake up, cannot
commit what is being undone here. What io.pyzorder.publish does with Recovery.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence

import pyarrow as pa

from pyzorder.fallback import failures, index_store
from pyzorder.fallback.index_store import incarnation_of
from pyzorder.fallback.journal import JournalState
from pyzorder.fallback.lease import LEASE, is_alive, process_of
from pyzorder.fallback.run_files import RunFiles
from pyzorder.fallback.run_records import FileRef, RunRecords, retirement_of
from pyzorder.fallback.run_settings import RunSettings
from pyzorder.fallback.snapshots import latest
from pyzorder.fallback.stores import is_local

log = logging.getLogger(__name__)

#: Seconds after DONE. Who deletes the folder may have listed its files before DONE came, and be
#: slow to delete the others: until then nothing tells that they go.
_MOMENTS = (1, 10)


def take_over(state: JournalState, settings: RunSettings) -> None:
    """Finishes or undoes an unfinished run whose writer is dead.

    Raises:
        ZOrderError: ZORDER_CONCURRENT_OPTIMIZE, the writer may be alive.
    """
    if state.switches:
        raise failures.switched(state.folder.root)
    if settings.take_over != str(state.run) and is_alive(state, LEASE):
        prepare = state.record("prepare")
        by = f"{prepare['operation']} by {process_of(prepare)}" if prepare else "a writer"
        raise failures.concurrent(by, state.run, int(prepare["lease"]) if prepare else LEASE)
    record = retirement_of(state.record("retire"))
    for ref in (*record.retire, *record.add) if record else ():
        if not is_local(state.folder.resolve(ref.path)):
            raise failures.remote_writes(ref.path)
    _finish(state, settings)


def _finish(state: JournalState, settings: RunSettings) -> None:
    folder, incarnation = state.folder, incarnation_of(state.folder)
    records = RunRecords(folder, state.run)
    settings.reach("recovery-begun")
    outcome = state.record("outcome")
    commit = (
        not records.abort(incarnation, "recovery")
        if outcome is None
        else outcome["outcome"] == "COMMIT"
    )
    told = "completing" if commit else "undoing"
    log.warning("Run %s of %s was left unfinished; %s it", state.run, folder.root, told)
    settings.reach("recovery-decided")
    # Read now that it is decided: until then a writer that was declared dead may have gone on.
    files = RunFiles(folder, state.run, records.left(incarnation))
    end = complete if commit else undo
    for problem in end(files, settings.at_first(f"recovery-{told}")):
        log.warning("Run %s of %s: %s meanwhile", state.run, folder.root, problem)
    settings.reach("recovery-moved")
    close(records, files)


def complete(
    files: RunFiles,
    moved: Callable[[int], None],
    moved_in: Callable[[], None] = lambda: None,
) -> list[str]:
    """After COMMIT: the new files go in, the last old one out, the index forgets the old ones.

    Gives what others did meanwhile.
    """
    problems = files.move_in(moved)
    files.retire_last()
    moved_in()
    _forget(files, files.record.retire)
    return list(dict.fromkeys(problems + files.take_back()))


def undo(files: RunFiles, moved: Callable[[int], None]) -> list[str]:
    """After ABORT: the old files go back, the index forgets the new ones.

    Gives what others did meanwhile.
    """
    problems = files.move_back(moved)
    _forget(files, files.record.add)
    return problems


def close(records: RunRecords, files: RunFiles) -> None:
    """DONE, then what only an unfinished run needs is taken away; all of it in a folder that is
    just being deleted, now or in a moment, which would stay for a record that came into it."""
    if files.is_same_life:
        files.remove_staged()
        records.done(files.record.incarnation)
    files.unmark()
    if not files.is_same_life or records.are_going:
        records.clear(files.record.incarnation)
    for seconds in _MOMENTS:
        later = threading.Timer(seconds, _look_again, (records, files.record.incarnation))
        later.daemon = True
        later.start()


def _look_again(records: RunRecords, incarnation: str) -> None:
    with contextlib.suppress(OSError):  # the store cannot be asked
        if records.are_gone:
            records.clear(incarnation)


def without(rows: pa.Table, names: set[str]) -> list[bool]:
    """Which rows of an index are not of these files."""
    return [path not in names for path in rows["path"].to_pylist()]


def _forget(files: RunFiles, gone: Sequence[FileRef]) -> None:
    """Takes entries of files that are no more out of the index. They are of no harm (nothing has
    their name), so that a failure must not keep a run from its end."""
    names = {ref.path for ref in gone}
    try:
        if names and files.is_same_life and latest(files.table) is not None:
            index_store.publish(
                files.table,
                lambda old: old,
                lambda rows: without(rows, names),
                life=files.record.incarnation,
            )
    except Exception:
        log.warning("Entries of files that are gone stay in the index of %s", files.table.root,
                    exc_info=True)  # fmt: skip
