"""What a failure means: what it is called, and when it is tried again."""

from __future__ import annotations

from memoryd.store.errors import MemorydError
from memoryd.store.job_rows import LONGEST_WAIT_S

_FIRST_SECONDS = 2.0
_MOST_DOUBLINGS = 16  # far past the cap, and no number that grows without end


def backoff(attempts: int, most: float | None = None) -> float:
    """Seconds to wait after the n-th failure in a row (from 1): doubled each time, capped."""
    return float(min(most or LONGEST_WAIT_S, _FIRST_SECONDS * 2 ** min(max(1, attempts) - 1, _MOST_DOUBLINGS)))


def unforeseen(error: Exception) -> MemorydError:
    """An exception that is not ours, as one that is; what was raised is its cause."""
    hint = "This is a bug in memoryd; the log has the details"
    wrapped = MemorydError(f"unforeseen {type(error).__name__}", hint=hint)
    wrapped.__cause__ = error
    return wrapped
