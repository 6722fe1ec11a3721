"""Paths are converted to paths relative to the table's folder, unless they point outside the
folder."""

from __future__ import annotations

import pytest

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
    ("root", "path", "name"),
    [
        ("/t", "/t/p=1/x", "p=1/x"),
        ("/t", "/t/file:/victim/x", "file:/t/file:/victim/x"),
        ("s3a://b/t", "s3a://b/t/x", "x"),
        ("s3a://b/t", "s3a://b/t/s3a:/other/x", "s3a://b/t/s3a:/other/x"),
        ("/t", "/elsewhere/x", "/elsewhere/x"),
    ],
)
def test_names(root: str, path: str, name: str) -> None:
    """If a folder in the table has a name that looks like a URL scheme, a path through this folder
    remains in the table's folder."""
    assert TableFolder(root).relative(path) == name
