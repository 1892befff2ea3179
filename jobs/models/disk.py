"""Files on this disk: their hash, their durability, and what a full or forbidden disk is called."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoryd.store.errors import StoreFull, StoreUnavailable


def hash_file(path: Path) -> str:
    """The sha256 of its bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def publish(part: Path, destination: Path) -> None:
    """Let a finished file appear under its name, whole even after a power cut."""
    _sync(part)
    part.replace(destination)
    _sync(destination.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn the system's errors while ``path`` is written into ours."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "Free some space and try again; a download goes on where it stopped."
            raise StoreFull(f"no room left for {path}", hint=hint) from error
        hint = "Check that the folder exists and belongs to you."
        raise StoreUnavailable(f"{path} cannot be written: {error.strerror or error}", hint=hint) from error
