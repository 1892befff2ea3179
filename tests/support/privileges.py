"""Permissions that hold: root may read everything, so a test about unreadable files must not be root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

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
def public_folder() -> Iterator[Path]:
    """A folder that nobody can reach: those of pytest are private to their owner."""
    folder = Path(tempfile.mkdtemp(prefix="memoryd-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        folder.chmod(0o755)
        for inside, folders, _ in os.walk(folder):  # who is not root cannot look into what nobody may
            for name in folders:
                Path(inside, name).chmod(0o755)
        shutil.rmtree(folder)


def without_privileges() -> tuple[str, ...]:
    """A command that starts another one for which a file's rights hold, whoever we are."""
    if os.geteuid() != 0:
        return ()
    rights = "-dac_override,-dac_read_search"
    command = ("setpriv", f"--inh-caps={rights}", f"--bounding-set={rights}")
    if shutil.which("setpriv") is None or subprocess.run([*command, "true"], check=False).returncode != 0:
        pytest.skip("root's privileges cannot be given up here")
    return command
