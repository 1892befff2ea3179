"""Programs that memoryd is used from: where one is not installed, its tests are skipped and the summary names it."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def find_program(name: str) -> str:
    """The program's path."""
    return shutil.which(name) or leave_out(name, f"{name} is not installed")


def leave_out(program: str, reason: str) -> NoReturn:
    """Skips the test; fails it for a program that ``REQUIRED_PROGRAMS`` names, as in CI."""
    if program in os.environ.get("REQUIRED_PROGRAMS", "").split():
        pytest.fail(f"{reason}, and REQUIRED_PROGRAMS names it")
    pytest.skip(reason)
