"""What a burst of work has left in memory, given back once it is over.

Writing vectors runs through most of LanceDB's code, and leaves freed memory in the heaps of its threads. A search of
the mirror needs neither.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from memoryd.jobs.garbage import clear_up
from memoryd.jobs.native_memory import release_code, trim_heap
from memoryd.store.native_thread import name_thread

QUIET_S: Final = 10.0  # without a job, and the burst is over
_LIBRARIES: Final = ("/lancedb/", "/pyarrow/")  # by their folders; the others are at work in every search


def give_back() -> None:
    clear_up()
    trim_heap()
    release_code(_LIBRARIES)


class SpareMemory:
    """Waits for work, then for its end: while there is none, nothing wakes up."""

    def __init__(self, quiet_s: float = QUIET_S, give_back: Callable[[], object] = give_back) -> None:
        self._quiet_s = quiet_s
        self._give_back = give_back
        self._worked = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spare-memory", daemon=True)

    def note_work(self) -> None:
        self._worked.set()

    def start(self) -> None:
        """A start is work too."""
        self._worked.set()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._worked.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        name_thread()
        while True:
            self._worked.wait()
            while self._worked.is_set():
                self._worked.clear()
                if self._stop.wait(self._quiet_s):
                    return
            self._give_back()
