"""On a local disk, an index file is either complete or absent, only one writer can create it, and a
deleted folder is not recreated."""

from __future__ import annotations

import contextlib
import inspect
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from pyzorder.index import local_files
from pyzorder.index.local_files import create_if_absent, linked, remove
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


@pytest.mark.parametrize("step", ["fsync", "mkdir"])
def test_permissions_of_a_file_outside_do_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Another user replaces a new file or folder by a link as soon as it exists."""
    outside, folder = tmp_path / "outside", tmp_path / "t" / "_zorder"
    outside.touch(0o600)
    folder.parent.mkdir(0o777)
    folder.parent.chmod(0o777)
    genuine = getattr(os, step)

    def replacing(*arguments: object) -> None:
        genuine(*arguments)
        for made in [*folder.glob("_temporary-*")] if step == "fsync" else [folder]:
            made.rmdir() if made.is_dir() else made.unlink()
            made.symlink_to(outside)

    monkeypatch.setattr(os, step, replacing)
    with contextlib.suppress(OSError):
        create_if_absent(str(folder / "x"), b"text")
    assert stat.S_IMODE(outside.stat().st_mode) == 0o600


def test_folders_that_links_reach_in_many_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_files, "_MOST_LINKED", 100)
    folders = [tmp_path / "t" / f"f{i}" for i in range(24)]
    for folder in folders:
        folder.mkdir(parents=True)
    for folder, following in pairwise(folders):
        for name in ("a", "b"):
            (folder / name).symlink_to(following)
    with pytest.raises(OSError, match="too many folders"):
        list(local_files.statuses(str(tmp_path / "t")))


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
    found = [path.removeprefix(f"{tmp_path}/") for path in LocalStore().files(str(tmp_path)).paths]
    assert sorted(found) == ["a/file", "b/file"]


def test_folders_nested_more_deeply_than_calls(tmp_path: Path) -> None:
    deepest = tmp_path.joinpath(*["d"] * 300)
    deepest.mkdir(parents=True)
    (deepest / "file").touch()
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        assert LocalStore().files(str(tmp_path)).paths == [str(deepest / "file")]
        assert local_files.strange_link(str(tmp_path)) is None
    finally:
        sys.setrecursionlimit(before)


def test_remove_takes_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    for path in ("x", "x", "y/z"):
        remove(str(tmp_path / path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("chunk", [1, 3, 10_000])
def test_statuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """Many files are examined in chunks, and a few files one by one, with the same result."""
    monkeypatch.setattr(local_files, "_CHUNK", chunk)
    top, seen = tmp_path / "t", {}
    for k, name in enumerate(["a", "b/c", "b/d/e", "p=1/f", "p=2/f", "p=2/g", "empty"]):
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * k if name != "empty" else b"")
        os.utime(
            path, ns=(0, -631_151_999_876_000_100 if k == 2 else 1_700_000_000_123_999_999 + k)
        )
        seen[str(path)] = (path.stat().st_size, path.stat().st_mtime_ns // 1_000_000)
    odd = os.fsdecode(os.fsencode(top) + b"/\xff")
    os.link(top / "a", odd)
    (top / "link").symlink_to("a")
    seen |= {odd: seen[f"{top}/a"], f"{top}/link": seen[f"{top}/a"]}
    (top / "folder").symlink_to("b")
    seen |= {f"{top}/folder/{name}": seen[f"{top}/b/{name}"] for name in ("c", "d/e")}
    for name, target in {"up": ".", "b/top": "..", "loop": "loop", "broken": "nowhere"}.items():
        (top / name).symlink_to(target)
    os.mkfifo(top / "pipe")
    found = {}
    for paths, sizes, times in local_files.statuses(str(top)):
        found |= dict(zip(paths, zip(sizes, times, strict=True), strict=True))
    assert found == seen
    assert list(local_files.statuses(f"{top}/none")) == [([], [], [])]


def test_hidden_folders_are_not_listed(tmp_path: Path) -> None:
    """Hidden folders are not listed, because a folder below `_zorder` may contain links that lead
    outside the table, or links that create exponentially many paths."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").touch()
    for hidden in ("_zorder", ".b", "a/_c"):
        (tmp_path / hidden).mkdir()
        (tmp_path / hidden / "x").touch()
        for number in range(60):
            inner = tmp_path / hidden / str(number)
            inner.mkdir()
            for link in ("first", "second"):
                (inner / link).symlink_to(tmp_path / hidden / str(number + 1))
    listed = LocalStore().files(str(tmp_path))
    assert listed.paths == [str(tmp_path / "a" / "x")]
