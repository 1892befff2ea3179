"""When a provider is asked again after it failed: later each time, and after a refusal only if a person did something.

Nobody sleeps here. While it is held back, whoever asks is told why at once: a query goes on by words, and the embed
lane leaves its jobs in the queue.
"""

from __future__ import annotations

import threading
from typing import Final

from memoryd.store.errors import EmbedderRefused, ProviderUnavailable
from memoryd.store.protocols import Clock, Hold

FIRST_S: Final = 2.0
LONGEST_S: Final = 300.0  # between two tries of our own accord
LONGEST_ASKED_S: Final = 3600.0  # however long the server asks for; it is asked again then
LASTING_S: Final = 900.0  # after a refusal, unless the key changes or somebody asks for another try
REFUSALS: Final = 3  # in a row: then it is not the texts that are refused


class Breaker:
    """Any number of threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._refusals = 0
        self._hold: Hold | None = None
        self._since = 0.0

    def hold(self) -> Hold | None:
        """Why it is not asked now. A clock that was set back holds nothing."""
        with self._lock:
            if self._hold is not None and not self._since <= self._clock() < self._hold.until:
                self._hold = None
            return self._hold

    def check(self) -> None:
        """Raise what it is held back for, if it is."""
        if hold := self.hold():
            raise _error(hold)

    def fail(self, reason: str, hint: str, wait: float | None = None) -> ProviderUnavailable:
        """It did not answer: hold it back, longer each time, or for as long as it asked for."""
        with self._lock:
            self._failures += 1
            own = min(LONGEST_S, FIRST_S * 2 ** min(self._failures - 1, 16))
            self._set(reason, hint, max(own, min(wait or 0.0, LONGEST_ASKED_S)), lasting=False)
        return ProviderUnavailable(reason, hint=hint)

    def refuse(self, reason: str, hint: str, *, these_texts: bool) -> EmbedderRefused:
        """It will not; if only these texts are refused it is asked for others, but not for ever."""
        with self._lock:
            self._refusals += 1
            if not these_texts or self._refusals >= REFUSALS:
                self._set(reason, hint, LASTING_S, lasting=True)
        return EmbedderRefused(reason, hint=hint)

    def succeed(self) -> None:
        with self._lock:
            self._failures = self._refusals = 0
            self._hold = None

    def release(self) -> None:
        """Ask once more what refused: the next refusal holds it back again at once."""
        with self._lock:
            if self._hold is not None and self._hold.lasting:
                self._hold = None

    def _set(self, reason: str, hint: str, wait: float, *, lasting: bool) -> None:
        self._since = self._clock()
        self._hold = Hold(reason, hint, lasting, self._since + wait)


def _error(hold: Hold) -> ProviderUnavailable | EmbedderRefused:
    kind = EmbedderRefused if hold.lasting else ProviderUnavailable
    return kind(hold.reason, hint=hold.hint)
