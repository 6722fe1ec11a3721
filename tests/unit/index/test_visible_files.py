"""Readers see the files that the cases in sql/journal require."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pyzorder.index import JournalState, LocalStore, TableFolder, visible_files
from tests.support.journal_vectors import Vector, vectors


@pytest.mark.parametrize("vector", vectors(), ids=lambda v: v.name)
def test_vector(tmp_path: Path, vector: Vector) -> None:
    vector.make(tmp_path / "t")
    store, folder = LocalStore(), TableFolder(str(tmp_path / "t"))
    found = visible_files(store, folder)
    assert [file.path for file in found] == sorted(vector.visible), vector.why
    for file in found:
        assert pq.read_metadata(file.place).num_rows in (1, 5)
        assert Path(file.place).stat().st_size == file.size
    state = JournalState(store, folder)
    accepted = [k for k in state.kinds if k == "done" or state.record(k) is not None]
    assert sorted(f"_{state.run}.{kind}" for kind in accepted) == vector.accepted, vector.why


class Moving(LocalStore):
    """A local store that moves a file after each listing of a folder."""

    def __init__(self, moves: list[tuple[Path, Path]]) -> None:
        self.moves = moves

    def files(self, folder: str):
        found = super().files(folder)
        if self.moves:
            source, target = self.moves.pop(0)
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
        return found


@pytest.mark.parametrize("case", ["retire, half moved", "commit, half moved in", "abort"])
def test_files_move_meanwhile(tmp_path: Path, case: str) -> None:
    """A file that is moved during the listing is read exactly once, even if the listing contains
    both of its names or neither of them."""
    (vector,) = (v for v in vectors() if v.name == case)
    table = tmp_path / "t"
    vector.make(table)
    at_places = [table / name for name in vector.visible if (table / name).exists()]
    hidden = "_staging" if "commit" in case else "_retired"
    away = {n: table / "_zorder" / hidden / "_1" / f"_{n}.{hidden[1:].replace('ing', 'ed')}"
            for n in vector.visible}  # fmt: skip
    moves = [(away[n], table / n) for n in vector.visible if away[n].exists()]
    if case.startswith("retire"):
        moves = [(path, away[path.name]) for path in at_places]
    found = visible_files(Moving(moves), TableFolder(str(table)))
    assert not moves and [file.path for file in found] == vector.visible


def test_a_stray_file_beside_partitions(tmp_path: Path) -> None:
    """While all files of the partitions are moved, only a stray file is in its place."""
    (vector,) = (v for v in vectors() if v.name.startswith("file of a partition in a table"))
    table = tmp_path / "t"
    vector.make(table)
    (table / "b.parquet").rename(table / "README")
    paths = [file.path for file in visible_files(LocalStore(), TableFolder(str(table)))]
    assert paths == ["README", "day=1/new.parquet"]


def test_a_journal_that_changes_is_read_again(tmp_path: Path) -> None:
    (vector,) = (v for v in vectors() if v.name == "commit, half moved in")
    table = tmp_path / "t"
    vector.make(table)
    outcome = table / "_zorder" / "_journal" / "_1.outcome"
    later = outcome.rename(tmp_path / "later")
    store = Moving([(later, outcome)])
    assert [f.path for f in visible_files(store, TableFolder(str(table)))] == vector.visible


def test_a_journal_that_never_rests(tmp_path: Path) -> None:
    """If the journal keeps changing, the reader fails instead of retrying forever."""
    (tmp_path / "_zorder" / "_journal").mkdir(parents=True)
    count = iter(range(1, 10_000))

    class Restless(LocalStore):
        def files(self, folder: str):
            (tmp_path / "_zorder" / "_journal" / f"_{next(count)}.prepare").touch()
            return super().files(folder)

    with pytest.raises(RuntimeError, match="keeps changing"):
        visible_files(Restless(), TableFolder(str(tmp_path)))


def test_links(tmp_path: Path) -> None:
    """Links to partition folders are followed, even in a cycle, but links in `_zorder` are
    ignored."""
    (vector,) = (v for v in vectors() if v.name == "retire, half moved")
    table, elsewhere = tmp_path / "t", tmp_path / "elsewhere"
    vector.make(table)
    elsewhere.mkdir()
    (elsewhere / "c.parquet").touch()
    (table / "day=1").symlink_to(elsewhere)
    (elsewhere / "day=2").symlink_to(table)
    paths = [file.path for file in visible_files(LocalStore(), TableFolder(str(table)))]
    assert paths == ["a.parquet", "b.parquet", "day=1/c.parquet"]
    retired = table / "_zorder" / "_retired"
    retired.rename(elsewhere / "_retired")
    retired.symlink_to(elsewhere / "_retired")
    paths = [file.path for file in visible_files(LocalStore(), TableFolder(str(table)))]
    assert paths == ["b.parquet", "day=1/c.parquet"]
