"""Permissions that hold: root may read everything, so a test about unreadable files must not be root."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def unprivileged() -> Iterator[None]:
    """Be nobody, if we are root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def public_folder(*, writable: bool = False) -> Iterator[Path]:
    """A folder that nobody can reach: those of pytest are private to their owner."""
    folder = Path(tempfile.mkdtemp(prefix="memoryd-"))
    folder.chmod(0o777 if writable else 0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
