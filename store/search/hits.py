"""From candidates to hits: which of them are returned, in what order, and what is shown of each.

min_score -> duplicates -> MMR -> neighbours -> limit. None of them asks for the limit, so a short answer is the
beginning of a long one. Neighbours are joined in the order that MMR leaves: only then is it known which are near
enough to each other in the answer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from memoryd.store.errors import MemorydError
from memoryd.store.protocols import VectorIndex, Vectors
from memoryd.store.search.answer import Candidate, Hit, Lost
from memoryd.store.search.chunk_rows import ChunkRow, read_chunks
from memoryd.store.search.duplicates import drop_duplicates, put_words_first
from memoryd.store.search.highlights import Marker
from memoryd.store.search.mmr import WINDOW, diversify, mean_vector, measure_similarities
from memoryd.store.search.neighbours import REACH, Joined, join_neighbours
from memoryd.store.search.request import SearchQuery, SearchSettings
from memoryd.store.search.snippet import best_passage, cut_snippet, lines_of, mark_snippet
from memoryd.store.search.superseded import mark_superseded


def select_hits(
    sql: sqlite3.Connection,
    candidates: Sequence[Candidate],
    query: SearchQuery,
    settings: SearchSettings,
    vectors: VectorIndex | None,
    known: Mapping[int, ChunkRow] | None = None,
    *,
    reach: int = REACH,
) -> tuple[list[Hit], list[Lost]]:
    """The candidates, best first, that are returned, and those that are not.

    ``vectors``: None without the leg. ``known``: what was read before of some chunks. ``reach``: 0 leaves neighbours
    apart.
    """
    limit = settings.limit_of(query)
    min_score = settings.min_score_of(query)
    good = put_words_first([candidate for candidate in candidates if candidate.score >= min_score])
    # Texts are read of as many as are enough unless half of them fall away; of more only where they do.
    size = max(2 * limit + reach, WINDOW if settings.mmr.enabled else 0)
    while True:
        rows = read_chunks(sql, [candidate.chunk_id for candidate in good[:size]], known)
        head = [candidate for candidate in good[:size] if rows[candidate.chunk_id].passages]  # damage may take a text
        kept, duplicates = drop_duplicates(head, {chunk: row.text for chunk, row in rows.items()})
        if settings.mmr.enabled:
            window = {candidate.chunk_id for candidate in good[:WINDOW]}
            count = sum(candidate.chunk_id in window for candidate in kept)
            kept[:count] = _diversify(kept[:count], rows, vectors, settings.mmr.relevance)
        joined = join_neighbours(kept, {chunk: row.span for chunk, row in rows.items()}, reach)
        if size >= len(good) or _is_settled(joined, limit, len(kept) - reach):
            break
        size *= 2
    marker = Marker(query.text)
    hits = [_make_hit(each, rows, marker, settings.snippet_chars) for each in joined[:limit]]
    lost = _explain_losses(candidates, joined[:limit], [*duplicates, *(Lost(c, "limit") for c in kept)], min_score)
    return mark_superseded(sql, hits, query), lost


def _is_settled(joined: Sequence[Joined], limit: int, end: int) -> bool:
    """Whether the hits that are wanted are there, and every candidate that could still join them was looked at."""
    return limit == 0 or (len(joined) >= limit and joined[limit - 1].place < end)


def _diversify(
    candidates: Sequence[Candidate], rows: Mapping[int, ChunkRow], index: VectorIndex | None, relevance: float
) -> list[Candidate]:
    vectors = _read_vectors(candidates, rows, index) if index else {}
    texts = {candidate.chunk_id: rows[candidate.chunk_id].text for candidate in candidates}
    return diversify(candidates, measure_similarities(candidates, vectors, texts), relevance)


def _read_vectors(
    candidates: Sequence[Candidate], rows: Mapping[int, ChunkRow], index: VectorIndex
) -> dict[int, Vectors]:
    """A vector for each chunk: that of its passage nearest to the query, else what its passages have in common."""
    wanted: dict[int, list[int]] = {}
    for candidate in candidates:
        passages = rows[candidate.chunk_id].passages
        vector = candidate.legs.get("vector")
        best = passages.get(vector.passage) if vector and vector.passage is not None else None
        wanted[candidate.chunk_id] = [best.id] if best else [passage.id for passage in passages.values()]
    try:
        held = index.vectors({passage for passages in wanted.values() for passage in passages})
    except MemorydError:
        return {}  # an answer is worth more than its variety: words in common do as well
    found = {
        chunk: mean_vector([held[passage] for passage in passages if passage in held])
        for chunk, passages in wanted.items()
    }
    return {chunk: vector for chunk, vector in found.items() if vector is not None}


def _make_hit(joined: Joined, rows: Mapping[int, ChunkRow], marker: Marker, snippet_chars: int) -> Hit:
    candidate = joined.candidate
    row = rows[candidate.chunk_id]
    other = rows[joined.neighbour.chunk_id] if joined.neighbour else None
    ordinal = _shown_passage(candidate, row, marker)
    passages = dict(sorted((row.passages | (other.passages if other else {})).items()))
    best = passages[ordinal]
    text = "".join(passage.text for passage in passages.values())
    start = sum(len(passage.text) for place, passage in passages.items() if place < ordinal)
    snippet, at = cut_snippet(text, start, start + len(best.text), snippet_chars)
    return Hit(
        id=row.key,
        workspace=row.workspace,
        path=row.path,
        start_line=min(row.start_line, other.start_line) if other else row.start_line,
        end_line=max(row.end_line, other.end_line) if other else row.end_line,
        heading=row.heading,
        source=row.source,
        date=row.date,
        score=candidate.score,
        snippet=snippet,
        best=lines_of(best.text, best.start_line),
        candidate=candidate,
        scope=row.scope,
        snippet_line=next(iter(passages.values())).start_line + text.count("\n", 0, at),
        highlights=mark_snippet(snippet, marker),
        merged=(other.key,) if other else (),
        nearest=rows[candidate.mmr.nearest].key if candidate.mmr else None,
        newer_than=rows[candidate.newer.than].key if candidate.newer and candidate.newer.than in rows else None,
        origin=row.origin,
    )


def _shown_passage(candidate: Candidate, row: ChunkRow, marker: Marker) -> int:
    """The ordinal of the passage that shows best why the chunk was found."""
    if candidate.rerank:
        return candidate.rerank.passage
    if candidate.best and candidate.best.share > 0:
        return candidate.best.ordinal
    texts = [passage.text for passage in row.passages.values()]
    return row.span.first + best_passage(texts, row.span.first, candidate.legs, marker)


def _explain_losses(
    candidates: Sequence[Candidate], hits: Sequence[Joined], looked_at: Sequence[Lost], min_score: float
) -> list[Lost]:
    """Of every candidate that is no hit, why, in the order of their scores."""
    reasons = {lost.candidate.chunk_id: lost for lost in looked_at}
    for hit in hits:
        if hit.neighbour:
            reasons[hit.neighbour.chunk_id] = Lost(hit.neighbour, "neighbour", hit.candidate.chunk_id)
    found = {hit.candidate.chunk_id for hit in hits}
    return [
        reasons.get(candidate.chunk_id) or Lost(candidate, "min_score" if candidate.score < min_score else "limit")
        for candidate in candidates
        if candidate.chunk_id not in found
    ]
