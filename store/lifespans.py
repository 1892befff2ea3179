"""How long a fact lasts, by its decay class: when it expires, and how its age counts meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Lifespan:
    days: int | None  # until it expires, and its half life in the ranking; None: it neither expires nor fades
    refreshed: bool  # whether a use begins the days anew


LIFESPANS: Final[Mapping[str, Lifespan]] = {
    "permanent": Lifespan(None, refreshed=False),
    "durable": Lifespan(90, refreshed=True),
    "normal": Lifespan(30, refreshed=True),
    "short": Lifespan(7, refreshed=False),
    "ephemeral": Lifespan(1, refreshed=False),
}
DEFAULT_CLASS: Final = "durable"
_OTHER_NAMES: Final = {"stable": "durable"}


def decay_class(name: object) -> str | None:
    """The class of this name, or of another name for it; None: there is none."""
    if not isinstance(name, str):
        return None
    name = name.strip().lower()
    name = _OTHER_NAMES.get(name, name)
    return name if name in LIFESPANS else None
