"""Embedders that nobody needs: those that were left, and models that have been idle for long.

A search may still hold the generation that was searched a moment ago, so its embedder stays open for a while. Each is
closed, or put to sleep, within a turn: nobody is at it then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from memoryd.jobs.embedders.sleeper import Sleeper
from memoryd.jobs.turns import Turns
from memoryd.store.protocols import Embedder

_GRACE_S = 30.0  # for queries that were handed out a generation which is no longer searched
_CLOSE_S = 5.0  # for an embedder to come free


class Departures:
    """Times are monotonic."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._changing = threading.Lock()
        self._leaving: list[tuple[float, Embedder]] = []  # when each is closed

    def add(self, embedder: Embedder) -> None:
        with self._changing:
            self._leaving.append((time.monotonic() + _GRACE_S, embedder))

    def take_back(self, embedder: Embedder) -> None:
        """It is in use again."""
        with self._changing:
            self._leaving = [entry for entry in self._leaving if entry[1] is not embedder]

    def embedders(self) -> list[Embedder]:
        return [embedder for _, embedder in self._leaving]

    def close_due(self, *, at_once: bool = False) -> list[float]:
        """Close those whose time is over. Returns when the others are to be looked at."""
        for entry in list(self._leaving):
            if at_once or entry[0] <= time.monotonic():
                with self._turns.last(_CLOSE_S) as free:
                    if free and self._leave(entry):  # one that is at work is closed the next time
                        entry[1].close()
        return [max(leaves, time.monotonic() + _CLOSE_S) for leaves, _ in self._leaving]

    def _leave(self, entry: tuple[float, Embedder]) -> bool:
        """Whether it was still leaving."""
        with self._changing:
            if is_leaving := entry in self._leaving:
                self._leaving.remove(entry)
            return is_leaving

    def put_to_sleep(self, sleepers: Iterable[Sleeper], after_s: float) -> list[float]:
        """Those that were idle for so long. Returns when the ones that are still needed are to be looked at."""
        at = []
        for sleeper in sleepers:
            if (idle := sleeper.idle_s()) is None:
                continue
            if idle < after_s:
                at.append(time.monotonic() + after_s - idle)
                continue
            with self._turns.last(_CLOSE_S) as free:
                if not (free and sleeper.sleep(after_s)):
                    at.append(time.monotonic() + _CLOSE_S)
        return at
