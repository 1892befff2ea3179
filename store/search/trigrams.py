"""What the trigram index tells, and what has to be read in the text.

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
from memoryd.store.search.postings import Chunks, Postings, Scores, add_up, keep_postings, read_totals
from memoryd.store.search.rarity import Phrase
from memoryd.store.varints import add_varints

TRIGRAM = 3  # characters
READ = 50  # chunks whose text is read
_K1, _B = 1.2, 0.75  # BM25's, as FTS5 has them


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a query, and the chunks that have its trigrams."""

    text: str  # folded
    phrase: Phrase
    having: Postings


def read_presence(sql: sqlite3.Connection, index: str, phrase: str) -> Postings:
    """Of every chunk that has the trigrams: BM25 as if the term stood in it once, by its length."""

    def read() -> Postings:
        rows = sql.execute(
            f"SELECT sizes.rowid, sizes.sz FROM {index} CROSS JOIN {index}_docsize sizes ON sizes.id = {index}.rowid"  # noqa: S608 - a constant
            f" WHERE {index} MATCH ?",
            (phrase,),
        ).fetchall()
        lengths = add_varints([row[1] for row in rows])
        return Postings(np.array([row[0] for row in rows], np.int64), _bm25(1.0, lengths, _usual(sql, index)))

    return keep_postings(sql, index, phrase, read)


def judge_chunks(
    sql: sqlite3.Connection, index: str, best: Sequence[int], terms: Sequence[Term]
) -> tuple[list[tuple[int, float]], list[Phrase]]:
    """The chunks, given best first, with their scores as the text of the first of them has it, best first; and the
    phrases, counted anew. A chunk that turns out to have none of the terms is left out."""
    read = best[:READ]
    texts = _read_texts(sql, read)
    times = np.array([[text.count(term.text) for term in terms] for text in texts], np.float64).reshape(-1, len(terms))
    phrases: list[Phrase] = []
    factors: list[float] = []
    for place, term in enumerate(terms):
        part = _part(term, np.array(read, np.int64), times[:, place])
        phrases.append(replace(term.phrase, having=round(term.phrase.having * part)))
        factors.append(phrases[-1].weight * part)
    lengths = np.array([max(0, len(text) - 5) for text in texts])  # as many trigrams as FTS5 has of text and heading
    weights = np.array([phrase.weight for phrase in phrases])
    scores = _bm25(times, lengths[:, None], _usual(sql, index)) @ weights
    judged = dict(zip(read, scores.tolist(), strict=True))
    if rest := best[READ:]:
        everything = add_up((term.having, factor) for term, factor in zip(terms, factors, strict=True))
        others = everything.scores[np.searchsorted(everything.chunks, rest)]
        judged |= dict(zip(rest, others.tolist(), strict=True))
    found = [(chunk, score) for chunk, score in judged.items() if score > 0]
    return sorted(found, key=lambda each: -each[1]), phrases  # of equals in the order that they came in


def _part(term: Term, read: Chunks, times: Scores) -> float:
    """Of the chunks that have a term's trigrams, the part that has the term, as far as was read."""
    if len(term.text) == TRIGRAM:
        return 1.0
    having = np.count_nonzero(np.isin(read, term.having.chunks))
    return np.count_nonzero(times) / having if having else 1.0


def _read_texts(sql: sqlite3.Connection, chunks: Sequence[int]) -> list[str]:
    """The texts as the index has them, in the order of the chunks."""
    rows = sql.execute(
        """
        SELECT c.id, p.ordinal, c.heading, p.text FROM json_each(?) wanted CROSS JOIN chunks c ON c.id = wanted.value
         CROSS JOIN passages p ON p.document_id = c.document_id AND p.ordinal BETWEEN c.first_passage AND c.last_passage
        """,
        (json.dumps(list(chunks)),),
    )
    texts: dict[int, list[str]] = {chunk: [] for chunk in chunks}
    for chunk, _, heading, text in sorted(rows):
        parts = texts[chunk]
        parts.append(text if parts else f"{heading}\n{text}")
    return [fold("".join(parts)) for parts in texts.values()]


def _bm25(times: float | Scores, lengths: Scores, usual: float) -> Scores:
    return times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * lengths / usual))


def _usual(sql: sqlite3.Connection, index: str) -> float:
    """A chunk's length on average, in trigrams."""
    chunks, trigrams = read_totals(sql, index)
    return max(1.0, trigrams / max(1, chunks))
