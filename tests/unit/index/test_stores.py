"""Links below `_zorder`, which no store follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyzorder.index.stores import LocalStore


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
