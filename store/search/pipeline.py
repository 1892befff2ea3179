"""The life of a query: legs -> fusion -> decay -> dedup -> min_score -> hits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from memoryd.store.database import Database
from memoryd.store.errors import MemorydError
from memoryd.store.generations import Pending
from memoryd.store.protocols import VectorIndex, Vectors
from memoryd.store.search.answer import Answer, Degraded
from memoryd.store.search.common import chance_words
from memoryd.store.search.decay import apply_decay
from memoryd.store.search.fusion import fuse
from memoryd.store.search.hits import select_hits
from memoryd.store.search.legs import Ranking, chunks_without_vectors, trigram_leg, vector_leg, words_leg
from memoryd.store.search.query import build_query
from memoryd.store.search.request import SearchQuery, SearchSettings
from memoryd.store.search.visibility import find_visible


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
        visible = find_visible(sql, query)
        keywords = build_query(query.text)
        keywords = keywords.without(chance_words(sql, keywords.words))
        for leg, bring in (("words", words_leg), ("trigram", trigram_leg)):
            if weights[leg] > 0:
                with watch.stage(leg):
                    rankings[leg] = bring(sql, keywords, settings.candidates, visible)
        if weights["vector"] > 0 and query.text.strip():
            try:
                with watch.stage("embed"):
                    vector = semantics.embed_query(query.text)
                with watch.stage("vector"):
                    rankings["vector"] = vector_leg(sql, semantics.index(), vector, settings.candidates, visible)
            except MemorydError as error:
                degraded = Degraded("vector", error.message, error.hint)
        with watch.stage("rank"):
            found = {chunk for ranking in rankings.values() for chunk in ranking}
            late = chunks_without_vectors(sql, found) if "vector" in rankings else set()
            candidates = fuse(rankings, weights, settings.rrf_k, {"vector": late})
            candidates = apply_decay(sql, candidates, query.today, settings.decay)
            vectors = semantics.index() if "vector" in rankings else None
            hits, lost = select_hits(sql, candidates, query, keywords, settings, vectors)

    return Answer(
        query=query.text,
        hits=hits,
        pending=pending(),
        degraded=degraded,
        timings=watch.milliseconds,
        candidates={leg: len(ranking) for leg, ranking in rankings.items()},
        lost=lost,
    )


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
