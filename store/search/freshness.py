"""Of two dated notes that say alike things of what was asked, the newer one first.

Age alone cannot tell a note that is out of date from one that is merely old: a decay that is strong enough for the
first buries the second. But where a newer note has the query's words no less than the older one, its best passage is
like the older one's, and it scores nearly as much, both answer, and what was true once should not come before what is
true now.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from memoryd.store.errors import MemorydError
from memoryd.store.protocols import VectorIndex, Vectors
from memoryd.store.search.answer import Candidate, Newer
from memoryd.store.search.request import Decay

_WINDOW = 6  # candidates, as many as are returned: what is among them stays among them
_ALIKE = 0.3  # of the way from chance to the same passage


def put_newer_first(
    sql: sqlite3.Connection, candidates: Sequence[Candidate], index: VectorIndex | None, floor: float, decay: Decay
) -> list[Candidate]:
    """Without vectors, or where age does not matter, the order stays.

    ``floor`` is the cosine of things that have nothing to do with each other.
    """
    head = candidates[:_WINDOW]
    close = [
        (older, newer)
        for place, older in enumerate(head)
        for newer in head[place + 1 :]
        if _rivals(older, newer, decay.nearly)
    ]
    if not close or index is None or decay.strength == 0:
        return list(candidates)
    vectors = _best_passages(sql, {each.chunk_id: each for pair in close for each in pair}.values(), index)
    least = floor + _ALIKE * (1 - floor)
    alike = {
        (older.chunk_id, newer.chunk_id)
        for older, newer in close
        if older.chunk_id in vectors
        and newer.chunk_id in vectors
        and float(vectors[older.chunk_id] @ vectors[newer.chunk_id]) >= least
    }
    return [*order_pairs(head, alike), *candidates[_WINDOW:]]


def order_pairs(candidates: Sequence[Candidate], alike: set[tuple[int, int]]) -> list[Candidate]:
    """Each candidate that is the newer one of a pair goes before the first of the older ones, with its score."""
    ordered: list[Candidate] = []
    for candidate in candidates:
        place = next(
            (at for at, other in enumerate(ordered) if (other.chunk_id, candidate.chunk_id) in alike), len(ordered)
        )
        if place < len(ordered):
            older = ordered[place]
            candidate = candidate._replace(newer=Newer(older.chunk_id, older.score))
        ordered.insert(place, candidate)
    return ordered


def _rivals(older: Candidate, newer: Candidate, nearly: float) -> bool:
    if older.age_days is None or newer.age_days is None:
        return False  # what is evergreen has no age
    return (
        newer.age_days < older.age_days
        and newer.score >= nearly * older.score
        and _words_share(newer) >= _words_share(older)
    )


def _words_share(candidate: Candidate) -> float:
    return candidate.legs["words"].share if "words" in candidate.legs else 0.0


def _best_passages(sql: sqlite3.Connection, candidates: Iterable[Candidate], index: VectorIndex) -> dict[int, Vectors]:
    """Of each chunk the vector of the passage nearest to the query."""
    wanted = [
        [candidate.chunk_id, place.passage]
        for candidate in candidates
        if (place := candidate.legs.get("vector")) and place.passage is not None
    ]
    rows = sql.execute(
        """
        SELECT c.id, p.id FROM json_each(?) wanted JOIN chunks c ON c.id = wanted.value ->> 0
          JOIN passages p ON p.document_id = c.document_id AND p.ordinal = wanted.value ->> 1
        """,
        (json.dumps(wanted),),
    )
    passages = dict(rows.fetchall())
    try:
        held = index.vectors(passages.values())
    except MemorydError:
        return {}
    return {chunk: held[passage] for chunk, passage in passages.items() if passage in held}
