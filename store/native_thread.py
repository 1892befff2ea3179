"""What Linux knows of the calling thread: its name, and how much it gives way to others. Elsewhere nothing happens."""

from __future__ import annotations

import ctypes
import os
import sys
import threading

import structlog

log = structlog.get_logger()

_SET_NAME = 15  # PR_SET_NAME, at most 15 bytes


def name_thread() -> None:
    """Show Python's name of the thread in top, ps and /proc."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_NAME, threading.current_thread().name.encode()[:15])


def give_way(nice: int) -> None:
    """Let this thread, and those that it starts from here on, take the CPU and the disk after others.

    Linux has a niceness for each thread, and derives the priority on the disk from it. It cannot be taken back without
    privileges.
    """
    if sys.platform != "linux" or not nice:
        return
    thread = threading.get_native_id()
    try:
        os.setpriority(os.PRIO_PROCESS, thread, max(nice, os.getpriority(os.PRIO_PROCESS, thread)))
    except OSError as error:
        log.warning("not_nice", thread=threading.current_thread().name, reason=error.strerror)
