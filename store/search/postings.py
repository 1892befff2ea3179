"""What FTS5 says of a phrase, kept for as long as its index is the same: how many chunks have it, and how well.

FTS5 scores a phrase at about a microsecond for each chunk that has it, and the phrases that most chunks have are in
every question. Its record of an index's structure changes with each write, so it tells which index something was
read from.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memoryd.store.keywords import index_state
from memoryd.store.sqlite_file import Connection
from memoryd.store.varints import read_varints

_MOST_COUNTS = 4096  # that are kept
_MOST_BYTES = 1_600_000  # of all postings that are kept of an index, over each connection: 16 or 8 for a place

_LAST_LETTER = chr(0x10FFFF)

Chunks = NDArray[np.int64]
Scores = NDArray[np.float64]
Stretch = tuple[int, int]  # of chunks, from one id to another, both included


@dataclass(frozen=True, slots=True)
class Postings:
    """The chunks that have a phrase, by id, and FTS5's BM25 of each: more is better."""

    chunks: Chunks
    scores: Scores

    @property
    def nbytes(self) -> int:
        return self.chunks.nbytes + (0 if self.scores.strides == (0,) else self.scores.nbytes)

    def of(self, chunks: Chunks) -> Scores:
        """The score of each of these chunks; 0 = it does not have the phrase."""
        if not len(self.chunks):
            return np.zeros(len(chunks))
        at = np.minimum(np.searchsorted(self.chunks, chunks), len(self.chunks) - 1)
        return np.where(self.chunks[at] == chunks, self.scores[at], 0.0)

    def since(self, chunk: int) -> Postings:
        """Of chunks from this one on."""
        late = self.chunks >= chunk
        return Postings(self.chunks[late], self.scores[late])


@dataclass(slots=True)
class Kept:
    """What was read of one index."""

    structure: bytes = b""
    chunks: int = 0
    usual: float = 1.0  # tokens of a chunk, on average
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)  # of each phrase how many have it, counted up to
    postings: dict[tuple[str, int], Postings] = field(default_factory=dict)  # what was asked for last comes last
    nbytes: int = 0


class Index:
    """One of FTS5's tables in the snapshot that a query reads: what is kept of it is looked for once."""

    def __init__(self, sql: sqlite3.Connection, name: str) -> None:
        self.sql, self.name = sql, name
        self._kept = kept = _kept(sql, name)
        self.chunks, self.usual = kept.chunks, kept.usual

    def count(self, phrase: str, end: int) -> int:
        """How many chunks have the phrase, counted up to ``end``."""
        counts = self._kept.counts
        having, counted = counts.get(phrase, (0, 0))
        if having == counted < end:  # there may be more
            if len(counts) >= _MOST_COUNTS:
                counts.clear()
            query = f"SELECT count(*) FROM (SELECT 1 FROM {self.name} WHERE {self.name} MATCH ? LIMIT ?)"  # noqa: S608 - a constant
            having = self.sql.execute(query, (phrase, end)).fetchone()[0]
            counts[phrase] = having, end
        return min(having, end)

    def postings(self, phrase: str) -> Postings:
        """Of every chunk that has the phrase."""
        query = f"SELECT rowid, -bm25({self.name}) FROM {self.name} WHERE {self.name} MATCH ?"  # noqa: S608 - a constant
        return self.keep(phrase, lambda: _make(self.sql.execute(query, (phrase,)).fetchall()))

    def keep(self, phrase: str, read: Callable[[], Postings], most: int = -1) -> Postings:
        """What ``read`` tells of the chunks that have the phrase, all or so many, unless it is known."""
        kept, name = self._kept, (phrase, most)
        postings = kept.postings.pop(name, None)
        if postings is None:
            postings = read()
            kept.nbytes += postings.nbytes
            while kept.postings and kept.nbytes > _MOST_BYTES:
                kept.nbytes -= kept.postings.pop(next(iter(kept.postings))).nbytes
        kept.postings[name] = postings
        return postings

    def newest(self, phrase: str, most: int) -> Postings:
        """Of the newest chunks that have the phrase. Each has a score of 1: for its BM25, FTS5 would count all that
        have it."""
        # As one value: a row for each of thousands takes Python four times as long as FTS5.
        query = (
            f"SELECT group_concat(rowid) FROM (SELECT rowid FROM {self.name} WHERE {self.name} MATCH ?"  # noqa: S608 - a constant
            " ORDER BY rowid DESC LIMIT ?)"
        )
        return self.keep(phrase, lambda: _make_alike(self.sql.execute(query, (phrase, most))), most)

    def between(self, phrase: str, stretches: Sequence[Stretch]) -> Postings:
        """Of the chunks in these stretches that have the phrase. Each has a score of 1."""
        name = self.name
        query = (
            f"SELECT group_concat({name}.rowid) FROM json_each(?) own CROSS JOIN {name}"  # noqa: S608 - a constant
            f" ON {name}.rowid BETWEEN own.value ->> 0 AND own.value ->> 1 WHERE {name} MATCH ?"
        )
        return _make_alike(self.sql.execute(query, (json.dumps(stretches), phrase)))

    def terms_beginning(self, letters: str, most: int) -> list[str]:
        """The trigrams that begin so, the commonest first."""
        query = "SELECT term FROM temp.trigrams WHERE term >= ? AND term <= ? ORDER BY doc DESC LIMIT ?"
        return [row[0] for row in self.sql.execute(query, (letters, letters + _LAST_LETTER, most))]

    def chunks_with(self, phrase: str, most: int) -> Chunks:
        """The newest of the chunks that have the phrase, so many at most; or all of them, where they are known."""
        known = self._kept.postings.get((phrase, -1)) or self.newest(phrase, most)
        return known.chunks


def _make_alike(found: sqlite3.Cursor) -> Postings:
    """Of chunks that are told in one value, in any order."""
    (told,) = found.fetchone()
    chunks: Chunks = np.unique(np.fromstring(told, np.int64, sep=",")) if told else np.empty(0, np.int64)
    return Postings(chunks, np.broadcast_to(np.float64(1.0), len(chunks)))


def _make(rows: Sequence[tuple[int, float]]) -> Postings:
    chunks, scores = zip(*rows, strict=True) if rows else ((), ())
    return Postings(np.array(chunks, np.int64), np.array(scores, np.float64))


def add_up(postings: Iterable[tuple[Postings, float]]) -> Postings:
    """The chunks of all of them, each with the sum of its scores by the factors."""
    weighted = list(postings)
    every = np.concatenate([each.chunks for each, _ in weighted])
    order = np.argsort(every, kind="stable")
    every, scores = every[order], np.concatenate([each.scores * factor for each, factor in weighted])[order]
    first = np.flatnonzero(np.diff(every, prepend=every[:1] - 1))
    return Postings(every[first], np.add.reduceat(scores, first) if len(first) else scores)


def _kept(sql: sqlite3.Connection, index: str) -> Kept:
    """What was read before over this connection, if the index is still the same."""
    structure = index_state(sql, index)
    known: Kept | None = sql.kept.get(index) if isinstance(sql, Connection) else None
    if known is not None and known.structure == structure:
        return known
    # From the record that FTS5 keeps of it, a varint each, the tokens by column: counting would read it all.
    row = sql.execute(f"SELECT block FROM {index}_data WHERE id = 1").fetchone()  # noqa: S608 - a constant
    chunks, *tokens = read_varints(row[0]) if row and row[0] else (0,)
    kept = Kept(structure, chunks, max(1.0, sum(tokens) / max(1, chunks)))
    if isinstance(sql, Connection):
        sql.kept[index] = kept
    return kept
