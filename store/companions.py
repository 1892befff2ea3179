"""Threads that work beside whoever asks, each on another core than theirs."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

Result = TypeVar("Result")


def send_away(thread: int) -> None:
    """Have a thread of ours run on any core that is allowed but the one that this thread is on.

    A thread that sleeps is woken where its waker runs, unless another core is idle. On a virtual machine one that has
    slept does not count as idle (the hypervisor has taken it away): both threads would share a core for milliseconds,
    and leave the other one alone. Only who does the waking can help it: the one that sleeps is not running.
    """
    others = os.sched_getaffinity(0) - {_current_core()}
    if others:
        os.sched_setaffinity(thread, others)


class Companions:
    """As many as are needed at once; who was idle last is asked first."""

    def __init__(self, name: str, send_away: Callable[[int], None] = send_away) -> None:
        self._name = name
        self._send_away = send_away
        self._idle: deque[_Companion] = deque()

    @contextmanager
    def beside(self, work: Callable[[], Result]) -> Iterator[Future[Result]]:
        """Work on another thread, in this context: what is cancelled is not begun. It has ended when the block ends,
        for what is used here is lent to it."""
        try:
            companion = self._idle.pop()
        except IndexError:
            companion = _Companion(self._name)
        try:
            self._send_away(companion.thread)
        except OSError:  # a sandbox forbids it: that costs time, and nothing else
            self._send_away = _stay
        coming = companion.executor.submit(copy_context().run, work)
        try:
            yield coming
        finally:
            wait((coming,))
            self._idle.append(companion)


class _Companion:
    def __init__(self, name: str) -> None:
        self.executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self.thread = self.executor.submit(threading.get_native_id).result()


def _stay(_thread: int) -> None:
    """Leave it where it is."""


_current_core = ctypes.PyDLL(None).sched_getcpu
