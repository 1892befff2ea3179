"""What FTS5 says of a phrase, kept for as long as its index is the same: how many chunks have it, and how well.

FTS5 scores a phrase at about a microsecond for each chunk that has it, and the phrases that most chunks have are in
every question. Its record of an index's structure changes with each write, so it tells which index something was
read from.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memoryd.store.sqlite_file import Connection

_MOST_COUNTS = 4096  # that are kept
_MOST_PLACES = 250_000  # of all postings that are kept: 16 bytes each

Chunks = NDArray[np.int64]
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Postings:
    """The chunks that have a phrase, and FTS5's BM25 of each: more is better."""

    chunks: Chunks
    scores: Scores


@dataclass(slots=True)
class Kept:
    """What was read of one index."""

    structure: bytes = b""
    counts: dict[tuple[str, int], int] = field(default_factory=dict)
    postings: dict[str, Postings] = field(default_factory=dict)  # the one that was asked for last comes last
    places: int = 0


def count_chunks(sql: sqlite3.Connection, index: str, phrase: str, end: int) -> int:
    """How many chunks have the phrase, counted up to ``end``; -1 = to the last."""
    counts = _kept(sql, index).counts
    if (phrase, end) not in counts:
        if len(counts) >= _MOST_COUNTS:
            counts.clear()
        query = f"SELECT count(*) FROM (SELECT 1 FROM {index} WHERE {index} MATCH ? LIMIT ?)"  # noqa: S608 - a constant
        counts[phrase, end] = sql.execute(query, (phrase, end)).fetchone()[0]
    return counts[phrase, end]


def read_postings(sql: sqlite3.Connection, index: str, phrase: str) -> Postings:
    kept = _kept(sql, index)
    postings = kept.postings.pop(phrase, None)
    if postings is None:
        query = f"SELECT rowid, -bm25({index}) FROM {index} WHERE {index} MATCH ?"  # noqa: S608 - a constant
        rows = sql.execute(query, (phrase,)).fetchall()
        chunks = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        postings = Postings(chunks, np.fromiter((row[1] for row in rows), np.float64, len(rows)))
        kept.places += len(rows)
        while kept.postings and kept.places > _MOST_PLACES:
            kept.places -= len(kept.postings.pop(next(iter(kept.postings))).chunks)
    kept.postings[phrase] = postings
    return postings


def add_up(postings: Iterable[tuple[Postings, float]]) -> Postings:
    """The chunks of all of them, each with the sum of its scores by the factors."""
    weighted = list(postings)
    every = np.concatenate([each.chunks for each, _ in weighted])
    chunks, place = np.unique(every, return_inverse=True)
    scores = np.concatenate([each.scores * factor for each, factor in weighted])
    return Postings(chunks, np.bincount(place, scores, len(chunks)).astype(np.float64, copy=False))


def _kept(sql: sqlite3.Connection, index: str) -> Kept:
    """What was read before over this connection, if the index is still the same."""
    if not isinstance(sql, Connection):
        return Kept()
    (structure,) = sql.execute(f"SELECT block FROM {index}_data WHERE id = 10").fetchone()  # noqa: S608 - a constant
    kept: Kept | None = sql.kept.get(index)
    if kept is None or kept.structure != structure:
        kept = sql.kept[index] = Kept(structure)
    return kept
