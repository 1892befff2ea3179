"""What is asked, and how it is to be answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date


@dataclass(frozen=True, slots=True)
class Decay:
    half_life_days: float = 30.0
    strength: float = 0.2  # 0 = dates do not matter, 1 = the full formula


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How every query is answered unless it says otherwise."""

    limit: int = 6
    min_score: float = 0.0
    candidates: int = 100  # chunks that each leg may bring; fixed, so that `limit` never changes the ranking
    weights: Mapping[str, float] = field(default_factory=lambda: {"words": 1.0, "trigram": 0.5, "vector": 0.7})
    rrf_k: float = 10.0
    decay: Decay = field(default_factory=Decay)
    snippet_chars: int = 700


@dataclass(frozen=True, slots=True)
class SearchQuery:
    text: str
    today: date
    limit: int | None = None
    min_score: float | None = None
    workspaces: tuple[str, ...] = ()  # empty = all
    sources: tuple[str, ...] = ()  # empty = all
    paths: tuple[str, ...] = ()  # globs; empty = all
    explain: bool = False
