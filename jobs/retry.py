"""When a failed job is tried again."""

from __future__ import annotations

_FIRST_SECONDS = 2.0
_MOST_SECONDS = 900.0


def backoff(attempts: int) -> float:
    """Seconds to wait after the n-th failure in a row (from 1): doubled each time, capped."""
    return float(min(_MOST_SECONDS, _FIRST_SECONDS * 2 ** (max(1, attempts) - 1)))
