"""A keyword leg: the chunks that it brings, and what it says of those that the other legs bring.

Every candidate is judged by every leg. A chunk that only the vectors bring may have the query's words all the same, at
a place that the keyword legs do not propose; if that counted for nothing, how many chunks a leg proposes would decide
what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memoryd.store.search.answer import LegRank, Ranking
from memoryd.store.search.postings import Chunks, Postings, Scores


@dataclass(frozen=True, slots=True)
class Found:
    """Every chunk that has something of the query, as far as a leg's index tells."""

    postings: Postings
    score: Callable[[Chunks], Scores]  # of any chunk, as the leg scores those that it brings
    perfect: float  # the score of a perfect match
    ordered: Scores  # of the postings, the least first

    def places(self, chunks: Sequence[int]) -> Ranking:
        """Of those of these chunks that score."""
        wanted = np.array(chunks, np.int64)
        above = len(self.ordered) - np.searchsorted(self.ordered, self.postings.of(wanted), side="right")
        judged = zip(chunks, (1 + above).tolist(), self.score(wanted).tolist(), strict=True)
        return {chunk: place_at(rank, score, self.perfect) for chunk, rank, score in judged if score > 0}


@dataclass(frozen=True, slots=True)
class KeywordLeg:
    ranking: Ranking  # what it brings, and what else was asked of it
    found: Found | None = None  # None: it knows no other than it brings

    def only(self, chunks: Container[int]) -> KeywordLeg:
        """Without the others."""
        return replace(self, ranking={chunk: place for chunk, place in self.ranking.items() if chunk in chunks})

    def and_of(self, chunks: Iterable[int]) -> KeywordLeg:
        """With the places of these chunks, too, if they have something of the query."""
        others = [chunk for chunk in chunks if chunk not in self.ranking]
        if not others or self.found is None:
            return self
        return replace(self, ranking=self.ranking | self.found.places(others))


def place_at(rank: int, score: float, perfect: float) -> LegRank:
    """``perfect``: what a perfect match would score."""
    return LegRank(rank, score, min(1.0, score / perfect))


def ask_all(legs: Mapping[str, KeywordLeg], chunks: Iterable[int] = ()) -> dict[str, KeywordLeg]:
    """Each with the places of what the others have, and of these chunks."""
    wanted = dict.fromkeys(chunk for brought in (*(leg.ranking for leg in legs.values()), chunks) for chunk in brought)
    return {name: leg.and_of(wanted) for name, leg in legs.items()}
