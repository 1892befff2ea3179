"""How the vector side is, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["starting", "installing", "loading", "ready", "failed", "off", "stopped"]


@dataclass(frozen=True, slots=True)
class SemanticsStatus:
    state: State
    reason: str | None = None  # why it is not ready
    hint: str | None = None
    stage: str | None = None  # what an installation is doing
    done: int = 0
    total: int | None = None
    model: str | None = None
    fingerprint: str | None = None
    dimension: int | None = None
    next_retry: float | None = None  # unix time


@dataclass(frozen=True, slots=True)
class Switching:
    """The change to another model, while the one before is searched on."""

    model: str | None  # None: it is not loaded yet
    fingerprint: str | None
    done: int  # passages that have their vector in the new generation
    total: int  # passages that want one
    reason: str | None  # why there is no getting on
    hint: str | None
