"""The moves of one run, each of which may be repeated: its writer does them, and the next writer
does what is left of them after a kill. What io.pyzorder.publish does with RunFiles.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable

from pyzorder.fallback import failures, markers
from pyzorder.fallback.journal import path_of, whole
from pyzorder.fallback.own_files import create_if_absent, fitting, make_folder, move, remove
from pyzorder.fallback.run_records import FileRef, Retirement
from pyzorder.fallback.snapshots import read_incarnation
from pyzorder.fallback.stores import LocalStore, Stat, TableFolder, is_whole, plain


def hidden(folder: TableFolder, place: str, run: int, relative: str, suffix: str) -> str:
    """`day=1/part-0.parquet` retired by run 7:
    `_zorder/_retired/_7/_day=1/_part-0.parquet.retired`."""
    if is_whole(relative):
        around, _, name = plain(relative).rpartition("/")
        return f"{around}/_zorder/{place}/_{run}/{fitting('_', name, suffix)}"
    *folders, name = relative.split("/")
    below = "/".join([*(fitting("_", part, "") for part in folders), fitting("_", name, suffix)])
    return f"{folder.zorder}/{place}/_{run}/{below}"


def staged_path(folder: TableFolder, run: int, relative: str) -> str:
    """Where the new file that will be named `relative` waits."""
    return hidden(folder, "_staging", run, relative, ".staged")


def retired_path(folder: TableFolder, run: int, relative: str) -> str:
    """Where a replaced file is kept."""
    return hidden(folder, "_retired", run, relative, ".retired")


class RunFiles:
    """The files of one run."""

    def __init__(self, table: TableFolder, run: int, record: Retirement) -> None:
        self.table, self.run, self.record = table, run, record

    def mark(self) -> None:
        """Puts the run's marker into every folder it touches."""
        for folder in self.record.folders:
            if not os.path.isdir(self.table.resolve(folder)):
                raise failures.conflict(f"{self.table.resolve(folder)} was dropped")
            create_if_absent(self._marker(folder), b"")

    def unmark(self) -> None:
        """Takes the markers away; only after DONE, for one that is missing before is a conflict."""
        for folder in self.record.folders:
            with contextlib.suppress(OSError):
                remove(self._marker(folder))

    @property
    def is_same_life(self) -> bool:
        """Whether the table was not overwritten as a whole since PREPARE."""
        return read_incarnation(LocalStore(), self.table) == self.record.incarnation

    def is_intact(self, folder: str) -> bool:
        """Whether the folder is the one that RETIRE was written for."""
        return os.path.exists(self._marker(folder)) and self.is_same_life

    def check_folders(self) -> None:
        """An error unless all folders are."""
        if not self.is_same_life:
            raise failures.conflict(f"{self.table.root} was overwritten, renamed or dropped")
        for folder in self.record.folders:
            if not self.is_intact(folder):
                raise failures.conflict(f"{self.table.resolve(folder)} was overwritten or dropped")

    def check_inputs(self) -> None:
        """An error unless every input is the file that was read: there, of that size and time."""
        for ref in self.record.retire:
            self._check_same(self.table.resolve(ref.path), ref)

    def check_alone(self) -> None:
        """An error if a folder is touched through another table as well, whose lock is not this
        one's: a partition's folder may be a table of its own.

        Such a table has a journal before it puts its marker there; this one puts its marker there
        before it looks for the journal, and for other markers: of two that come at the same time,
        at least one sees the other.
        """
        store = LocalStore()
        for folder in self.record.folders:
            path = self.table.resolve(folder)
            own = TableFolder(path)
            if own != self.table and os.path.isdir(own.journal):
                raise failures.shared_folder(path, own.journal)
            for name in store.names(path):
                if markers.is_foreign(name, self.record.incarnation):
                    raise failures.shared_now(path, f"{path}/{name}")

    def retire(self, is_alive: Callable[[], bool], moved: Callable[[int], None]) -> None:
        """Moves the inputs away but the last, so that the folder is never without a visible file.

        A writer that was or may have been declared dead stops: asked between any two moves whether
        it is alive, it has made one at most since, and takes that back. Whoever undid the run did
        not see this move and took the markers away, so that nobody else would.
        """
        # Those of the last one too: after COMMIT no folder must be missing where a disk is full.
        for folder in {os.path.dirname(self._places(ref)[1]) for ref in self.record.retire}:
            make_folder(folder)
        if not is_alive():
            raise failures.paused()
        for count, ref in enumerate(self.record.retire[:-1], start=1):
            source, target = self._places(ref)
            self._check_same(source, ref)
            if move(source, target) != "moved":
                raise failures.conflict(f"{source} was replaced or deleted")
            self._check_same(target, ref)
            if not is_alive():
                move(target, source)
                raise failures.paused()
            moved(count)
        for ref in self.record.retire[-1:]:
            self._check_same(self.table.resolve(ref.path), ref)

    def retire_last(self) -> None:
        """After the move-in: the last input too, unless its name holds another file by now."""
        for ref in self.record.retire[-1:]:
            source, target = self._places(ref)
            if self.is_same_life and _stat(source) == ref.stat:
                make_folder(os.path.dirname(target))
                move(source, target)

    def move_back(self, moved: Callable[[int], None]) -> list[str]:
        """Undoes `retire`, but not where others overwrote a folder; gives what was in the way.

        Several may do this at once: the first who is through writes DONE before it takes the
        markers away, so that a marker that is missing after DONE tells nothing.
        """
        problems, count = [], 0
        for folder in _folders(self.record.retire):
            path, inputs = self.table.resolve(folder), self._of(self.record.retire, folder)
            if not self.is_intact(folder):
                if not self.is_done:
                    problems.append(f"{path} was overwritten or dropped")
                continue
            for ref in inputs:
                source, target = self._places(ref)
                result = move(target, source)
                if result in ("taken", "no folder"):
                    problems.append(f"{source} was written anew, or {path} was dropped")
                count += 1
                moved(count)
            if not self.is_intact(folder) and not self.is_done:
                for ref in inputs:
                    move(*self._places(ref))
                problems.append(f"{path} was overwritten or dropped")
        return problems

    def move_in(self, moved: Callable[[int], None]) -> list[str]:
        """Moves the new files in, but not where others overwrote a folder; what got there before it
        was noticed is removed. Gives what others did meanwhile."""
        problems, count = [], 0
        for folder in _folders(self.record.add):
            if not self.is_intact(folder):
                continue
            for ref in self._of(self.record.add, folder):
                target = self.table.resolve(ref.path)
                result = move(staged_path(self.table, self.run, ref.path), target)
                if result == "taken":
                    problems.append(f"{target} was written by someone else")
                if result == "gone" and self.is_intact(folder) and not self.is_done:
                    problems.append(f"{target} was deleted")
                count += 1
                moved(count)
        return problems + self.take_back()

    def take_back(self) -> list[str]:
        """Removes the new files from folders that others overwrote: on a disk, one that is deleted
        file by file keeps what came in after it was listed. Gives what others did."""
        problems = []
        for folder in self.record.folders:
            # A writer that took over wrote DONE before it took the markers away.
            if not self.is_intact(folder) and not self.is_done:
                for ref in self._of(self.record.add, folder):
                    self._remove(ref)
                problems.append(f"{self.table.resolve(folder)} was overwritten or dropped")
        return problems

    def take_back_after_done(self, held: Callable[[], bool]) -> list[str]:
        """The same when there are no markers: of a table that was overwritten as a whole. Only by
        a writer that still holds its lease: who wakes up later may find another life there."""
        late = [] if self.is_same_life else self.record.add
        removed = [held() and self._remove(ref) for ref in late]
        return [f"{self.table.root} was overwritten or dropped"] if any(removed) else []

    @property
    def is_done(self) -> bool:
        """Whether this run, in this life of the table, is finished."""
        try:
            found = whole(LocalStore().read(path_of(self.table, self.run, "done")), "done")
        except FileNotFoundError:
            return False
        return found is not None and found["incarnation"] == self.record.incarnation

    def remove_staged(self) -> None:
        """Deletes what was written for this run and never moved in."""
        folders = {os.path.dirname(staged_path(self.table, self.run, r.path))
                   for r in self.record.add}  # fmt: skip
        for folder in {f"{self.table.zorder}/_staging/_{self.run}", *folders}:
            shutil.rmtree(folder, ignore_errors=True)

    def _remove(self, ref: FileRef) -> bool:
        """Whether it was there."""
        seen = _stat(self.table.resolve(ref.path))
        there = seen == Stat(ref.size, ref.modified)
        if there:
            remove(self.table.resolve(ref.path))
        return there

    def _marker(self, folder: str) -> str:
        return markers.path(self.table, self.run, self.record.incarnation, folder)

    def _places(self, ref: FileRef) -> tuple[str, str]:
        return self.table.resolve(ref.path), retired_path(self.table, self.run, ref.path)

    def _of(self, refs: Iterable[FileRef], folder: str) -> list[FileRef]:
        return [ref for ref in refs if ref.folder == folder]

    def _check_same(self, path: str, ref: FileRef) -> None:
        if _stat(path) != ref.stat:
            raise failures.conflict(f"{self.table.resolve(ref.path)} was replaced or deleted")


def _folders(refs: Iterable[FileRef]) -> list[str]:
    return list(dict.fromkeys(ref.folder for ref in refs))


def _stat(path: str) -> Stat | None:
    return LocalStore().stats([path]).get(path)
