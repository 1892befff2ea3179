"""What ``search`` and ``why_not`` answer, as types; the other methods' are in results.py."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

Lines = Annotated[int, "Counted from 1."]


class Fence(TypedDict):
    """The two lines around the text of notes; the nonce is this answer's alone."""

    nonce: str
    begin: Annotated[str, "What the first line begins with; the origin follows, as JSON."]
    end: Annotated[str, "The whole last line."]


class Degraded(TypedDict):
    """A leg that should have run and did not."""

    leg: str
    reason: str | None
    hint: str | None


class Absence(TypedDict):
    """Why there are no hits."""

    reason: str
    hint: str | None
    best_score: float


class Doubt(TypedDict):
    """Why the hits may well answer something else."""

    reason: str
    hint: str
    relevance: Annotated[float, "Of the best candidate, before its age is counted."]


class HydeReport(TypedDict):
    """What became of the wish for a hypothetical answer."""

    used: bool
    text: NotRequired[Annotated[str, "The hypothesis, with explain."]]
    reason: NotRequired[str | None]
    hint: NotRequired[str | None]


class RerankReport(TypedDict):
    """What became of the wish that a cross-encoder read the best passages."""

    used: bool
    read: NotRequired[Annotated[int, "Passages that were read."]]
    of: NotRequired[Annotated[int, "Passages that there were to read; the budget decides how many of them."]]
    reason: NotRequired[str | None]
    hint: NotRequired[str | None]


class Days(TypedDict):
    first: str
    last: Annotated[str, "Included."]


class Period(TypedDict):
    """The days that the query names, and of which there are notes: these come first."""

    said: Annotated[str, "As it stands in the query, in lower case."]
    days: Annotated[list[Days], "More than one where it names several, or a month of no year."]


class Pending(TypedDict):
    """A document that is not wholly searchable yet."""

    workspace: str
    path: str
    phase: Literal["text", "vectors"]


class Origin(TypedDict):
    """Where a fact or what was said in a session comes from."""

    workspace: str
    path: Annotated[str, "Of the file, relative to the workspace."]
    start_line: Lines
    end_line: Lines
    citation: Annotated[str, "PATH#LFROM-LTO in that workspace."]
    file: NotRequired[Annotated[str, "Of a session: the transcript."]]
    format: NotRequired[Literal["openclaw", "claude-code", "codex"]]
    session: NotRequired[str]


class LineRange(TypedDict):
    start_line: Lines
    end_line: Lines


class LegRank(TypedDict):
    rank: Annotated[int, "Counted from 1."]
    score: Annotated[float, "words, trigram: bm25; vector: cosine of the best passage."]
    share: Annotated[float, "Of what a perfect match would score, 0 to 1."]


class BestPassage(TypedDict):
    share: Annotated[float, "Of the query, what the chunk's best passage has by words and meaning together, 0 to 1."]
    part: Annotated[float, "Of the fused score that is this share; the legs are the rest (search.concentration)."]


class Mmr(TypedDict):
    place: int
    similarity: float
    nearest: str | None


class Rerank(TypedDict):
    score: Annotated[float, "Of the passage that answers best, as the model gives it."]
    confidence: Annotated[float, "The same, 0 to 1."]
    place: Annotated[int, "Without the reranker, from 1."]
    relevance: Annotated[float, "Without the reranker."]


class Newer(TypedDict):
    than: Annotated[str | None, "Id of the older chunk that says alike things, which it was put before."]
    own_score: Annotated[float, "Without that."]


class NamedStep(TypedDict):
    days_away: Annotated[int, "From the days that the query names, which ages are counted from; < 0: before them."]
    relevance: Annotated[float, "Without that."]


class HitExplanation(TypedDict):
    legs: dict[str, LegRank]
    fused: float
    relevance: float
    decay: float
    age_days: int | None
    named_days: NotRequired[NamedStep]
    passage: NotRequired[BestPassage]
    rerank: NotRequired[Rerank]
    newer: NotRequired[Newer]
    mmr: NotRequired[Mmr]


class Hit(TypedDict):
    """A ranked chunk, ready to be cited."""

    workspace: str
    path: Annotated[str, "Relative to the workspace."]
    start_line: Lines
    end_line: Lines
    citation: Annotated[str, "PATH#LFROM-LTO, which get takes."]
    score: Annotated[float, "0 to 1, and the same for every query."]
    snippet: str
    snippet_line: Annotated[int, "The line of the document that the snippet's text begins in."]
    highlights: Annotated[list[list[int]], "[start, end) in the snippet, in code points."]
    best: LineRange
    source: str
    heading: str
    date: Annotated[str | None, "Its day; null: evergreen or undated."]
    scope: str
    id: str
    merged: Annotated[list[str], "Ids of overlapping chunks whose lines are among these."]
    origin: NotRequired[Origin]
    superseded: NotRequired[Literal[True]]
    superseded_by: NotRequired[str | None]
    explain: NotRequired[HitExplanation]


class Weight(TypedDict):
    """What a leg counts for this query, and why."""

    prior: float
    noise: float
    best: float
    value: float
    standout: float


class Filters(TypedDict):
    on: dict[str, Any]
    documents: int
    of: int | None


class SearchResult(TypedDict):
    query: str
    results: list[Hit]
    pending: Annotated[list[Pending], "The first of them."]
    pending_count: int
    paused: Annotated[str | None, "Why what is pending is not embedded now, though nothing is wrong."]
    degraded: Degraded | None
    absence: Absence | None
    doubt: Doubt | None
    missing: Annotated[list[str], "Words of the query that nothing has that it may see; of spaced scripts."]
    hyde: HydeReport | None
    rerank: RerankReport | None
    period: Period | None
    took_ms: float
    fence: NotRequired[Fence]
    timings_ms: NotRequired[dict[str, float]]
    candidates: NotRequired[Annotated[dict[str, int], "By leg: those in which it finds something."]]
    weights: NotRequired[dict[str, Weight]]
    embedding: NotRequired[Annotated[Literal["computed", "cached"] | None, "Where the query's vector came from."]]
    lost: NotRequired[dict[str, int]]
    filters: NotRequired[Filters]


class Passage(TypedDict):
    workspace: str
    path: str
    line: Lines
    start_line: int | None
    end_line: int | None
    id: str | None


class Stage(TypedDict):
    """A step on the way into the hits."""

    stage: str
    passed: Annotated[bool | None, "null: the passage did not come so far."]
    detail: str


class Words(TypedDict):
    """What of the query the passage has."""

    has: list[str]
    lacks: list[str]
    ignored: list[str]


class Change(TypedDict):
    setting: str
    value: Any


Remedy = TypedDict(
    "Remedy",
    {"setting": str, "value": Any, "with": list[Change], "command": str, "place": int | None},
)


class WhyNotResult(TypedDict):
    query: str
    passage: Passage
    verdict: str
    explanation: str
    place: int | None
    stages: list[Stage]
    legs: dict[str, LegRank | None]
    words: Words | None
    remedies: list[Remedy]
    hint: str | None
    took_ms: float
