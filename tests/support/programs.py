"""Programs that memoryd is used from: there, or the test is skipped by name; in CI they must be there."""

from __future__ import annotations

import os
import shutil

import pytest

REQUIRED = "MEMORYD_TEST_ALL_CLIENTS"  # .ci/run sets it: what it installs is never skipped


def find_program(name: str) -> str:
    """The program's path; skips the test where it is not installed."""
    path = shutil.which(name)
    if path is None:
        leave_out(f"{name} is not installed")
    return path


def leave_out(reason: str) -> None:
    """Skips the test for this reason, or fails it where nothing may be skipped."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"{reason}, and {REQUIRED} is set")
    pytest.skip(reason)
