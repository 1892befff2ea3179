"""Waiting for what happens elsewhere: on a condition, with a deadline, never for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

PATIENCE_S = 60.0  # a busy machine is slow, not wrong
_POLL_S = 0.02


def eventually(look: Callable[[], Found], within: float = PATIENCE_S, what: str = "") -> Found:
    """What ``look`` gives as soon as that is true; fails at the deadline with what it gave last."""
    deadline = time.monotonic() + within
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"after {within:g} s still not: {what or 'the condition'} (last seen: {found!r})")
        time.sleep(_POLL_S)
    return found
