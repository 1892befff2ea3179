"""When a changed file is ready to be read. Pure: time is given."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class _Waiting:
    first: float
    due: float


class Debounce:
    """A finished save is due at once; a stream of changes when it pauses, or has gone on for a while.

    Saves in quick succession are such a stream: the first is due at once, the next after half the settling time.
    """

    def __init__(self, settle_s: float, longest_s: float = 2.0) -> None:
        self._settle_s = settle_s
        self._rest_s = settle_s / 2
        self._longest_s = max(longest_s, settle_s)
        self._waiting: dict[str, _Waiting] = {}
        self._taken: dict[str, float] = {}  # path -> when it was last due, for as long as that matters

    def note(self, path: str, now: float, *, finished: bool) -> None:
        """Something happened to a path; ``finished`` if nothing more is to follow (closed, renamed, deleted)."""
        waiting = self._waiting.setdefault(path, _Waiting(first=now, due=now))
        rested = self._taken.get(path, now - self._rest_s) + self._rest_s
        settled = max(now, rested) if finished else now + self._settle_s
        waiting.due = min(settled, waiting.first + self._longest_s)

    def take_due(self, now: float) -> list[str]:
        due = [path for path, waiting in self._waiting.items() if waiting.due <= now]
        for path in due:
            del self._waiting[path]
        self._taken = {path: at for path, at in self._taken.items() if at + self._rest_s > now}
        self._taken.update(dict.fromkeys(due, now))
        return due

    def next_due(self) -> float | None:
        return min((waiting.due for waiting in self._waiting.values()), default=None)
