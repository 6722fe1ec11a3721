"""Simulates full disks and read-only folders, for tests that run as root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def run(*command: str | Path) -> None:
    """Runs a system command. Skips the test if the command is missing or not permitted."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip(f"there is no {command[0]} on this machine")
    if done.returncode != 0:
        pytest.skip(f"{command[0]} is not allowed here: {done.stderr.strip()}")


class Disk:
    """An in-memory file system whose free space can be changed while it is in use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def leave(self, *, files: int | None = None, pages: int | None = None) -> None:
        """Limits the free space to the given number of new inodes (files, folders and hard links)
        or pages of data. A limit that is None is reset to its initial value."""
        if files is None:
            inodes = 100_000
        else:
            now = os.statvfs(self.folder)
            inodes = now.f_files - now.f_ffree + files
        if pages is None:
            blocks = 16_384
        else:
            now = os.statvfs(self.folder)
            blocks = now.f_blocks - now.f_bfree + pages
        run("mount", "-o", f"remount,nr_inodes={inodes},nr_blocks={blocks}", self.folder)

    @contextmanager
    def room(self, **left: int) -> Iterator[None]:
        """Limits the free space during the block, and restores it afterwards."""
        self.leave(**left)
        try:
            yield
        finally:
            self.leave()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Makes the file system read-only during the block."""
        run("mount", "-o", "remount,ro", self.folder)
        try:
            yield
        finally:
            run("mount", "-o", "remount,rw", self.folder)


@contextmanager
def small_disk(folder: Path) -> Iterator[Disk]:
    """Mounts a new file system on the folder for the duration of the block."""
    folder.mkdir()
    run("mount", "-t", "tmpfs", "-o", "nr_inodes=100000,nr_blocks=16384", "tmpfs", folder)
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Makes a file or folder immutable during the block. Nothing can be created or deleted in an
    immutable folder."""
    run("chattr", "+i", path)
    try:
        yield
    finally:
        run("chattr", "-i", path)
