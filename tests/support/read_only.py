"""A folder that turns read-only, and writable again, under a process that has files open there.

The kernel refuses to remount a file system on which files are open for writing, and one that gives up by itself does
not come back: so what the system calls answer is changed for one process. ``ext4_disk`` is the real thing, one way.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.mounts import mount, unmount

_SOURCE = Path(__file__).with_name("read_only.c")


@dataclass
class ReadOnly:
    """Whatever begins with ``below``, while it is set."""

    folder: Path  # of the test's own
    below: Path

    def __post_init__(self) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("there is no C compiler")
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(self._library), str(_SOURCE), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)

    @property
    def env(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self._library),
            "READ_ONLY_BELOW": str(self.below),
            "READ_ONLY_WHILE": str(self._flag),
        }

    def set(self) -> None:
        self._flag.touch()

    def lift(self) -> None:
        self._flag.unlink()

    @property
    def _library(self) -> Path:
        return self.folder / "read_only.so"

    @property
    def _flag(self) -> Path:
        return self.folder / "read_only"


class Disk:
    """An ext4 file system in a file, as one that meets an error: it turns read-only under whoever uses it."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        self._image = folder.with_suffix(".img")
        if shutil.which("mkfs.ext4") is None:
            pytest.skip("mkfs.ext4 is not installed")
        with self._image.open("wb") as image:
            image.truncate(megabytes * 2**20)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self._image)], check=True, capture_output=True)
        folder.mkdir()

    def mount(self) -> None:
        mount("-o", "loop,errors=remount-ro", str(self._image), str(self.folder))

    def give_up(self) -> None:
        mount("-o", "remount,abort", str(self.folder))

    def repair(self) -> None:
        """What a person does, once nobody uses it any more."""
        subprocess.run(["umount", str(self.folder)], check=True)
        subprocess.run(["e2fsck", "-p", str(self._image)], check=False, capture_output=True)
        self.mount()


@contextmanager
def ext4_disk(folder: Path, megabytes: int) -> Iterator[Disk]:
    disk = Disk(folder, megabytes)
    disk.mount()
    try:
        yield disk
    finally:
        unmount(folder)
