"""Whose turn it is on the processor: one user of an embedder at a time, and queries go first."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from memoryd.store.interruption import Interruption

_BURST_S = 0.05  # after a query, how soon the next of a burst comes
_MOST_PATIENCE_S = 0.25  # so long a batch of indexing waits for a burst to end
_CROWD_S = 2.0  # after the last query, so long batches stay small


class Turns:
    """One user of the embedder at a time; a waiting query goes before the next batch of indexing.

    A batch that can be let go of is, and embedded again afterwards. Queries come in bursts, so indexing also holds
    back a moment after each, though not for long.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._busy = False
        self._interruption: Interruption | None = None  # of who has the turn, if it can be asked to let go
        self._queries = 0
        self._quiet_at = 0.0  # monotonic time at which no further query is expected

    @contextmanager
    def query(self) -> Iterator[None]:
        with self._condition:
            self._wait_for_turn(None)
        try:
            yield
        finally:
            self._quiet_at = time.monotonic() + _BURST_S
            self._leave()

    def waiting(self) -> int:
        """Queries that wait for their turn."""
        return self._queries

    def crowded(self) -> bool:
        """Whether queries come in: one waits, or came a moment ago."""
        return self._queries > 0 or time.monotonic() < self._quiet_at + _CROWD_S

    @contextmanager
    def indexing(self, *, patient: bool = True, interruption: Interruption | None = None) -> Iterator[None]:
        """``interruption``: where a query says that it waits."""
        with self._condition:
            patience = time.monotonic() + (_MOST_PATIENCE_S if patient else 0.0)
            while (wait := min(self._quiet_at, patience) - time.monotonic()) > 0:
                self._condition.wait(wait)
            self._condition.wait_for(lambda: not self._busy and not self._queries)
            self._busy, self._interruption = True, interruption
        try:
            yield
        finally:
            self._leave()

    @contextmanager
    def last(self, timeout: float) -> Iterator[bool]:
        """For the end: whether the embedder came free in time. Whoever waits gets its turn afterwards."""
        with self._condition:
            free = self._wait_for_turn(timeout)
        try:
            yield free
        finally:
            if free:
                self._leave()

    def _wait_for_turn(self, timeout: float | None) -> bool:
        """Before all indexing. Returns whether it came in time."""
        if self._interruption is not None:
            self._interruption.wish()
        self._queries += 1
        free = self._condition.wait_for(lambda: not self._busy, timeout)
        self._queries -= 1
        self._busy = True  # if it did not come, with another still
        return free

    def _leave(self) -> None:
        with self._condition:
            self._busy, self._interruption = False, None
            self._condition.notify_all()
