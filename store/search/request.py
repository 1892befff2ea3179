"""What is asked, and how it is to be answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal, Protocol

from memoryd.store.model import SESSIONS
from memoryd.store.protocols import VectorIndex, Vectors

Fusion = Literal["weighted", "rrf"]
HydeMode = Literal["average", "replace"]


@dataclass(frozen=True, slots=True)
class Decay:
    half_life_days: float = 30.0
    strength: float = 0.2  # 0 = dates do not matter, 1 = the full formula
    nearly: float = 0.75  # part of an older note's score that a newer one alike must have to go before it; 1 = never


@dataclass(frozen=True, slots=True)
class NamedDays:
    """What it counts that a note was written in the days that a query names."""

    strength: float = 0.5  # 0 = nothing: what a query says of days is words
    half_life_days: float = 7.0  # that far from them it counts half


@dataclass(frozen=True, slots=True)
class Mmr:
    """Maximal marginal relevance: a hit that says what a better one has said comes later."""

    enabled: bool = False
    relevance: float = 0.7  # the lambda: 1 = the ranking as it is, 0 = only novelty counts


@dataclass(frozen=True, slots=True)
class Hyde:
    """Whether a made-up answer is embedded beside the query or in its place."""

    enabled: bool = False
    mode: HydeMode = "average"


@dataclass(frozen=True, slots=True)
class Rerank:
    """Whether a cross-encoder reads the best passages, for how long, and what its word counts."""

    enabled: bool = False
    budget_ms: float = 400.0
    weight: float = 0.275  # 0 = nothing, 1 = the first stage does not count


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How every query is answered unless it says otherwise."""

    limit: int = 6
    min_score: float = 0.05
    abstain: float = 0.1  # relevance: if even the best candidate has less, the memory has no answer; 0 = never
    doubt: float = 0.2  # relevance: if even the best candidate has less, the hits are called doubtful; 0 = never
    candidates: int = 20  # chunks that each leg brings; fixed, so that `limit` never changes the ranking
    fusion: Fusion = "weighted"
    adaptive: bool = True  # weigh the legs query by query, the weights being where that starts from
    weights: Mapping[str, float] = field(default_factory=lambda: {"words": 1.0, "trigram": 0.5, "vector": 1.0})
    concentration: float = 0.3  # of a score, what its best passage has of the query by itself; 0 = nothing
    rrf_k: float = 10.0
    decay: Decay = field(default_factory=Decay)
    named_days: NamedDays = field(default_factory=NamedDays)
    mmr: Mmr = field(default_factory=Mmr)
    hyde: Hyde = field(default_factory=Hyde)
    rerank: Rerank = field(default_factory=Rerank)
    snippet_chars: int = 700

    def limit_of(self, query: SearchQuery) -> int:
        """The hits that a query asks for."""
        return self.limit if query.limit is None else query.limit

    def min_score_of(self, query: SearchQuery) -> float:
        """What a hit must score for a query."""
        return self.min_score if query.min_score is None else query.min_score


@dataclass(frozen=True, slots=True)
class SearchQuery:
    text: str
    today: date  # what ages are counted from
    limit: int | None = None
    min_score: float | None = None
    workspaces: tuple[str, ...] = ()  # empty = all
    sources: tuple[str, ...] = ()  # empty = all but those that are seen only when asked for
    paths: tuple[str, ...] = ()  # globs; empty = all
    scope: str | None = None  # sees global and its own; None = sees everything
    exclude: tuple[str, ...] = ()  # ids of chunks, or paths, that the caller has already
    after: date | None = None  # only what is dated this day or later
    before: date | None = None  # only what is dated this day or earlier
    as_of: date | None = None  # as if it were this day: what is dated later is invisible
    include_superseded: bool = False
    hyde: bool | None = None  # None = as configured
    rerank: bool | None = None  # None = as configured
    explain: bool = False
    hidden_sources: tuple[str, ...] = ()  # seen only when asked for: by name, or transcripts by the scope of a session

    def unasked_sources(self) -> tuple[str, ...]:
        asked = (*self.sources, *([SESSIONS] if self.scope and self.scope.startswith("session:") else []))
        return tuple(source for source in self.hidden_sources if source not in asked)


class Semantics(Protocol):
    """What the vector leg needs: one generation, whole. Raises a MemorydError with the reason while it is not there."""

    @property
    def fingerprint(self) -> str | None:
        """Of the generation whose embedder and index these are."""

    def knows_query(self, text: str) -> bool:
        """Whether the query's vector is at hand, and nothing has to be embedded for it."""

    def embed_query(self, text: str) -> Vectors: ...

    def embed_passage(self, text: str) -> Vectors: ...

    def index(self) -> VectorIndex: ...
