"""The life of a query: legs -> fusion -> calibration -> reranker -> decay -> newer first -> hits."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Set
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

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
from memoryd.store.search.nearness import Held, Nearness, Sought, passages_of, seek_passages, vector_leg
from memoryd.store.search.noise import read_noise, script_of
from memoryd.store.search.query import KeywordQuery, build_query
from memoryd.store.search.rarity import Written, unknown_words
from memoryd.store.search.request import SearchQuery, SearchSettings, Semantics
from memoryd.store.search.rerank import rerank, wants_rerank
from memoryd.store.search.visibility import Visible, find_visible

# The keyword legs run beside what needs no ledger, the embedder and the nearest passages: the stage "vector" waits for
# them. They are the ones that move to another thread, for they are done first: nothing waits for a thread to wake.
BESIDE = ("words", "trigram")
_BESIDE = ThreadPoolExecutor(4, thread_name_prefix="memoryd-words")

Result = TypeVar("Result")


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
    near: Nearness | None = None
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
        by_meaning = settings.weights["vector"] > 0 and bool(query.text.strip())
        bring = partial(_bring_keywords, sql, keywords, settings, visible, written, watch, by_meaning=by_meaning)
        if by_meaning:
            imagined = hyde.text if hyde else None
            known = imagined is None and semantics.knows_query(query.text)
            with _beside(bring) as coming:
                try:
                    with watch.stage("embed"):
                        vector = query_vector(query.text, imagined, settings.hyde.mode, semantics)
                    with watch.stage("nearest"):
                        sought = seek_passages(semantics.index(), vector, settings.candidates, visible)
                    embedding = "cached" if known else "computed"
                    with watch.stage("vector"):
                        others = coming.result().passages
                        near = vector_leg(sql, sought, settings.candidates, visible, others, noise.floor)
                except Cancelled:
                    raise
                except MemorydError as error:
                    degraded = Degraded("vector", error.message, error.hint)
                    hyde = plain_after_all(error) if hyde else None
        brought = coming.result() if by_meaning else bring()
        rankings, dates = brought.rankings, brought.dates
        if near:
            rankings["vector"], unknown["vector"] = near.ranking, near.unknown
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


@dataclass(frozen=True, slots=True)
class _Brought:
    """What the keyword legs found, and what the ledger says of it that the stages after them need."""

    rankings: dict[str, Ranking]
    passages: Held | None
    dates: dict[int, Dated]


def _bring_keywords(
    sql: sqlite3.Connection,
    keywords: KeywordQuery,
    settings: SearchSettings,
    visible: Visible,
    written: Written,
    watch: _Stopwatch,
    *,
    by_meaning: bool,
) -> _Brought:
    rankings: dict[str, Ranking] = {}
    for leg, bring in (("words", words_leg), ("trigram", trigram_leg)):
        if settings.weights[leg] > 0:
            with watch.stage(leg):
                rankings[leg] = bring(sql, keywords, settings.candidates, visible, written)
    chunks = {chunk for ranking in rankings.values() for chunk in ranking}
    dates = read_dates(sql, chunks)
    if len(dates) < len(chunks):  # an index that is out of step names what is gone
        rankings = {leg: {chunk: r[chunk] for chunk in r if chunk in dates} for leg, r in rankings.items()}
    return _Brought(rankings, passages_of(sql, dates) if by_meaning else None, dates)


@contextmanager
def _beside(work: Callable[[], Result]) -> Iterator[Future[Result]]:
    """Work on another thread, in this context: what is cancelled is not begun. It has ended when the block ends, for a
    connection is lent to it."""
    coming = _BESIDE.submit(copy_context().run, work)
    try:
        yield coming
    finally:
        wait((coming,))


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
