"""Files in the journal's folder are ignored if their names are not valid record names.
test_visible_files.py tests what the records mean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyzorder.index.journal import JournalState
from pyzorder.index.stores import LocalStore
from pyzorder.index.table_folder import TableFolder


@pytest.mark.parametrize(
    "name",
    ["_99999999999999999999.done", "_9223372036854775807.done", "_0.done", "_07.done", "_٣.done"],
)
def test_numbers_of_no_run(tmp_path: Path, name: str) -> None:
    journal = tmp_path / "_zorder" / "_journal"
    journal.mkdir(parents=True)
    (journal / "_3.prepare").touch()
    (journal / name).touch()
    assert JournalState(LocalStore(), TableFolder(str(tmp_path))).run == 3


@pytest.mark.parametrize("number", [10**30, -(10**30), 1e30, 1 << 63])
def test_numbers_of_more_than_64_bits(tmp_path: Path, number: float) -> None:
    """A forged number is read as some 64-bit number, so it does not fit any file."""
    journal = tmp_path / "_zorder" / "_journal"
    journal.mkdir(parents=True)
    listed = [{"path": "a", "size": number, "modificationTime": number}]
    record = {"record": "retire", "incarnation": "x", "retire": listed, "add": [], "folders": []}
    (journal / "_1.retire").write_text(json.dumps(record))
    overlay = JournalState(LocalStore(), TableFolder(str(tmp_path))).overlay
    assert overlay is not None
    (file,) = overlay.shown
    assert -(1 << 63) <= file.size < 1 << 63 and -(1 << 63) <= file.modified < 1 << 63


@pytest.mark.parametrize("folders", [[[]], [{}], [1], [None], [False], "x", {}])
def test_folders_that_are_no_names(tmp_path: Path, folders: object) -> None:
    journal = tmp_path / "_zorder" / "_journal"
    journal.mkdir(parents=True)
    record = {"record": "retire", "incarnation": "x", "retire": [], "add": [],
              "folders": folders, "marked": [1]}  # fmt: skip
    (journal / "_1.retire").write_text(json.dumps(record))
    assert JournalState(LocalStore(), TableFolder(str(tmp_path))).overlay is None
