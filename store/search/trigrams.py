"""What the trigram index tells of a term, and what has to be read in the text.

The index knows in which chunks a trigram stands, not where nor how often: with places it took seven times the room. So
a term is asked for as all of its trigrams together, which a chunk may have without the term. Of the best chunks the
text is read: there each term is counted, and the part of them that really has it is taken to be that of all.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from memoryd.store.folding import fold
from memoryd.store.search.postings import Chunks, Index, Postings, Scores
from memoryd.store.search.rarity import Phrase
from memoryd.store.varints import add_varints

READ = 50  # chunks whose text is read
_TRIGRAM = 3  # characters
_DOUBTFUL = 0.5  # of the chunks that were read for their trigrams: if fewer have the term, it is rarer than it seems
_K1, _B = 1.2, 0.75  # BM25's, as FTS5 has them


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a query, and the chunks that have its trigrams."""

    text: str  # folded
    phrase: Phrase
    having: Postings  # each as if the term stood in it once


@dataclass(frozen=True, slots=True)
class Reading:
    """What the text of some chunks says."""

    chunks: list[int]
    times: Scores  # that each term stands in each chunk
    lengths: Scores  # in trigrams

    def and_of(self, other: Reading) -> Reading:
        times, lengths = np.concatenate((self.times, other.times)), np.concatenate((self.lengths, other.lengths))
        return Reading([*self.chunks, *other.chunks], times, lengths)


def _may_lack(term: Term) -> bool:
    """Whether a chunk that has its trigrams may be without it."""
    return len(term.text) > _TRIGRAM


def true_parts(reading: Reading, terms: Sequence[Term]) -> list[float]:
    """For each term, of the chunks that were read and have its trigrams, the part that has it; 1 if none was."""
    if not any(map(_may_lack, terms)):
        return [1.0] * len(terms)
    having = np.count_nonzero(_presence(np.array(reading.chunks, np.int64), terms), axis=0).tolist()
    true = np.count_nonzero(reading.times, axis=0).tolist()
    return [min(1.0, found / alike) if alike else 1.0 for found, alike in zip(true, having, strict=True)]


def doubtful_terms(parts: Sequence[float], terms: Sequence[Term]) -> list[Term]:
    """Those that most of the chunks do not have that were read for their trigrams."""
    return [term for term, part in zip(terms, parts, strict=True) if part < _DOUBTFUL]


def read_presence(index: Index, phrase: str) -> Postings:
    """Of every chunk that has the trigrams: BM25 as if the term stood in it once, by its length."""

    def read() -> Postings:
        name = index.name
        rows = index.sql.execute(
            f"SELECT sizes.id, sizes.sz FROM {name} CROSS JOIN {name}_docsize sizes ON sizes.id = {name}.rowid"  # noqa: S608 - a constant
            f" WHERE {name} MATCH ?",
            (phrase,),
        ).fetchall()
        lengths = add_varints([row[1] for row in rows])
        return Postings(np.array([row[0] for row in rows], np.int64), _bm25(1.0, lengths, index.usual))

    return index.keep(phrase, read)


def read_terms(sql: sqlite3.Connection, chunks: Sequence[int], terms: Sequence[Term]) -> Reading:
    texts = read_texts(sql, chunks)
    times = np.array([[text.count(term.text) for term in terms] for text in texts.values()], np.float64)
    times = times.reshape(len(texts), len(terms))
    return Reading(list(texts), times, np.array([_count_trigrams(text) for text in texts.values()], np.float64))


def read_texts(sql: sqlite3.Connection, chunks: Sequence[int]) -> dict[int, str]:
    """Folded, the heading as the first line."""
    rows = sql.execute(
        """
        SELECT c.id, p.ordinal, p.text,
               iif(p.ordinal = c.first_passage, indexed_heading(c.heading, d.path, d.source), '')
          FROM json_each(?) wanted CROSS JOIN chunks c ON c.id = wanted.value
         CROSS JOIN documents d ON d.id = c.document_id
         CROSS JOIN passages p ON p.document_id = c.document_id AND p.ordinal BETWEEN c.first_passage AND c.last_passage
        """,
        (json.dumps(list(chunks)),),
    )
    passages: dict[int, list[str]] = {chunk: [] for chunk in chunks}
    for chunk, _, text, heading in sorted(rows):
        passages[chunk].append(text if passages[chunk] else f"{heading}\n{text}")
    return {chunk: fold("".join(found)) for chunk, found in passages.items()}


def _count_trigrams(text: str) -> int:
    """As many as FTS5 has of heading and text, the heading being the first line."""
    heading = text.find("\n")
    return max(0, heading - _TRIGRAM + 1) + max(0, len(text) - heading - _TRIGRAM)


@dataclass(frozen=True, slots=True)
class Scoring:
    """What chunks score: those that were read by their text, others as if they had each term as often as these."""

    read: dict[int, float]
    terms: Sequence[Term]
    weights: Scores  # of each term, with the part of the chunks that really has it and how often it stands there

    def of(self, chunks: Chunks) -> Scores:
        expected = (_presence(chunks, self.terms) @ self.weights).tolist()
        return np.array([self.read.get(chunk, each) for chunk, each in zip(chunks.tolist(), expected, strict=True)])


def score_reading(
    index: Index, reading: Reading, terms: Sequence[Term], parts: Sequence[float]
) -> tuple[Scoring, list[Phrase]]:
    """And the phrases, counted anew."""
    phrases = [
        replace(term.phrase, having=round(term.phrase.having * part)) for term, part in zip(terms, parts, strict=True)
    ]
    weights = np.array([phrase.weight for phrase in phrases])
    scores = _bm25(reading.times, reading.lengths[:, None], index.usual) @ weights
    expected = weights * np.array(parts)
    once = _presence(np.array(reading.chunks, np.int64), terms) @ expected
    more = scores.sum() / max(1e-9, once.sum())  # for terms stand more than once
    read = dict(zip(reading.chunks, scores.tolist(), strict=True))
    return Scoring(read, terms, expected * more), phrases


def _presence(chunks: Chunks, terms: Sequence[Term]) -> Scores:
    """What the index knows of each chunk and each term; 0 = it lacks a trigram."""
    return np.stack([term.having.of(chunks) for term in terms], axis=1)


def _bm25(times: float | Scores, lengths: Scores, usual: float) -> Scores:
    return times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * lengths / usual))
