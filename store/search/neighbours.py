"""Chunks of one document that share passages are one hit, with the lines of both.

Whether two chunks become one must not depend on how many hits are asked for: the first hits of a long answer are
those of a short one, with the same lines. So a chunk joins a better one if it follows within ``REACH`` places,
about as many as are usually returned. A hit takes in one neighbour at most and so stays within two chunks: a long
document that is all about the query is several hits, not one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memoryd.store.search.answer import Candidate

REACH = 6  # places


class Span(NamedTuple):
    """Where a chunk stands: a run of a document's passages."""

    document: int
    first: int
    last: int

    def overlaps(self, other: Span) -> bool:
        return self.document == other.document and self.first <= other.last and other.first <= self.last

    def join(self, other: Span) -> Span:
        return Span(self.document, min(self.first, other.first), max(self.last, other.last))


class Joined(NamedTuple):
    """A chunk that is to be a hit, and the neighbour that it stands for too."""

    candidate: Candidate
    place: int  # among the candidates, from 0
    neighbour: Candidate | None = None


def join_neighbours(candidates: Sequence[Candidate], spans: Mapping[int, Span], reach: int = REACH) -> list[Joined]:
    """Candidates in their order, each with the first neighbour that follows within reach. 0 = all stay apart.

    ``spans`` is by chunk id. A chunk between two better ones joins the better of them.
    """
    joined: list[Joined] = []
    for place, candidate in enumerate(candidates):
        host = next(
            (
                index
                for index in range(max(0, len(joined) - reach), len(joined))
                if joined[index].neighbour is None
                and place - joined[index].place <= reach
                and spans[candidate.chunk_id].overlaps(spans[joined[index].candidate.chunk_id])
            ),
            None,
        )
        if host is None:
            joined.append(Joined(candidate, place))
        else:
            joined[host] = joined[host]._replace(neighbour=candidate)
    return joined
