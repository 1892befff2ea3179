"""What is answered: hits, and what must be known to trust them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Literal, NamedTuple

from memoryd.store.generations import Pending
from memoryd.store.scope import GLOBAL
from memoryd.store.search.period import Period


class LegRank(NamedTuple):
    """A chunk's place in one leg."""

    rank: int  # from 1
    score: float  # words, trigram: bm25, higher is better; vector: cosine of the best passage
    share: float = 0.0  # of what a perfect match would score, 0..1: comparable between legs and between queries
    passage: int | None = None  # ordinal of the best passage, where the leg knows it


Ranking = dict[int, LegRank]  # what a leg brings: chunk id -> place, best first


@dataclass(frozen=True, slots=True)
class Weight:
    """What a leg counts for one query, and why."""

    prior: float  # as configured
    noise: float  # share of its best hit for nonsense
    best: float  # share of its best hit for this query
    value: float
    standout: float = 0.0  # how far its best hit stands out from the sixth, 0..1


@dataclass(frozen=True, slots=True)
class MmrStep:
    """What MMR made of a candidate."""

    place: int  # by its score alone, from 1
    similarity: float  # 0..1, to the nearest of those that were chosen before it
    nearest: int  # that one's chunk


@dataclass(frozen=True, slots=True)
class RerankStep:
    """What the reranker made of a candidate."""

    score: float  # of the passage that answers best, as the model gives it
    confidence: float  # the same as 0..1
    passage: int  # its ordinal
    place: int = 0  # without it, from 1
    relevance: float = 0.0  # without it


class NamedStep(NamedTuple):
    """What it made of a candidate when it was written, the query naming days."""

    days_away: int  # from these; < 0 = before them
    relevance: float  # without it


class BestPassage(NamedTuple):
    """The passage of a chunk that has most of the query, by words and meaning together."""

    share: float  # 0..1, of the query
    ordinal: int
    part: float = 0.0  # of the chunk's fused score that is this share


@dataclass(frozen=True, slots=True)
class Newer:
    """A candidate that was put before an older one that says alike things."""

    than: int  # the older one's chunk
    score: float  # the older one's, which it has from then on


class Candidate(NamedTuple):
    """A chunk on its way through the pipeline."""

    chunk_id: int
    legs: dict[str, LegRank]
    fused: float  # 0..1, what the legs say together
    relevance: float = 0.0  # 0..1, the same made comparable between queries
    decay: float = 1.0
    age_days: int | None = None  # None = evergreen
    named: NamedStep | None = None  # None = the query names no days, or it is evergreen
    rerank: RerankStep | None = None  # None = nothing of it was read
    newer: Newer | None = None  # None = it stands where its own score puts it
    mmr: MmrStep | None = None  # None = MMR is off, or nothing was chosen before it
    best: BestPassage | None = None  # None = its passages were not looked at one by one

    @property
    def score(self) -> float:
        return self.newer.score if self.newer else self.relevance * self.decay


@dataclass(frozen=True, slots=True)
class Lines:
    """A range of lines of a document, from 1, both included."""

    start: int
    end: int


Stage = Literal["abstain", "duplicate", "neighbour", "min_score", "limit"]
Embedding = Literal["computed", "cached"]


class Lost(NamedTuple):
    """A candidate that is not among the hits, and why."""

    candidate: Candidate
    stage: Stage
    by: int | None = None  # the chunk that stands for it: its duplicate, its neighbour


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a fact comes from."""

    workspace: str
    path: str
    lines: Lines

    @property
    def citation(self) -> str:
        return f"{self.path}#L{self.lines.start}-L{self.lines.end}"


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
    scope: str = GLOBAL  # who the document is for
    superseded: bool = False  # the document is out of date, and the query wants to see it all the same
    superseded_by: str | None = None  # path of the document to read instead, where it is known
    snippet_line: int = 1  # the line that the snippet begins in
    highlights: tuple[tuple[int, int], ...] = ()  # [start, end) in the snippet: what was asked for, in code points
    merged: tuple[str, ...] = ()  # ids of overlapping chunks whose lines are among these
    nearest: str | None = None  # id of the chunk that MMR found it most like
    newer_than: str | None = None  # id of the chunk that it was put before, being newer
    origin: Origin | None = None  # of a fact

    @property
    def citation(self) -> str:
        return f"{self.path}#L{self.start_line}-L{self.end_line}"


@dataclass(frozen=True, slots=True)
class Degraded:
    """A leg that should have run and did not."""

    leg: str
    reason: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Absence:
    """Why there are no hits."""

    reason: str
    hint: str | None
    best_score: float  # of what was looked at


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why the hits may well answer something else."""

    reason: str
    hint: str
    relevance: float  # of the best candidate


@dataclass(frozen=True, slots=True)
class HydeReport:
    """What became of the wish for a hypothetical answer."""

    used: bool
    text: str | None = None  # the hypothesis, where it was used
    reason: str | None = None  # why the plain query was embedded instead
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class RerankReport:
    """What became of the wish that the best passages be read."""

    used: bool
    read: int = 0  # passages
    of: int = 0  # that there were to read
    reason: str | None = None  # why nothing was read
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    query: str
    hits: list[Hit]
    pending: list[Pending]
    degraded: Degraded | None
    timings: dict[str, float] = field(default_factory=dict)  # stage -> milliseconds
    candidates: dict[str, int] = field(default_factory=dict)  # leg -> chunks it brought
    weights: dict[str, Weight] = field(default_factory=dict)  # leg -> what it counted
    lost: list[Lost] = field(default_factory=list)  # candidates that did not become hits
    absence: Absence | None = None  # None = there are hits
    least: float = 0.0  # relevance that the best candidate must have, or there are no hits
    doubt: Doubt | None = None  # None = there are none, or the best is as relevant as an answer
    missing: tuple[str, ...] = ()  # words of the query that nothing has that it may see
    hyde: HydeReport | None = None  # None = not asked for
    rerank: RerankReport | None = None  # None = not asked for
    embedding: Embedding | None = None  # where the query's vector came from; None = there is none
    period: Period | None = None  # the days that the query names; None = none that anything was written in
