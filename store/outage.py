"""When a store far away is asked again after it failed: later each time, and by one who looks first.

Nobody sleeps here. While it is held back whoever would write is told why at once, without a request: what is to be
written stays in the queue.
"""

from __future__ import annotations

import threading
from typing import Final

from memoryd.store.errors import VectorsAway
from memoryd.store.protocols import Clock, Hold

FIRST_S: Final = 2.0
LONGEST_S: Final = 300.0  # between two tries
LASTING_S: Final = 60.0  # after a refusal: a person has to do something first


class Outage:
    """Any number of threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._trouble: Hold | None = None  # from the first failure until something succeeds
        self._since = 0.0

    def trouble(self) -> Hold | None:
        """What was wrong the last time; None: it answered then."""
        return self._trouble

    def hold(self) -> Hold | None:
        """Why it is not asked now. A clock that was set back holds nothing."""
        with self._lock:
            trouble = self._trouble
            return trouble if trouble and self._since <= self._clock() < trouble.until else None

    def check(self) -> None:
        """Raise what it is held back for, if it is."""
        if hold := self.hold():
            raise VectorsAway(hold.reason, hint=hold.hint, lasting=hold.lasting)

    def fail(self, error: VectorsAway) -> None:
        """Hold it back, longer each time."""
        with self._lock:
            self._failures += 1
            wait = min(LONGEST_S, (LASTING_S if error.lasting else FIRST_S) * 2 ** min(self._failures - 1, 16))
            self._since = self._clock()
            self._trouble = Hold(error.message, error.hint, error.lasting, self._since + wait, queries=False)

    def succeed(self) -> None:
        if self._trouble is not None:
            with self._lock:
                self._failures, self._trouble = 0, None

    def release(self) -> None:
        """Ask at once: somebody may have put it right."""
        with self._lock:
            self._since = float("inf")
