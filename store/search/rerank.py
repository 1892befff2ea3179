"""The reranker: a cross-encoder reads query and passage together, for the best candidates and as long as time allows.

It is slow, so most of the work is choosing what it reads. First the likeliest passage of each chunk that will make up
the answer: whoever is read gains on whoever is not, so where time is short they had better all be read alike. Then the
rest of the foremost, which decide the first place, then what stands further behind. What it says is pooled with what
the legs say, not put in its place: their log-odds are averaged, so that neither overrules the other where it is unsure.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memoryd.store.errors import MemorydError
from memoryd.store.protocols import Reranker
from memoryd.store.search.answer import Candidate, RerankReport, RerankStep
from memoryd.store.search.chunk_rows import ChunkRow, read_chunks
from memoryd.store.search.highlights import Marker
from memoryd.store.search.request import SearchQuery, SearchSettings
from memoryd.store.search.snippet import best_passage

DEPTH = 16  # chunks that are looked at: of what stands further behind, as much rises by mistake as by right
_CLEAR = 0.15  # of relevance between the first and the second: no reading changes that
_EACH = 12  # chunks of which a passage is read before anything else: about as many as make ten hits
_WHOLE = 3  # chunks that are read whole before any further behind is
_GENTLE = 3.0  # of its log-odds: a cross-encoder is surer of itself than it should be
_SURE = 1e-6  # from 0 and 1: a relevance that is nothing or perfect still has odds


def wants_rerank(query: SearchQuery, settings: SearchSettings) -> bool:
    return settings.rerank.enabled if query.rerank is None else query.rerank


def rerank(
    sql: sqlite3.Connection,
    candidates: list[Candidate],
    query: SearchQuery,
    settings: SearchSettings,
    reranker: Reranker | None,
    cosines: Mapping[int, float],
    script: str,
) -> tuple[list[Candidate], RerankReport]:
    """The candidates, best first by both judgements, and what became of the wish. ``cosines``: by passage."""
    began = time.monotonic()
    if reranker is None:
        return candidates, RerankReport(used=False, reason="nothing here can read passages")
    if not reranker.reads(script):
        return candidates, RerankReport(used=False, reason="the reranker does not read the query's script")
    if is_clear(candidates):
        return candidates, RerankReport(used=False, reason="the ranking is clear without it")
    head = candidates[:DEPTH]
    rows = read_chunks(sql, [candidate.chunk_id for candidate in head])
    order = reading_order(head, rows, cosines, Marker(query.text))
    try:
        scores = reranker.score(query.text, [each.text for each in order], began + settings.rerank.budget_ms / 1000)
    except MemorydError as error:
        return candidates, RerankReport(used=False, reason=error.message, hint=error.hint)
    if not scores:
        return candidates, RerankReport(
            used=False,
            reason=f"not one passage could be read in {settings.rerank.budget_ms:g} ms",
            hint="Raise search.rerank.budget_ms.",
        )
    judged = best_of_each(order, scores)
    return blend(candidates, judged, settings.rerank.weight), RerankReport(used=True, read=len(scores), of=len(order))


@dataclass(frozen=True, slots=True)
class Reading:
    """A passage to be read, and the chunks that it is in: overlapping ones share it."""

    passage: int  # id
    text: str
    chunks: tuple[tuple[int, int], ...]  # chunk, and the passage's ordinal in it


def is_clear(candidates: Sequence[Candidate]) -> bool:
    """Whether the first stands so far before the second that reading them would not change their order.

    By what the legs say of whole chunks: how good their best passages are is what reading is to find out.
    """
    if len(candidates) < 2:
        return True
    return _by_legs(candidates[0]) - _by_legs(candidates[1]) >= _CLEAR


def _by_legs(candidate: Candidate) -> float:
    """Its relevance without the part that its best passage has in it."""
    best = candidate.best
    if best is None or not 0 < best.part < 1 or not candidate.fused:
        return candidate.relevance
    fused = (candidate.fused - best.part * best.share) / (1 - best.part)
    return candidate.relevance * fused / candidate.fused


def reading_order(
    candidates: Sequence[Candidate], rows: Mapping[int, ChunkRow], nearness: Mapping[int, float], marker: Marker
) -> list[Reading]:
    """What is read, first what may change most: a passage of each that may be returned, then the foremost whole."""
    places: dict[int, list[tuple[int, int]]] = {}
    texts: dict[int, str] = {}
    turns: tuple[list[int], ...] = ([], [], [], [])
    for rank, candidate in enumerate(candidates):
        for number, (ordinal, passage, text) in enumerate(_passages(candidate, rows, nearness, marker)):
            places.setdefault(passage, []).append((candidate.chunk_id, ordinal))
            texts[passage] = text
            turns[_turn(rank, likeliest=number == 0)].append(passage)
    order = dict.fromkeys(passage for each in turns for passage in each)  # overlapping chunks share passages
    return [Reading(passage, texts[passage], tuple(places[passage])) for passage in order]


def _turn(rank: int, *, likeliest: bool) -> int:
    if likeliest and rank < _EACH:
        return 0
    return 1 if rank < _WHOLE else 2 if likeliest else 3


def _passages(
    candidate: Candidate, rows: Mapping[int, ChunkRow], nearness: Mapping[int, float], marker: Marker
) -> Iterator[tuple[int, int, str]]:
    """A chunk's passages, the likeliest first: the one that would be shown, then by how near they are."""
    row = rows[candidate.chunk_id]
    first = row.span.first + best_passage(
        [passage.text for passage in row.passages.values()], row.span.first, candidate.legs, marker
    )
    ranked = sorted(row.passages.items(), key=lambda item: (item[0] != first, -nearness.get(item[1].id, -1.0)))
    for ordinal, passage in ranked:
        if passage.text.strip():
            yield ordinal, passage.id, passage.text


def best_of_each(order: Sequence[Reading], scores: Sequence[float]) -> dict[int, RerankStep]:
    """For each chunk of which anything was read, its best passage; the scores may be fewer than the readings."""
    judged: dict[int, RerankStep] = {}
    for reading, score in zip(order, scores, strict=False):
        for chunk, ordinal in reading.chunks:
            if chunk not in judged or score > judged[chunk].score:
                judged[chunk] = RerankStep(score, confidence(score), ordinal)
    return judged


def confidence(score: float) -> float:
    """A cross-encoder's logit as 0..1."""
    return _share(score / _GENTLE)


def blend(candidates: Sequence[Candidate], judged: Mapping[int, RerankStep], weight: float) -> list[Candidate]:
    """Relevance by both, best first. What was not read is taken to be as good as the worst that was."""
    least = min((step.score for step in judged.values()), default=0.0)
    blended = []
    for place, candidate in enumerate(candidates, start=1):
        step = judged.get(candidate.chunk_id)
        relevance = pool(candidate.relevance, step.score if step else least, weight)
        before = replace(step, place=place, relevance=candidate.relevance) if step else None
        blended.append(candidate._replace(relevance=relevance, rerank=before))
    return sorted(blended, key=lambda candidate: -candidate.relevance)


def pool(relevance: float, score: float, weight: float) -> float:
    """What both say together: the mean of their log-odds."""
    odds = max(_SURE, min(1 - _SURE, relevance))
    return _share((1 - weight) * math.log(odds / (1 - odds)) + weight * score / _GENTLE)


def _share(log_odds: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, log_odds))))
