"""Files in the journal's folder are ignored if their names are not valid record names.
test_visible_files.py tests what the records mean."""

from __future__ import annotations

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
