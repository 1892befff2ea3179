"""Real file systems of a test's own; where mounting is not permitted, the test is skipped and says so."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system of so many megabytes."""
    folder.mkdir(parents=True, exist_ok=True)
    mount("-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        unmount(folder)


def mount(*words: str) -> None:
    if subprocess.run(["mount", *words], capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not permitted here")


def unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Take every byte that is left."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    assert os.statvfs(disk).f_bavail == 0
    return ballast
