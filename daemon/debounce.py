"""When a changed file is ready to be read. Pure: time is given."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class _Waiting:
    first: float
    due: float


class Debounce:
    """A finished save is due at once; a stream of modifications when it pauses, or has gone on for a while."""

    def __init__(self, settle_s: float, longest_s: float = 2.0) -> None:
        self._settle_s = settle_s
        self._longest_s = max(longest_s, settle_s)
        self._waiting: dict[str, _Waiting] = {}

    def note(self, path: str, now: float, *, finished: bool) -> None:
        """Something happened to a path; ``finished`` if nothing more is to follow (closed, renamed, deleted)."""
        waiting = self._waiting.setdefault(path, _Waiting(first=now, due=now))
        waiting.due = now if finished else min(now + self._settle_s, waiting.first + self._longest_s)

    def take_due(self, now: float) -> list[str]:
        due = [path for path, waiting in self._waiting.items() if waiting.due <= now]
        for path in due:
            del self._waiting[path]
        return due

    def next_due(self) -> float | None:
        return min((waiting.due for waiting in self._waiting.values()), default=None)
