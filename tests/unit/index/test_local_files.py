"""On a local disk, an index file is either complete or absent, only one writer can create it, and
a deleted folder is not created again."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyzorder.index.local_files import create_if_absent, linked, remove, walk
from pyzorder.index.stores import LocalStore


def test_one_writer_wins(tmp_path: Path) -> None:
    path = tmp_path / "_zorder" / "_index" / "pointer"
    texts = [f"writer {i}".encode() * 1000 for i in range(16)]
    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(lambda text: create_if_absent(str(path), text), texts))
    assert won.count(True) == 1 and path.read_bytes() == texts[won.index(True)]
    assert [file.name for file in path.parent.iterdir()] == ["pointer"]


def test_a_taken_name_keeps_its_file(tmp_path: Path) -> None:
    path = tmp_path / "_zorder" / "x"
    assert create_if_absent(str(path), b"first") and not create_if_absent(str(path), b"second")
    assert path.read_bytes() == b"first"


def test_a_dropped_table_does_not_come_back(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        create_if_absent(str(tmp_path / "dropped" / "_zorder" / "_index" / "x"), b"")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755, 0o777])
def test_permissions_are_those_of_the_folder(tmp_path: Path, mode: int) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t").chmod(mode)
    create_if_absent(str(tmp_path / "t" / "_zorder" / "_index" / "x"), b"")
    made = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "t").rglob("*")}
    assert made == {"_zorder": mode, "_index": mode, "x": mode & 0o666}


def test_links_below_the_folder_are_found(tmp_path: Path) -> None:
    (tmp_path / "t" / "_zorder").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "t")
    (tmp_path / "t" / "_zorder" / "_index").symlink_to(tmp_path)
    assert linked(f"{tmp_path}/t/_zorder/_index/x")
    assert not linked(f"{tmp_path}/link/_zorder/_journal/x")  # links above the table are allowed
    assert not linked(f"{tmp_path}/link/x")


def test_a_circle_of_links_is_walked_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").touch()
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "dangling").symlink_to("/nowhere")
    os.mkfifo(tmp_path / "pipe")
    assert sorted(LocalStore().files(str(tmp_path))) == sorted(p for p, _ in walk(str(tmp_path)))
    found = [path.removeprefix(f"{tmp_path}/") for path, _ in walk(str(tmp_path))]
    assert found == ["a/file", "b/file"]


def test_remove_takes_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    for path in ("x", "x", "y/z"):
        remove(str(tmp_path / path))
    assert not list(tmp_path.iterdir())
