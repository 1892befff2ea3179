"""How much of a query stands in one place: the foremost candidates are read, passage by passage.

A chunk may have a query's words scattered over its passages, and a passage that is near in meaning and has none of
them. The chunk that answers has both in one place more often than not, and no leg sees that: keywords look at chunks,
vectors at passages without their words. So each of the foremost candidates is also judged by its best passage, by words
and meaning together, and that judgement is a part of its fused score.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from operator import attrgetter

from memoryd.store.folding import is_unspaced
from memoryd.store.naming import name_of
from memoryd.store.search.answer import BestPassage, Candidate, Weight
from memoryd.store.search.chunk_rows import ChunkRow, read_chunks
from memoryd.store.search.highlights import begins, plain, stands_in
from memoryd.store.search.stems import stem

FOREMOST = 6  # candidates that are read, as many as are returned: what is among them stays among them


@dataclass(frozen=True, slots=True)
class Weighed:
    """Chunks as the ledger has them, and of each of their passages how much of the query's words it has, as a share."""

    rows: Mapping[int, ChunkRow]
    has: Mapping[int, float]  # by passage; of none where the query has no words

    def __or__(self, other: Weighed) -> Weighed:
        return Weighed({**self.rows, **other.rows}, {**self.has, **other.has})


NOTHING = Weighed({}, {})


def read_best_passages(
    sql: sqlite3.Connection,
    candidates: Sequence[Candidate],
    words: Mapping[str, float],
    weights: Mapping[str, Weight],
    cosines: Mapping[int, float],
    floor: float,
    unknown: Set[int] = frozenset(),
    known: Weighed = NOTHING,
) -> tuple[Weighed, dict[int, BestPassage]]:
    """The foremost candidates as the ledger has them, beside those that were known, and the best passage of each.

    ``cosines``: by passage. ``known``: what was read before of some chunks.
    """
    foremost = [candidate.chunk_id for candidate in candidates[:FOREMOST]]
    weighed = known | weigh_passages(read_chunks(sql, [chunk for chunk in foremost if chunk not in known.rows]), words)
    rows = {chunk: weighed.rows[chunk] for chunk in foremost if chunk in weighed.rows}
    return weighed, find_best_passages(rows, weighed.has, measure_nearness(rows, cosines, floor), weights, unknown)


def weigh_passages(rows: Mapping[int, ChunkRow], words: Mapping[str, float]) -> Weighed:
    """``words``: the query's, with what each weighs."""
    total = sum(words.values())
    if not total:
        return Weighed(rows, {})
    folded = [(plain(word), weight) for word, weight in words.items()]
    stemmed = [(stem(word), weight) for word, weight in folded if _has_endings(word)]
    stems = [(begins(key), key, weight) for key, weight in stemmed]
    literal = [(word, weight) for word, weight in folded if not _has_endings(word)]
    has = {}
    for row in rows.values():
        name = name_of(row.path, row.source)  # said of all of it; a heading is not: counted here, it costs first hits
        for passage in row.passages.values():
            has[passage.id] = _weigh(f"{name}\n{passage.text}", stems, literal) / total
    return Weighed(rows, has)


def measure_nearness(rows: Mapping[int, ChunkRow], cosines: Mapping[int, float], floor: float) -> dict[int, float]:
    """By passage, how near it is to the query, as a share; nothing where vectors cannot tell."""
    return {
        passage.id: min(1.0, max(0.0, (cosines[passage.id] - floor) / (1 - floor)))
        for row in rows.values()
        for passage in row.passages.values()
        if passage.id in cosines
    }


def find_best_passages(
    rows: Mapping[int, ChunkRow],
    has: Mapping[int, float],
    nearness: Mapping[int, float],
    weights: Mapping[str, Weight],
    unknown: Set[int] = frozenset(),
) -> dict[int, BestPassage]:
    """The passage of each chunk that has most of the query.

    ``has``: by passage, the share of the query's words. ``unknown``: chunks whose vectors are not there yet, which are
    judged by their words alone.
    """
    by_words, by_meaning = (weights[leg].value if leg in weights else 0.0 for leg in ("words", "vector"))
    if not has or not by_words:
        return {}
    found = {}
    for chunk, row in rows.items():
        meaning = 0.0 if chunk in unknown or not nearness else by_meaning
        best = BestPassage(0.0, row.span.first)
        for ordinal, passage in row.passages.items():
            worth = by_words * has[passage.id] + meaning * nearness.get(passage.id, 0.0)
            share = min(1.0, worth / (by_words + meaning))
            best = BestPassage(share, ordinal) if share > best.share else best
        found[chunk] = best
    return found


def _has_endings(word: str) -> bool:
    """Else it is looked for as it is: a pair of characters of a script without spaces, a snake_case name."""
    return word.isalnum() and not is_unspaced(word)


def _weigh(text: str, stems: Iterable[tuple[str, str, float]], literal: Iterable[tuple[str, float]]) -> float:
    """What the words weigh that a text has. Of most it has not even the beginning, which is soon told."""
    folded = plain(text)
    has = sum([weight for beginning, key, weight in stems if beginning in folded and stands_in(folded, key)])
    return has + sum([weight for word, weight in literal if word in folded])


def concentrate(candidates: Sequence[Candidate], best: Mapping[int, BestPassage], part: float) -> list[Candidate]:
    """The candidates, best first; of those that were read, that part of the score is what their best passage has.

    What was not read is taken to lose as much as the one that loses most: nothing rises for not having been looked at.
    """
    read = [candidate for candidate in candidates if candidate.chunk_id in best]
    mixed = {chunk: (1 - part) * fused + part * best[chunk].share for chunk, _, fused, *_ in read}
    least = min([1.0, *(mixed[chunk] / fused for chunk, _, fused, *_ in read)])
    marked = {chunk: passage._replace(part=part) for chunk, passage in best.items()}
    judged = [
        Candidate(chunk, legs, mixed.get(chunk, fused * least), best=marked.get(chunk))
        for chunk, legs, fused, *_ in candidates
    ]
    judged.sort(key=attrgetter("fused"), reverse=True)  # of equals in the order of the fusion
    return judged
