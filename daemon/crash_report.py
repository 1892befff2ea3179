"""What is left of a process that a native library ended: where each thread was, and that the next start tells of it.

Under systemd the report is in the service's StateDirectory=, elsewhere it goes to stderr. It names functions and lines
of code, nothing of what they worked on.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import structlog

log = structlog.get_logger()

NAME = "crash.log"
LAST = "crash.last.log"

_open: list[BinaryIO] = []  # until the process ends: when a report is due, nothing can be opened any more


def keep_crash_reports(environ: Mapping[str, str]) -> None:
    """From now on a fatal signal leaves a report. Never fails: a daemon without reports is still a daemon."""
    folder = environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if folder:
        with suppress(OSError):
            _tell_of_last(Path(folder))
            report = os.open(Path(folder) / NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            _open.append(os.fdopen(report, "ab", buffering=0))
            faulthandler.enable(_open[-1])
            return
    with suppress(OSError, RuntimeError, ValueError):  # stderr is closed, or no file
        faulthandler.enable()


def _tell_of_last(folder: Path) -> None:
    report = folder / NAME
    if report.exists() and report.stat().st_size:
        report.replace(folder / LAST)
        first = (folder / LAST).read_text(errors="replace").partition("\n")[0]
        log.error("crashed_last_time", reason=first, report=str(folder / LAST))
