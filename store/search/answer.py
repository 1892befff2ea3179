"""What is answered: hits, and what must be known to trust them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from memoryd.store.generations import Pending


@dataclass(frozen=True, slots=True)
class LegRank:
    """A chunk's place in one leg."""

    rank: int  # from 1
    score: float  # words, trigram: bm25, higher is better; vector: cosine of the best passage
    passage: int | None = None  # ordinal of the best passage, where the leg knows it


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk on its way through the pipeline."""

    chunk_id: int
    legs: dict[str, LegRank]
    fused: float  # 0..1
    decay: float = 1.0
    age_days: int | None = None  # None = evergreen

    @property
    def score(self) -> float:
        return self.fused * self.decay


@dataclass(frozen=True, slots=True)
class Lines:
    """A range of lines of a document, from 1, both included."""

    start: int
    end: int


Stage = Literal["duplicate", "neighbour", "min_score", "limit"]


@dataclass(frozen=True, slots=True)
class Lost:
    """A candidate that is not among the hits, and why."""

    candidate: Candidate
    stage: Stage
    by: int | None = None  # the chunk that stands for it: its duplicate, its neighbour


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked chunk, ready to be cited."""

    id: str
    workspace: str
    path: str
    start_line: int
    end_line: int
    heading: str
    source: str
    date: date | None
    score: float
    snippet: str
    best: Lines
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Degraded:
    """A leg that should have run and did not."""

    leg: str
    reason: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    query: str
    hits: list[Hit]
    pending: list[Pending]
    degraded: Degraded | None
    timings: dict[str, float] = field(default_factory=dict)  # stage -> milliseconds
    candidates: dict[str, int] = field(default_factory=dict)  # leg -> chunks it brought
    lost: list[Lost] = field(default_factory=list)  # candidates that did not become hits
