"""The life of a query: legs -> fusion -> decay -> dedup -> min_score -> hits."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from typing import Protocol

from memoryd.store.database import Database
from memoryd.store.errors import MemorydError
from memoryd.store.generations import Pending
from memoryd.store.globs import matches_any
from memoryd.store.protocols import VectorIndex, Vectors
from memoryd.store.search.answer import Answer, Candidate, Degraded, Hit
from memoryd.store.search.common import chance_words
from memoryd.store.search.decay import age_in_days, decay_factor
from memoryd.store.search.fusion import fuse
from memoryd.store.search.legs import Ranking, chunks_without_vectors, trigram_leg, vector_leg, words_leg
from memoryd.store.search.query import KeywordQuery, build_query
from memoryd.store.search.request import SearchQuery, SearchSettings
from memoryd.store.search.snippet import best_passage, cut_snippet


class Semantics(Protocol):
    """What the vector leg needs; raises a MemorydError with the reason while it is not there."""

    def embed_query(self, text: str) -> Vectors: ...

    def index(self) -> VectorIndex: ...


def search(
    query: SearchQuery,
    settings: SearchSettings,
    database: Database,
    semantics: Semantics,
    pending: Callable[[], list[Pending]],
) -> Answer:
    watch = _Stopwatch()
    degraded: Degraded | None = None
    rankings: dict[str, Ranking] = {}
    weights = settings.weights

    with database.read() as sql:
        documents = visible_documents(sql, query)
        keywords = build_query(query.text)
        keywords = keywords.without(chance_words(sql, keywords.words))
        for leg, bring in (("words", words_leg), ("trigram", trigram_leg)):
            if weights[leg] > 0:
                with watch.stage(leg):
                    rankings[leg] = bring(sql, keywords, settings.candidates, documents)
        if weights["vector"] > 0 and query.text.strip():
            try:
                with watch.stage("embed"):
                    vector = semantics.embed_query(query.text)
                with watch.stage("vector"):
                    rankings["vector"] = vector_leg(sql, semantics.index(), vector, settings.candidates, documents)
            except MemorydError as error:
                degraded = Degraded("vector", error.message, error.hint)
        with watch.stage("rank"):
            found = {chunk for ranking in rankings.values() for chunk in ranking}
            late = chunks_without_vectors(sql, found) if "vector" in rankings else set()
            candidates = fuse(rankings, weights, settings.rrf_k, {"vector": late})
            candidates = apply_decay(sql, candidates, query.today, settings)
            hits = collect_hits(sql, candidates, query, keywords, settings)

    return Answer(
        query=query.text,
        hits=hits,
        pending=pending(),
        degraded=degraded,
        timings=watch.milliseconds,
        candidates={leg: len(ranking) for leg, ranking in rankings.items()},
    )


def visible_documents(sql: sqlite3.Connection, query: SearchQuery) -> Collection[int] | None:
    """The documents that the filters leave; None = all of them."""
    if not (query.workspaces or query.sources or query.paths):
        return None
    rows = sql.execute("SELECT id, workspace, source, path FROM documents WHERE skipped IS NULL")
    return {
        identity
        for identity, workspace, source, path in rows
        if (not query.workspaces or workspace in query.workspaces)
        and (not query.sources or source in query.sources)
        and (not query.paths or matches_any(path, query.paths))
    }


def apply_decay(
    sql: sqlite3.Connection, candidates: list[Candidate], today: date, settings: SearchSettings
) -> list[Candidate]:
    aged = []
    for candidate in candidates:
        written, evergreen = sql.execute(
            "SELECT d.date, d.evergreen FROM chunks c JOIN documents d ON d.id = c.document_id WHERE c.id = ?",
            (candidate.chunk_id,),
        ).fetchone()
        age = age_in_days(date.fromisoformat(written) if written else None, today, evergreen=bool(evergreen))
        aged.append(replace(candidate, age_days=age, decay=decay_factor(age, settings.decay)))
    return sorted(aged, key=lambda candidate: -candidate.score)


def collect_hits(
    sql: sqlite3.Connection,
    candidates: list[Candidate],
    query: SearchQuery,
    keywords: KeywordQuery,
    settings: SearchSettings,
) -> list[Hit]:
    limit = settings.limit if query.limit is None else query.limit
    min_score = settings.min_score if query.min_score is None else query.min_score
    hits: list[Hit] = []
    seen: set[str] = set()
    for candidate in candidates:
        if len(hits) == limit or candidate.score < min_score:
            break
        hit, text = read_hit(sql, candidate, keywords, settings.snippet_chars)
        if text.casefold().strip() in seen:
            continue
        seen.add(text.casefold().strip())
        hits.append(hit)
    return hits


def read_hit(
    sql: sqlite3.Connection, candidate: Candidate, keywords: KeywordQuery, snippet_chars: int
) -> tuple[Hit, str]:
    key, first, last, heading, start_line, end_line, identity, workspace, path, source, written = sql.execute(
        """
        SELECT c.key, c.first_passage, c.last_passage, c.heading, c.start_line, c.end_line,
               d.id, d.workspace, d.path, d.source, d.date
          FROM chunks c JOIN documents d ON d.id = c.document_id WHERE c.id = ?
        """,
        (candidate.chunk_id,),
    ).fetchone()
    passages = [
        row[0]
        for row in sql.execute(
            "SELECT text FROM passages WHERE document_id = ? AND ordinal BETWEEN ? AND ? ORDER BY ordinal",
            (identity, first, last),
        )
    ]
    best = best_passage(passages, first, candidate.legs, keywords)
    before = sum(map(len, passages[:best]))
    text = "".join(passages)
    hit = Hit(
        id=key,
        workspace=workspace,
        path=path,
        start_line=start_line,
        end_line=end_line,
        heading=heading,
        source=source,
        date=date.fromisoformat(written) if written else None,
        score=candidate.score,
        snippet=cut_snippet(text, before, before + len(passages[best]), snippet_chars),
        candidate=candidate,
    )
    return hit, text


class _Stopwatch:
    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.milliseconds[name] = (time.perf_counter() - start) * 1000
