"""The life of a query: legs -> fusion -> concentration -> calibration -> reranker -> decay -> newer first -> hits."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import nlargest

from memoryd.store.cancellation import check_cancelled
from memoryd.store.companions import Companions
from memoryd.store.database import Database
from memoryd.store.errors import Cancelled, MemorydError
from memoryd.store.generations import Pending
from memoryd.store.protocols import Reranker
from memoryd.store.search.absence import as_typed, explain_absence, explain_doubt, is_absent, least_relevance
from memoryd.store.search.answer import Answer, Degraded, Embedding, Hit, HydeReport, Lost, Ranking, RerankReport
from memoryd.store.search.chunk_rows import read_chunks
from memoryd.store.search.common import chance_words
from memoryd.store.search.concentration import Weighed, concentrate, read_best_passages, weigh_passages
from memoryd.store.search.decay import apply_decay
from memoryd.store.search.freshness import put_newer_first
from memoryd.store.search.function_words import function_words
from memoryd.store.search.fusion import calibrate, fuse, weigh_legs
from memoryd.store.search.hits import select_hits
from memoryd.store.search.hypothesis import (
    Hypothesize,
    imagine_answer,
    plain_after_all,
    query_vector,
    wants_hypothesis,
)
from memoryd.store.search.keyword_leg import KeywordLeg, ask_all
from memoryd.store.search.legs import trigram_leg, weigh_words, words_leg
from memoryd.store.search.missing import missing_words, unknown_words
from memoryd.store.search.names import has_unknown_name
from memoryd.store.search.nearness import Held, Nearness, Sought, passages_of, seek_passages, vector_leg
from memoryd.store.search.noise import PASSAGE, Noise, read_noise, script_of
from memoryd.store.search.occasion import Occasion, find_occasion
from memoryd.store.search.query import build_query
from memoryd.store.search.rarity import Written
from memoryd.store.search.request import SearchQuery, SearchSettings, Semantics
from memoryd.store.search.rerank import rerank, wants_rerank
from memoryd.store.search.visibility import Visible, find_visible

# The keyword legs run beside what needs no ledger, the embedder and the nearest passages: the stage "vector" waits for
# them. They are the ones that move to another thread, for they are done first: nothing waits for a thread to wake.
BESIDE = ("words", "trigram")
_READ_BESIDE = 12  # chunks that will most likely be looked at: they are read while the query is embedded
_COMPANIONS = Companions("memoryd-words")


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
        by_meaning = settings.weights["vector"] > 0 and bool(query.text.strip())

        def bring() -> _Brought:
            with database.lent(sql):
                return _bring_keywords(sql, query, settings, visible, semantics.fingerprint, pending, watch)

        if by_meaning:
            imagined = hyde.text if hyde else None
            known = imagined is None and semantics.knows_query(query.text)
            with _COMPANIONS.beside(bring) as coming:
                try:
                    with watch.stage("embed"):
                        vector = query_vector(query.text, imagined, settings.hyde.mode, semantics)
                    with watch.stage("nearest"):
                        sought = seek_passages(semantics.index(), vector, settings.candidates, visible)
                    embedding = "cached" if known else "computed"
                    with watch.stage("vector"):
                        there = coming.result()
                        within = there.occasion.within(visible) if there.occasion else None
                        near = vector_leg(
                            sql, sought, settings.candidates, visible, there.held, there.noise.floor, within
                        )
                except Cancelled:
                    raise
                except MemorydError as error:
                    degraded = Degraded("vector", error.message, error.hint)
                    hyde = plain_after_all(error) if hyde else None
        brought = coming.result() if by_meaning else bring()
        legs, noise, dates, read = brought.legs, brought.noise, brought.held.dates, brought.read
        cosines = near.cosines if near else {}
        with watch.stage("rank"):
            if near:
                legs, unknown["vector"], dates = ask_all(legs, near.ranking), near.unknown, near.dates
            rankings = {name: leg.ranking for name, leg in legs.items()} | ({"vector": near.ranking} if near else {})
            fusion = settings.fusion
            weights = weigh_legs(rankings, settings.weights, noise, fusion=fusion, adaptive=settings.adaptive)
            values = {leg: weight.value for leg, weight in weights.items()}
            candidates = fuse(rankings, values, fusion, settings.rrf_k, unknown)
            alone = len(rankings) == 1  # a leg by itself is what it is
            part = 0.0 if alone or fusion != "weighted" else settings.concentration
            if part > 0:
                late = unknown.get("vector", frozenset())
                read, best = read_best_passages(
                    sql, candidates, brought.words, weights, cosines, noise.floor, late, read
                )
                candidates = concentrate(candidates, best, part)
            candidates = calibrate(candidates, weights, fusion, noise.of(PASSAGE), part)
        if wants_rerank(query, settings):
            with watch.stage("rerank"):
                candidates, reading = rerank(sql, candidates, query, settings, reranker, cosines, brought.script)
        with watch.stage("rank"):
            candidates = apply_decay(sql, candidates, query.today, settings.decay, dates, brought.occasion)
            index = sought.index if sought else None
            if not brought.occasion:  # else what is nearest to the days that are named is first, not what is newest
                candidates = put_newer_first(sql, candidates, index, noise.floor, settings.decay)
            stranger = has_unknown_name(query.text, brought.missing)
            least = least_relevance(settings.abstain, weights, noise, stranger=stranger)
            if query.min_score is None and noise.chunks and is_absent(candidates, least):
                lost = [Lost(candidate, "abstain") for candidate in candidates]
            else:
                hits, lost = select_hits(sql, candidates, query, settings, index, read.rows)

    limit, min_score = settings.limit_of(query), settings.min_score_of(query)
    filtered, missing = visible != Visible(), brought.missing
    sure = settings.doubt if noise.chunks else 0.0

    return Answer(
        query=query.text,
        hits=hits,
        pending=brought.pending,
        degraded=degraded,
        timings=watch.milliseconds,
        candidates={leg: len(ranking) for leg, ranking in rankings.items()},
        weights=weights,
        lost=lost,
        absence=explain_absence(hits, lost, min_score, least, filtered=filtered, limit=limit, missing=missing),
        least=least,
        doubt=explain_doubt(hits, candidates, sure, missing),
        missing=missing,
        hyde=hyde,
        rerank=reading,
        embedding=embedding,
        period=brought.occasion.period if brought.occasion else None,
    )


@dataclass(frozen=True, slots=True)
class _Brought:
    """What the keyword legs found, and what the ledger says of it that the stages after them need."""

    script: str
    noise: Noise
    legs: dict[str, KeywordLeg]
    words: dict[str, float]  # of the query, and what each weighs
    held: Held
    occasion: Occasion | None  # the days that the query names
    missing: tuple[str, ...]  # words of the query that nothing has that it may see
    read: Weighed  # the chunks that are foremost by their words
    pending: list[Pending]  # what is not wholly in the snapshot that is searched


def _bring_keywords(
    sql: sqlite3.Connection,
    query: SearchQuery,
    settings: SearchSettings,
    visible: Visible,
    fingerprint: str | None,
    pending: Callable[[], list[Pending]],
    watch: _Stopwatch,
) -> _Brought:
    keywords = build_query(query.text)
    keywords = keywords.without(chance_words(sql, keywords.words))
    occasion = find_occasion(sql, query, settings.named_days, visible)
    if occasion:  # a note need not say when it was written
        keywords = keywords.without(unknown_words(sql, build_query(occasion.period.said)))
    script = script_of(query.text)
    noise = read_noise(sql, script, fingerprint)
    written = Written(script, noise.part)
    legs: dict[str, KeywordLeg] = {}
    for leg, bring in (("words", words_leg), ("trigram", trigram_leg)):
        if settings.weights[leg] > 0:
            with watch.stage(leg):
                legs[leg] = bring(sql, keywords, settings.candidates, visible, written)
    then: Ranking = {}
    if occasion and "words" in legs:
        then = words_leg(sql, keywords, settings.candidates, occasion.within(visible), written).ranking
    legs = ask_all(legs, then)
    words = weigh_words(sql, keywords, written) if "words" in legs else {}
    held = passages_of(sql, {chunk for leg in legs.values() for chunk in leg.ranking})
    if any(chunk not in held.dates for leg in legs.values() for chunk in leg.ranking):
        # An index that is out of step names what is gone.
        legs = {name: leg.only(held.dates) for name, leg in legs.items()}
    worth = Counter[int]()
    for name, found in legs.items():
        worth.update({chunk: settings.weights[name] * place.share for chunk, place in found.ranking.items()})
    read = weigh_passages(read_chunks(sql, nlargest(_READ_BESIDE, worth, worth.__getitem__)), words)
    missing = as_typed(missing_words(sql, keywords.without(function_words(keywords.words)), visible), query.text)
    return _Brought(script, noise, legs, words, held, occasion, tuple(missing), read, pending())


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
