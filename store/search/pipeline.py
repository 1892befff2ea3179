"""The life of a query: legs -> fusion -> calibration -> reranker -> decay -> newer first -> hits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context

from memoryd.store.cancellation import check_cancelled
from memoryd.store.database import Database
from memoryd.store.errors import Cancelled, MemorydError
from memoryd.store.generations import Pending
from memoryd.store.protocols import Reranker
from memoryd.store.search.absence import as_typed, explain_absence, is_absent, least_relevance
from memoryd.store.search.answer import Answer, Degraded, Embedding, Hit, HydeReport, Lost, Ranking, RerankReport
from memoryd.store.search.common import chance_words
from memoryd.store.search.decay import Dated, apply_decay, read_dates
from memoryd.store.search.freshness import put_newer_first
from memoryd.store.search.fusion import calibrate, fuse, weigh_legs
from memoryd.store.search.hits import select_hits
from memoryd.store.search.hypothesis import (
    Hypothesize,
    imagine_answer,
    plain_after_all,
    query_vector,
    wants_hypothesis,
)
from memoryd.store.search.legs import trigram_leg, words_leg
from memoryd.store.search.nearness import Sought, passages_of, seek_passages, vector_leg
from memoryd.store.search.noise import read_noise, script_of
from memoryd.store.search.query import build_query
from memoryd.store.search.rarity import Written, unknown_words
from memoryd.store.search.request import SearchQuery, SearchSettings, Semantics
from memoryd.store.search.rerank import rerank, wants_rerank
from memoryd.store.search.visibility import Visible, find_visible

# What needs no ledger, the embedder and the nearest passages, runs beside the keyword legs: the stage "vector" waits
# for it.
BESIDE = ("embed", "nearest")
_BESIDE = ThreadPoolExecutor(2, thread_name_prefix="memoryd-seek")


def search(
    query: SearchQuery,
    settings: SearchSettings,
    database: Database,
    semantics: Semantics,
    pending: Callable[[], list[Pending]],
    hypothesize: Hypothesize | None = None,
    reranker: Reranker | None = None,
) -> Answer:
    watch = _Stopwatch()
    degraded: Degraded | None = None
    hyde: HydeReport | None = None
    rankings: dict[str, Ranking] = {}
    unknown: dict[str, Set[int]] = {}
    sought: Sought | None = None
    embedding: Embedding | None = None
    reading: RerankReport | None = None
    hits: list[Hit] = []

    if wants_hypothesis(query, settings):  # before anything is read: a language model takes seconds
        with watch.stage("hyde"):
            hyde = imagine_answer(query, settings, semantics, hypothesize)

    with database.read() as sql:
        visible = find_visible(sql, query)
        keywords = build_query(query.text)
        keywords = keywords.without(chance_words(sql, keywords.words))
        script = script_of(query.text)
        noise = read_noise(sql, script, semantics.fingerprint)
        written = Written(script, noise.part)
        seeking: Future[Sought] | None = None
        if settings.weights["vector"] > 0 and query.text.strip():
            imagined = hyde.text if hyde else None
            known = imagined is None and semantics.knows_query(query.text)
            seeking = _seek_beside(query.text, imagined, settings, semantics, visible, watch)
        for leg, bring in (("words", words_leg), ("trigram", trigram_leg)):
            if settings.weights[leg] > 0:
                with watch.stage(leg):
                    rankings[leg] = bring(sql, keywords, settings.candidates, visible, written)
        dates: dict[int, Dated] = {}
        if seeking:
            try:
                with watch.stage("vector"):
                    brought = {chunk for ranking in rankings.values() for chunk in ranking}
                    others, dates = passages_of(sql, brought), read_dates(sql, brought)  # while the model computes
                    sought = seeking.result()
                    embedding = "cached" if known else "computed"
                    near = vector_leg(sql, sought, settings.candidates, visible, others, noise.floor)
                    rankings["vector"], unknown["vector"] = near.ranking, near.unknown
            except Cancelled:
                raise
            except MemorydError as error:
                degraded = Degraded("vector", error.message, error.hint)
                hyde = plain_after_all(error) if hyde else None
        with watch.stage("rank"):
            fusion = settings.fusion
            weights = weigh_legs(rankings, settings.weights, noise, fusion=fusion, adaptive=settings.adaptive)
            values = {leg: weight.value for leg, weight in weights.items()}
            candidates = calibrate(fuse(rankings, values, fusion, settings.rrf_k, unknown), weights, fusion)
        if wants_rerank(query, settings):
            with watch.stage("rerank"):
                candidates, reading = rerank(sql, candidates, query, settings, reranker, sought, script)
        with watch.stage("rank"):
            candidates = apply_decay(sql, candidates, query.today, settings.decay, dates)
            index = sought.index if sought else None
            candidates = put_newer_first(sql, candidates, index, noise.floor, settings.decay)
            least = least_relevance(settings.abstain, weights.get("vector"), noise.spread)
            if query.min_score is None and noise.shares and is_absent(candidates, least):
                lost = [Lost(candidate, "abstain") for candidate in candidates]
            else:
                hits, lost = select_hits(sql, candidates, query, settings, index)

        nowhere = [] if hits else as_typed(unknown_words(sql, keywords), query.text)

    limit = settings.limit if query.limit is None else query.limit
    min_score = settings.min_score if query.min_score is None else query.min_score
    filtered = visible != Visible()

    return Answer(
        query=query.text,
        hits=hits,
        pending=pending(),
        degraded=degraded,
        timings=watch.milliseconds,
        candidates={leg: len(ranking) for leg, ranking in rankings.items()},
        weights=weights,
        lost=lost,
        absence=explain_absence(hits, lost, min_score, least, filtered=filtered, limit=limit, unknown=nowhere),
        hyde=hyde,
        rerank=reading,
        embedding=embedding,
    )


def _seek_beside(
    text: str, imagined: str | None, settings: SearchSettings, semantics: Semantics, visible: Visible, watch: _Stopwatch
) -> Future[Sought]:
    """The query's vector and the passages nearest to it, on another thread."""

    def seek() -> Sought:
        with watch.stage("embed"):
            vector = query_vector(text, imagined, settings.hyde.mode, semantics)
        with watch.stage("nearest"):
            return seek_passages(semantics.index(), vector, settings.candidates, visible)

    return _BESIDE.submit(copy_context().run, seek)  # in this context: what is cancelled is not begun


class _Stopwatch:
    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        check_cancelled()
        start = time.perf_counter()
        try:
            yield
        finally:
            took = (time.perf_counter() - start) * 1000
            self.milliseconds[name] = self.milliseconds.get(name, 0.0) + took
