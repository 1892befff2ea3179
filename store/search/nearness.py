"""The leg of meaning: chunks by how near their passages are to the query.

A chunk is as near as its best passage and its passages on average, in equal parts: the first finds the sentence, the
second tells the note that is about it from the one that mentions it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import count, islice
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from memoryd.store.packed_ids import LAYOUT
from memoryd.store.protocols import Match, VectorIndex, Vectors
from memoryd.store.search.answer import LegRank, Ranking
from memoryd.store.search.decay import DATED, Dated
from memoryd.store.search.visibility import Visible

_PASSAGES_PER_CHUNK = 4  # of a pool of chunks, how many passages must be asked for

Column = NDArray[np.int64]

_ROW = f"c.id, c.key, c.first_passage, c.passages, {DATED}"  # what there is to know of a chunk here, in SQL
_Row = tuple[int, str, int, bytes, str | None, int, str | None]


@dataclass(frozen=True, slots=True)
class Sought:
    """The passages nearest to a query, before the ledger is asked what they are of."""

    vector: Vectors
    index: VectorIndex
    matches: list[Match]


def seek_passages(index: VectorIndex, vector: Vectors, limit: int, visible: Visible) -> Sought:
    """Enough of the nearest passages for ``limit`` chunks. Needs no ledger, so it can run beside the keyword legs."""
    wanted = (limit + len(visible.hidden_chunks)) * _PASSAGES_PER_CHUNK
    return Sought(vector, index, index.search(vector, wanted, visible.documents))


@dataclass(frozen=True, slots=True)
class Held:
    """The passages of some chunks that can have a vector: a row for each, those of a chunk together and in order."""

    chunks: Column
    passages: Column  # their ids
    ordinals: Column
    dates: Mapping[int, Dated]  # of every chunk that the ledger knows

    def __add__(self, other: Held) -> Held:
        return Held(
            np.concatenate((self.chunks, other.chunks)),
            np.concatenate((self.passages, other.passages)),
            np.concatenate((self.ordinals, other.ordinals)),
            {**self.dates, **other.dates},
        )


@dataclass(frozen=True, slots=True)
class Nearness:
    """What the vector leg says: of chunks that it found, and of those that the others found."""

    ranking: Ranking
    unknown: frozenset[int]  # chunks that it cannot judge, for their vectors are not there yet
    dates: Mapping[int, Dated]  # of all of them
    cosines: Mapping[int, float]  # of all their passages that have a vector, by id


def vector_leg(
    sql: sqlite3.Connection,
    sought: Sought,
    limit: int,
    visible: Visible,
    others: Held | None = None,
    floor: float = 0.0,
    within: Visible | None = None,
) -> Nearness:
    """The chunks with the nearest passages, and how near each of the ``others`` is, whose passages were read before.

    ``floor`` is the cosine of things that have nothing to do with each other. ``within``: as many are brought of these,
    too.
    """
    found = _chunks_of(sql, sought, limit, visible)
    if within:
        found |= _chunks_of(sql, seek_passages(sought.index, sought.vector, limit, within), limit, within)
    held = _hold(row for chunk, row in found.items() if not others or chunk not in others.dates)
    held = others + held if others else held
    return _rank(held, sought.index.cosines(held.passages.tolist(), sought.vector), found.keys(), floor)


def _rank(held: Held, cosines: Vectors, found: Set[int], floor: float) -> Nearness:
    """The nearest chunk first; of equals the one that is held first. ``cosines``: not a number where none is known.

    Of a chunk that the leg itself found, what is known is enough.
    """
    if not len(cosines):
        return Nearness({}, frozenset(), held.dates, {})
    starts = np.flatnonzero(np.diff(held.chunks, prepend=held.chunks[0] - 1))
    sizes = np.diff(starts, append=len(cosines))
    is_known = ~np.isnan(cosines)
    known = np.add.reduceat(is_known, starts, dtype=np.int64)
    best = np.fmax.reduceat(cosines, starts)
    first = np.where(cosines == np.repeat(best, sizes), np.arange(len(cosines)), len(cosines))  # of equals
    at = np.minimum.reduceat(first, starts)
    chunks = held.chunks[starts]
    unjudged = chunks[known < sizes].tolist()
    unknown = frozenset(unjudged).difference(found)

    is_near = known > 0
    if unknown:
        is_near &= ~np.isin(chunks, list(unknown))
    chunks, best, at, known = chunks[is_near], best[is_near].astype(np.float64), at[is_near], known[is_near]
    means = np.add.reduceat(np.where(is_known, cosines, 0.0).astype(np.float64), starts)[is_near] / known
    nearness = (best + means) / 2
    shares = np.clip((nearness - floor) / (1 - floor), 0.0, 1.0)
    order = np.argsort(-nearness, kind="stable")
    places = map(LegRank, count(1), best[order].tolist(), shares[order].tolist(), held.ordinals[at[order]].tolist())
    ranking = dict(zip(chunks[order].tolist(), places, strict=False))
    known_cosines = dict(zip(held.passages[is_known].tolist(), cosines[is_known].tolist(), strict=True))
    return Nearness(ranking, unknown, held.dates, known_cosines)


def _chunks_of(sql: sqlite3.Connection, sought: Sought, limit: int, visible: Visible) -> dict[int, _Row]:
    """The first chunks that hold the passages, in their order."""
    passages = [match.passage_id for match in sought.matches]
    found: dict[int, _Row] = {}
    step = limit + limit // 4  # mostly enough
    for start in range(0, len(passages), step):
        for row in _chunks_with(sql, passages[start : start + step]):
            if row[0] not in visible.hidden_chunks:
                found.setdefault(row[0], row)
        if len(found) >= limit:
            break
    return dict(islice(found.items(), limit))


def _chunks_with(sql: sqlite3.Connection, passages: Sequence[int]) -> list[_Row]:
    """Vectors that the ledger lost are ignored."""
    return sql.execute(
        f"""
        SELECT {_ROW} FROM json_each(?) wanted JOIN passages p ON p.id = wanted.value
          JOIN chunks c ON c.document_id = p.document_id AND p.ordinal BETWEEN c.first_passage AND c.last_passage
          JOIN documents d ON d.id = c.document_id
         ORDER BY wanted.key, c.ordinal
        """,  # noqa: S608 - a constant
        (json.dumps(passages),),
    ).fetchall()


def passages_of(sql: sqlite3.Connection, chunks: Collection[int]) -> Held:
    return _hold(
        sql.execute(
            f"""
            SELECT {_ROW}
              FROM json_each(?) wanted JOIN chunks c ON c.id = wanted.value JOIN documents d ON d.id = c.document_id
            """,  # noqa: S608 - a constant
            (json.dumps(list(chunks)),),
        )
    )


def _hold(found: Iterable[_Row]) -> Held:
    """In an order that a rebuild does not change."""
    rows = sorted(found, key=itemgetter(1, 0))
    if not rows:
        nothing = np.empty(0, np.int64)
        return Held(nothing, nothing, nothing, {})
    owners, _, firsts, packed, *dated = zip(*rows, strict=True)
    passages: Column = np.frombuffer(b"".join(packed), LAYOUT)
    sizes = np.array([len(ids) // passages.itemsize for ids in packed], np.int64)
    starts = np.cumsum(sizes) - sizes
    ordinals = np.arange(len(passages)) + np.repeat(np.array(firsts, np.int64) - starts, sizes)
    is_embedded = passages != 0
    dates = dict(zip(owners, zip(*dated, strict=True), strict=True))
    return Held(np.repeat(owners, sizes)[is_embedded], passages[is_embedded], ordinals[is_embedded], dates)
