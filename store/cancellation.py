"""Whether anybody still wants the result of the work in hand.

The work runs in a context that carries its cancellation, and asks between two stages, where stopping leaves nothing
half done. Work that nobody can cancel (a job, a test) never asks in vain: it simply goes on.
"""

from __future__ import annotations

from contextvars import ContextVar

from memoryd.store.errors import Cancelled


class Cancellation:
    """Set once, by any thread; never taken back."""

    __slots__ = ("cancelled",)

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


_current: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def carry(cancellation: Cancellation) -> None:
    """From now on, ``check_cancelled`` in this context and in copies of it looks at this cancellation."""
    _current.set(cancellation)


def check_cancelled() -> None:
    """Raises ``Cancelled`` if nobody wants the result any more."""
    cancellation = _current.get()
    if cancellation is not None and cancellation.cancelled:
        raise Cancelled
