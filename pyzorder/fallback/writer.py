"""The one writer of a table, from its lock to what it leaves when it is killed.

The protocol and its reasons are those of io.pyzorder.publish.Writer; sql/FORMAT.md, section
"Journal", says what readers see after each record.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Sequence

from pyzorder.errors import ZOrderError
from pyzorder.fallback import failures, index_store, recovery
from pyzorder.fallback.index_store import FileEntry, incarnation_of
from pyzorder.fallback.journal import JournalState, path_of
from pyzorder.fallback.lease import LEASE, Lease
from pyzorder.fallback.own_files import is_full, make_folder
from pyzorder.fallback.run_files import RunFiles, staged_path
from pyzorder.fallback.run_records import FileRef, Retirement, RunRecords, retirement_of
from pyzorder.fallback.run_settings import RunSettings
from pyzorder.fallback.snapshots import IndexedColumn, read_incarnation
from pyzorder.fallback.stores import LocalStore, Stat, TableFolder

log = logging.getLogger(__name__)


class Writer:
    """Holds the lock from `begin` to `publish` or `abort`, one of which must be called."""

    def __init__(
        self,
        folder: TableFolder,
        run: int,
        incarnation: str,
        is_first: bool,
        lease: Lease,
        settings: RunSettings,
    ) -> None:
        """`is_first`: whether that life of the table began with this writer."""
        self.folder, self.run, self.incarnation = folder, run, incarnation
        self._is_first, self._lease, self._settings = is_first, lease, settings
        self._records = RunRecords(folder, run)
        self._files = RunFiles(folder, run, Retirement(incarnation))
        self._committing = self._ended = False

    @classmethod
    def begin(cls, folder: TableFolder, operation: str, settings: RunSettings) -> Writer:
        """Takes the table's lock, after having finished what a dead writer left.

        Raises:
            ZOrderError: ZORDER_CONCURRENT_OPTIMIZE, ZORDER_CONFLICT.
        """
        try:
            writer = None
            while writer is None:
                writer = cls._lock(folder, operation, settings)
        except FileNotFoundError as gone:
            raise failures.conflict(f"{folder.root} was overwritten, renamed or dropped") from gone
        settings.reach("after-prepare")
        return writer

    @classmethod
    def _lock(cls, folder: TableFolder, operation: str, settings: RunSettings) -> Writer | None:
        """None: another writer was first, or the table was overwritten."""
        is_first = read_incarnation(LocalStore(), folder) is None
        incarnation = incarnation_of(folder)
        state = JournalState(LocalStore(), folder)
        if state.switches:
            raise failures.switched(folder.root)
        if state.unfinished:
            recovery.take_over(state, settings)
        else:
            finished = retirement_of(state.record("retire"))
            if finished is not None:  # killed after DONE, with its markers still there
                RunFiles(folder, state.run, finished).unmark()
        run, owner = state.run + 1, str(uuid.uuid4())
        make_folder(folder.journal)  # the first run's, or an older life went with its own
        lease = Lease(folder, run, owner, LEASE)
        lease.claim()
        prepared = RunRecords(folder, run).prepare(incarnation, operation, owner, LEASE)
        if prepared and read_incarnation(LocalStore(), folder) == incarnation:
            lease.start()
            return cls(folder, run, incarnation, is_first, lease, settings)
        lease.end()
        return None

    @property
    def began(self) -> int:
        """When this run began, in milliseconds by the store's clock."""
        path = path_of(self.folder, self.run, "prepare")
        return LocalStore().stats([path])[path].modified

    def staged(self, relative: str) -> str:
        """Where the new file that will be named `relative` is written to."""
        return staged_path(self.folder, self.run, relative)

    def check_alone(self, folders: Sequence[str]) -> None:
        """An error if a partition's folder, named as FileRef.folder, is another table's as well."""
        RunFiles(self.folder, self.run, Retirement(self.incarnation, folders=tuple(folders))
                 ).check_alone()  # fmt: skip

    def reason(self, failure: Exception, reading: Sequence[FileRef]) -> Exception:
        """What to tell of a failure before or in `publish`: the conflict, where others changed the
        table or the files that were being read, else the failure as it is."""
        if isinstance(failure, ZOrderError):
            return failure
        read = RunFiles(self.folder, self.run, Retirement(self.incarnation, tuple(reading)))
        try:
            read.check_folders()
            read.check_inputs()
        except ZOrderError as conflict:
            return conflict
        except OSError:
            pass
        said = str(failure)
        if "FILE_NOT_EXIST" in said and f"{self.folder.root}/" in said:
            return failures.conflict(f"a file of {self.folder.root} was away for a moment")
        return failure

    def publish(
        self,
        retire: Sequence[FileRef],
        entries: Sequence[FileEntry],
        columns: Callable[[Sequence[IndexedColumn]], Sequence[IndexedColumn]],
        is_denied: Callable[[IndexedColumn], bool],
        check_rows: Callable[[], None],
    ) -> None:
        """Replaces files of the table by the staged ones, and ends this writer.

        Either all of it happens or, with an error, nothing; only folders that others overwrote
        meanwhile are left as they left them, with an error as well.

        Args:
            retire: the files that were read, as they were then.
            entries: of the staged files, what the index shall say of them.
            columns: from the columns that had statistics to those that shall have them.
            check_rows: raises unless as many rows were written as were read.
        """
        committed = False
        try:
            self._prepare_moves(retire, entries, check_rows)
            # Entries count only for a file of that name, size and time: so early, a run that is
            # killed after COMMIT loses no statistics.
            names = {e.path for e in entries}
            index_store.publish(
                self.folder,
                columns,
                lambda rows: recovery.without(rows, names),
                entries,
                is_denied,
                self.incarnation,
            )
            self._settings.reach("after-index")
            self._records.retire(self._files.record)
            self._settings.reach("after-retire")
            self._files.retire(lambda: self._is_alive, self._settings.at_first("mid-retire"))
            self._settings.reach("before-commit")
            self._files.check_folders()
            self._commit()
            committed = True
        finally:
            if not committed:
                self.abort()
        self._complete()

    def _commit(self) -> None:
        self._committing = True
        try:
            is_mine = self._records.commit(self.incarnation, self._lease.owner)
        except OSError as failure:
            # Refused, not lost: room may be made for ABORT.
            self._committing = not is_full(failure)
            raise
        if not is_mine:
            raise failures.conflict("another writing command declared this one dead")

    def abort(self) -> None:
        """Gives up: nothing of this run is seen any more. Nothing after `publish` or `abort`."""
        if self._ended:
            return
        try:
            if self._files.is_same_life:
                if not self._committing:  # where the disk is full, this is room for the records
                    self._files.remove_staged()
                # Not aborted: the COMMIT whose outcome was not known arrived after all.
                aborted = self._records.abort(self.incarnation, self._lease.owner)
                end = recovery.undo if aborted else recovery.complete
                end(self._files, lambda count: None)
                # Also after another's: it knew of no marker put since.
                recovery.close(self._records, self._files)
        except Exception:
            log.warning("Run %s of %s could not be undone; the next writing command on the table "
                        "does it", self.run, self.folder.root, exc_info=True)  # fmt: skip
        finally:
            self._end()

    @property
    def _is_alive(self) -> bool:
        """Whether nobody has declared this writer dead, nor can have by the end of its lease."""
        return self._lease.held and not self._records.is_decided

    def _prepare_moves(
        self,
        retire: Sequence[FileRef],
        entries: Sequence[FileEntry],
        check_rows: Callable[[], None],
    ) -> None:
        self._files.check_folders()  # no folders yet: whether the table was overwritten as a whole
        added = [FileRef(e.path, *self._stat(e)) for e in entries]
        folders = tuple(dict.fromkeys(ref.folder for ref in (*retire, *added)))
        record = Retirement(self.incarnation, tuple(retire), tuple(added), folders)
        self._files = RunFiles(self.folder, self.run, record)
        self._files.check_inputs()
        try:
            check_rows()
        except Exception:
            self._files.check_inputs()  # a better reason, if one of them is gone
            raise
        self._settings.reach("after-verify")
        self._files.mark()
        self._settings.reach("after-markers")
        self._files.check_alone()
        self._files.check_inputs()
        self._files.check_folders()

    def _complete(self) -> None:
        try:
            self._settings.reach("after-commit")
            problems = recovery.complete(
                self._files,
                self._settings.at_first("mid-move-in"),
                lambda: self._settings.reach("moved-in"),
            )
            self._settings.reach("before-done")
            if not self._files.is_done:
                self._close()
            self._settings.reach("after-done")
            problems += self._files.take_back_after_done(lambda: self._lease.held)
        except OSError as failure:
            raise failures.incomplete(self.folder.root, failure) from failure
        finally:
            self._end()
        if problems:
            raise failures.conflict("; ".join(dict.fromkeys(problems)))

    def _close(self) -> None:
        """What is left can be done at any time: all readers see the new files at their places."""
        try:
            recovery.close(self._records, self._files)
        except OSError:
            log.warning("Run %s of %s is complete, but its end could not be recorded; the next "
                        "writing command on the table does it", self.run, self.folder.root,
                        exc_info=True)  # fmt: skip

    def _end(self) -> None:
        self._ended = True
        self._lease.end()
        with contextlib.suppress(OSError):  # the store cannot be asked
            if not self._files.is_same_life:
                self._files.unmark()  # also what came into a folder that was being deleted
            if not self._files.is_same_life or self._records.are_going:
                self._records.clear(self.incarnation)
            if self._is_first and self._files.is_same_life:
                self._clear_if_empty()

    def _clear_if_empty(self) -> None:
        """Takes `_zorder` away where there is nothing else: the table went as this began."""
        if os.listdir(self.folder.root) == [os.path.basename(self.folder.zorder)]:
            shutil.rmtree(self.folder.zorder)

    def _stat(self, entry: FileEntry) -> Stat:
        path = self.staged(entry.path)
        found = LocalStore().stats([path]).get(path)
        if found != Stat(entry.size, entry.modified):
            raise failures.conflict(f"{path} is not as it was written")
        return found
