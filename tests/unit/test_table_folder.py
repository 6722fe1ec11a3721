"""Names in a table's folder that lead elsewhere: pyzorder.index.table_folder and journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyzorder.index.journal import JournalState
from pyzorder.index.stores import LocalStore
from pyzorder.index.table_folder import TableFolder, leaves

LEAVING = [
    "", "/etc/passwd", "../other/x", "x/../../other", "./x", "a//b", "a/./b", "a\0b",
    "file:/t/../other/x", "file:/t/./x", "file:/t//x", "s3a://bucket//x",
    "s3a://bucket/t/../x",
]  # fmt: skip

INSIDE = ["x", "day=1/x", "a..b/..c/x.", "day=a:b/x", "file:/elsewhere/x", "s3a://bucket/t/x"]


@pytest.mark.parametrize("name", LEAVING)
def test_leaving(name: str) -> None:
    assert leaves(name)


@pytest.mark.parametrize("name", INSIDE)
def test_inside(name: str) -> None:
    assert not leaves(name)


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


@pytest.mark.parametrize("link", ["_zorder", "_zorder/_journal", "_zorder/_journal/_3.prepare"])
def test_links_lead_nowhere(tmp_path: Path, link: str) -> None:
    table, other = tmp_path / "t", tmp_path / "other"
    (table / "_zorder" / "_journal").mkdir(parents=True)
    (table / "_zorder" / "_journal" / "_3.prepare").write_text("{}")
    (table / link).rename(other)
    (table / link).symlink_to(other)
    store = LocalStore()
    with pytest.raises(FileNotFoundError):
        store.read(f"{table}/_zorder/_journal/_3.prepare")
    if not link.endswith(".prepare"):
        assert store.names(f"{table}/_zorder/_journal") == []
