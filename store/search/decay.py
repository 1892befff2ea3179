"""How much a note's age takes from its score."""

from __future__ import annotations

from datetime import date

from memoryd.store.search.request import Decay


def age_in_days(written: date | None, today: date, *, evergreen: bool) -> int | None:
    """None = evergreen, which has no age. A future date counts as today."""
    if evergreen or written is None:
        return None
    return max(0, (today - written).days)


def decay_factor(age_days: int | None, decay: Decay) -> float:
    """``1 - strength + strength * 2^(-age / half_life)``; exactly 1 for what is evergreen."""
    if age_days is None:
        return 1.0
    return float(1 - decay.strength + decay.strength * 2 ** (-age_days / decay.half_life_days))
