"""Stores do not follow unsafe links, and do not read files that are too large."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyzorder.index.stores import LONGEST, ArrowStore, LocalStore


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


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_file_that_is_too_long_is_not_read(tmp_path: Path, scheme: str) -> None:
    """A file that is too large is not read, even if it is sparse and takes almost no space on
    disk."""
    long = tmp_path / "_v1.json"
    long.touch()
    store = ArrowStore(f"file://{tmp_path}") if scheme else LocalStore()
    os.truncate(long, LONGEST + 1)
    with pytest.raises(FileNotFoundError, match="too large to be a pyzorder file"):
        store.read(f"{scheme}{long}")
    long.write_text("{}")
    assert store.read(f"{scheme}{long}") == b"{}"
