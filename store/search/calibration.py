"""Measuring noise: the memory is asked for words drawn from it at random, to which it has no answer.

Passages are drawn by their ids, which are hashes: the same memory gives the same sample on every machine.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from memoryd.store.database import Database
from memoryd.store.folding import is_run, split_runs
from memoryd.store.protocols import VectorIndex, Vectors
from memoryd.store.search.answer import Ranking
from memoryd.store.search.common import chance_words
from memoryd.store.search.concentration import read_best_passages
from memoryd.store.search.fusion import fuse, weigh_legs
from memoryd.store.search.keyword_leg import ask_all
from memoryd.store.search.legs import trigram_leg, weigh_words, words_leg
from memoryd.store.search.nearness import passages_of, seek_passages, vector_leg
from memoryd.store.search.noise import (
    LATIN,
    NOISE_VERSION,
    PASSAGE,
    Noise,
    count_letters,
    noise_key,
    noise_record,
    read_record,
    script_of,
)
from memoryd.store.search.query import KeywordQuery, build_query
from memoryd.store.search.rarity import Written
from memoryd.store.search.request import SearchSettings, Semantics
from memoryd.store.search.unrelated import UNRELATED
from memoryd.store.search.visibility import Visible

_SAMPLE = 600  # passages
_FEWEST = 8  # passages of a script; of fewer nothing can be learned
_FEWEST_CHUNKS = 10  # in fewer, words drawn from different passages stand together all the same
_MOST = 0.6  # share, and
_MOST_FLOOR = 0.8  # cosine: however much a memory repeats itself, no leg is silenced by it
_MOST_ALIKE = 0.95  # cosine: to a model that has no signs for a script, everything in it is the same
_QUERIES = 32  # of each script
_WORDS = 9  # about as many as a question has
_RUNS = 5  # of three characters each
_SENTENCES = 4  # about as many as a passage has
_POOL = 10  # chunks; the best of them is looked at
_WRITTEN = 0.1  # of a passage's letters: so many make it one of a script
_CHANGED = 0.2  # of the chunks, since the last measurement


@dataclass(frozen=True, slots=True)
class _Passage:
    id: int
    text: str


def calibration_due(sql: sqlite3.Connection, fingerprint: str) -> bool:
    """Whether noise was never measured with this model, or the memory has grown or shrunk much since. Of a memory that
    is too small it is kept that it was looked at."""
    row = sql.execute("SELECT value FROM meta WHERE key = ?", (noise_key(fingerprint),)).fetchone()
    chunks = _count_chunks(sql)
    if row is None:
        return chunks > 0
    record = json.loads(row[0])
    before = record["chunks"]
    return record.get("version") != NOISE_VERSION or bool(abs(chunks - before) > _CHANGED * max(before, 1))


def calibrate_noise(database: Database, semantics: Semantics, fingerprint: str) -> dict[str, Noise]:
    """Measure and keep. Raises what the embedder and the vector index raise."""
    with database.read() as sql:
        chunks = _count_chunks(sql)
        record = read_record(sql, fingerprint)
        rows = sql.execute("SELECT id, text FROM passages WHERE text_hash IS NOT NULL ORDER BY id LIMIT ?", (_SAMPLE,))
        passages = [_Passage(*row) for row in rows]
    parts = measure_parts([passage.text for passage in passages])
    by_script: dict[str, list[_Passage]] = {}
    for passage in passages:
        by_script.setdefault(script_of(passage.text), []).append(passage)
    nonsense = {
        script: made
        for script, drawn in sorted(by_script.items(), key=lambda each: (-len(each[1]), each[0]))
        if chunks >= _FEWEST_CHUNKS and (made := make_nonsense([passage.text for passage in drawn], script))
    }
    known = record.get("chances", {})
    chances = {
        script: known[script] if script in known else _chance(semantics, UNRELATED[script])
        for script in sorted(by_script.keys() & UNRELATED.keys() - {LATIN})
    }
    usual = record.get("usual", 0.0)
    if not usual and (nonsense or chances):
        usual = _unrelated_cosine(semantics)
    measured = {
        script: replace(
            _measure(database, semantics, by_script[script], made, Written(script, parts[script]), usual), chunks=chunks
        )
        for script, made in nonsense.items()
    }
    database.remember(noise_key(fingerprint), noise_record(measured, chunks, usual, chances))
    return measured


def make_nonsense(texts: Sequence[str], script: str) -> list[str]:
    """Queries of words of a script that stand in different passages. None from too few of them."""
    found = [words for text in texts if (words := [word for word in split_runs(text) if script_of(word) == script])]
    if len(found) < _FEWEST:
        return []
    chance = random.Random(0)  # noqa: S311 - nothing is secret here
    return [_draw(chance, found) for _ in range(_QUERIES)]


def _draw(chance: random.Random, found: Sequence[Sequence[str]]) -> str:
    """About as many words as a question has; of a script without spaces, about as many characters."""
    drawn: list[str] = []
    while len(drawn) < (_RUNS if drawn and is_run(drawn[0]) else _WORDS):
        word = chance.choice(chance.choice(found))
        start = chance.randrange(max(1, len(word) - 2)) if is_run(word) else 0
        drawn.append(word[start : start + 3] if is_run(word) else word)
    return "".join(drawn) if is_run(drawn[0]) else " ".join(drawn)


def measure_parts(texts: Sequence[str]) -> dict[str, float]:
    """Script -> share of the texts that are written in it, be it among others."""
    found: Counter[str] = Counter()
    for text in texts:
        letters = count_letters(text)
        found.update(script for script, count in letters.items() if count >= _WRITTEN * letters.total())
    return {script: round(count / len(texts), 4) for script, count in found.items()}


def _measure(
    database: Database,
    semantics: Semantics,
    passages: Sequence[_Passage],
    nonsense: Sequence[str],
    written: Written,
    usual: float,
) -> Noise:
    index = semantics.index()
    asked = [(text, semantics.embed_query(text)) for text in nonsense]
    sample = list(index.vectors([passage.id for passage in passages]).values())
    shares: dict[str, list[float]] = {"words": [], "trigram": [], "vector": []}
    chance: list[float] = []
    for text, vector in asked:
        chance.extend((np.stack(sample) @ vector).tolist() if sample else [])
        with database.read() as sql:
            for leg, best in _best_shares(sql, index, text, vector, written).items():
                shares[leg].append(best)
    floor = min(_MOST_FLOOR, max(0.0, fmean(chance))) if chance else 0.0
    levels = {leg: fmean(found) for leg, found in shares.items()}
    levels["vector"] = max(0.0, (levels["vector"] - floor) / (1 - floor))
    noise = Noise(
        {leg: round(min(_MOST, level), 4) for leg, level in levels.items()},
        round(floor, 4),
        written.part,
        round(min(1.0, (1 - floor) / (1 - usual)), 4),
    )
    with database.read() as sql:
        passage = fmean(_best_passage(sql, index, text, vector, written, noise) for text, vector in asked)
    return replace(noise, shares={**noise.shares, PASSAGE: round(min(_MOST, passage), 4)})


def _unrelated_cosine(semantics: Semantics) -> float:
    """Of texts that have nothing to do with each other, in a script that every model reads."""
    (texts,) = UNRELATED[LATIN]
    vectors = np.stack([semantics.embed_query(text) for text in texts])
    cosines = vectors @ vectors.T
    return min(_MOST_FLOOR, max(0.0, float(cosines[~np.eye(len(texts), dtype=bool)].mean())))


def _chance(semantics: Semantics, languages: Sequence[Sequence[str]]) -> float:
    """The cosine of a question and a passage of one language that have nothing to do with each other."""
    found: list[float] = []
    for texts in languages:
        queries = np.stack([semantics.embed_query(text) for text in texts])
        joined = [" ".join(texts[at : at + _SENTENCES]) for at in range(0, len(texts), _SENTENCES)]
        cosines = queries @ np.stack([semantics.embed_passage(text) for text in joined]).T
        other = np.arange(len(texts))[:, None] // _SENTENCES != np.arange(len(joined))
        found.extend(cosines[other].tolist())
    return min(_MOST_ALIKE, max(0.0, fmean(found)))


def _best_shares(
    sql: sqlite3.Connection, index: VectorIndex, text: str, vector: Vectors, written: Written
) -> dict[str, float]:
    rankings, _ = _ask_legs(sql, index, _without_chance(sql, text), vector, written)
    return {leg: max((place.share for place in ranking.values()), default=0.0) for leg, ranking in rankings.items()}


def _best_passage(
    sql: sqlite3.Connection, index: VectorIndex, text: str, vector: Vectors, written: Written, noise: Noise
) -> float:
    """What a single passage has of a query at best, by words and meaning together."""
    keywords = _without_chance(sql, text)
    rankings, cosines = _ask_legs(sql, index, keywords, vector, written, noise.floor)
    weights = weigh_legs(rankings, SearchSettings().weights, noise, fusion="weighted", adaptive=True)
    candidates = fuse(rankings, {leg: weight.value for leg, weight in weights.items()}, "weighted", 1)
    words = weigh_words(sql, keywords, written)
    _, best = read_best_passages(sql, candidates, words, weights, cosines, noise.floor)
    return max((passage.share for passage in best.values()), default=0.0)


def _without_chance(sql: sqlite3.Connection, text: str) -> KeywordQuery:
    keywords = build_query(text)
    return keywords.without(chance_words(sql, keywords.words))


def _ask_legs(
    sql: sqlite3.Connection,
    index: VectorIndex,
    keywords: KeywordQuery,
    vector: Vectors,
    written: Written,
    floor: float = 0.0,
) -> tuple[dict[str, Ranking], Mapping[int, float]]:
    """What each leg says of every candidate, as in a search, and the cosines of their passages."""
    everything = Visible()
    legs = ask_all(
        {
            "words": words_leg(sql, keywords, _POOL, everything, written),
            "trigram": trigram_leg(sql, keywords, _POOL, everything, written),
        }
    )
    held = passages_of(sql, {chunk for leg in legs.values() for chunk in leg.ranking})
    near = vector_leg(sql, seek_passages(index, vector, _POOL, everything), _POOL, everything, held, floor)
    rankings = {name: leg.ranking for name, leg in ask_all(legs, near.ranking).items()}
    return rankings | {"vector": near.ranking}, near.cosines


def _count_chunks(sql: sqlite3.Connection) -> int:
    return int(sql.execute("SELECT count(*) FROM chunks").fetchone()[0])
