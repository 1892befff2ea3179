"""A keyword leg: the chunks that it brings, and what it says of those that the other legs bring.

Every candidate is judged by every leg. A chunk that only the vectors bring may have the query's words all the same, at
a place that the keyword legs do not propose; if that counted for nothing, how many chunks a leg proposes would decide
what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from memoryd.store.search.answer import LegRank, Ranking
from memoryd.store.search.postings import NOTHING, Chunks, Postings, Scores


@dataclass(frozen=True, slots=True)
class KeywordLeg:
    ranking: Ranking  # what it brings
    found: Postings = NOTHING  # every chunk that has something of the query, as far as the index tells
    score: Callable[[Chunks], Scores] | None = None  # of any chunk; None: of no other than it brings
    perfect: float = 1.0

    def only(self, chunks: Container[int]) -> KeywordLeg:
        """Bringing none but these."""
        return replace(self, ranking={chunk: place for chunk, place in self.ranking.items() if chunk in chunks})

    def places(self, chunks: Iterable[int]) -> Ranking:
        """Where those of these chunks stand that it did not bring, if they have something of the query."""
        others = [chunk for chunk in chunks if chunk not in self.ranking]
        if not others or self.score is None:
            return {}
        wanted = np.array(others, np.int64)
        above = np.count_nonzero(self.found.scores[:, None] > self.found.of(wanted), axis=0)
        ranks = 1 + np.maximum(above, len(self.ranking))
        judged = zip(others, ranks.tolist(), self.score(wanted).tolist(), strict=True)
        return {chunk: place_at(rank, score, self.perfect) for chunk, rank, score in judged if score > 0}


def place_at(rank: int, score: float, perfect: float) -> LegRank:
    """``perfect``: what a perfect match would score."""
    return LegRank(rank, score, min(1.0, score / perfect))


def complete(legs: Mapping[str, KeywordLeg], rankings: Mapping[str, Ranking]) -> dict[str, Ranking]:
    """The rankings of the keyword legs, with the chunks that any of the legs brought."""
    brought = dict.fromkeys(chunk for ranking in rankings.values() for chunk in ranking)
    return {name: leg.ranking | leg.places(brought) for name, leg in legs.items()}
