"""When embedding is paused for the sake of the machine, by configuration. Queries never are, nor is indexing by words.

Our own work is pressure like anybody's. So it takes pressure that lasts to pause it, it goes on as soon as there is
room, and it is never paused for longer than a bound: embedding gets on, however busy the machine is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from memoryd.jobs.surroundings import Surroundings, look_around
from memoryd.store.protocols import Clock

LOOK_S: Final = 5.0  # between two looks, and only while there is something to embed or somebody asks
WORK_S: Final = 15.0  # so long embedding goes on after there was room, or after a pause, whatever the pressure …
MOST_PAUSE_S: Final = 300.0  # … and so long pressure pauses it at most


@dataclass(frozen=True, slots=True)
class PauseSettings:
    on_battery: bool = False
    on_pressure: float = 0.0  # percent; 0: never

    @property
    def any(self) -> bool:
        return self.on_battery or self.on_pressure > 0


@dataclass(frozen=True, slots=True)
class Pause:
    reason: str
    since: float  # unix time
    until: float | None  # at the latest; None: as long as the reason lasts


@dataclass(frozen=True, slots=True)
class Course:
    """What was decided the last time."""

    pause: Pause | None = None
    working_until: float = 0.0  # pressure does not count before (unix time)


def decide(now: float, seen: Surroundings, settings: PauseSettings, before: Course) -> Course:
    """Whether embedding is paused from now on."""
    paused = before.pause
    if settings.on_battery and seen.on_battery:
        return before if paused and paused.until is None else Course(Pause("on battery", now, None))
    if not settings.on_pressure or seen.pressure is None or seen.pressure < settings.on_pressure:
        return Course(None, now + WORK_S)
    if paused and paused.until is not None:  # a clock that was set is no reason to wait longer
        return before if paused.since <= now < paused.until else Course(None, now + WORK_S)
    if now < before.working_until <= now + WORK_S:
        return before
    return Course(Pause("the machine is busy", now, now + MOST_PAUSE_S))


class Pauses:
    """Asked between two batches, and by status; any thread."""

    def __init__(self, settings: PauseSettings, clock: Clock, look: Callable[[], Surroundings] = look_around) -> None:
        self._settings = settings
        self._clock = clock
        self._look = look
        self._lock = threading.Lock()
        self._course = Course()
        self._looked_at: float | None = None

    def follow(self, settings: PauseSettings) -> None:
        with self._lock:
            if settings != self._settings:
                self._settings, self._course, self._looked_at = settings, Course(), None

    def now(self) -> Pause | None:
        """Why nothing is embedded at the moment; looked at every few seconds at most."""
        with self._lock:
            if not self._settings.any:
                return None
            now = self._clock()
            if self._looked_at is None or not 0 <= now - self._looked_at < LOOK_S:
                self._course = decide(now, self._look(), self._settings, self._course)
                self._looked_at = now
            return self._course.pause

    def looks_again_at(self) -> float | None:
        """When (unix time) a pause may be over; None: nothing is paused."""
        with self._lock:
            return None if self._course.pause is None or self._looked_at is None else self._looked_at + LOOK_S
