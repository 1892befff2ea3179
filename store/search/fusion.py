"""Reciprocal rank fusion: what each leg's rank is worth, added up."""

from __future__ import annotations

from collections.abc import Mapping, Set

from memoryd.store.search.answer import Candidate, LegRank


def fuse(
    rankings: Mapping[str, Mapping[int, LegRank]],
    weights: Mapping[str, float],
    k: float,
    unknown: Mapping[str, Set[int]] | None = None,
) -> list[Candidate]:
    """Candidates with a score of 0..1, best first: 1 is the first place in every leg that could know the chunk.

    A chunk that a leg did not bring gets nothing from it and loses nothing to it. ``unknown`` names, for a leg,
    the chunks that it could not have brought (their vectors are not there yet): they are judged by the others
    alone. With one leg the order is that leg's own.
    """
    places: dict[int, dict[str, LegRank]] = {}
    for leg, ranking in rankings.items():
        for chunk, place in ranking.items():
            places.setdefault(chunk, {})[leg] = place
    candidates = []
    for chunk, legs in places.items():
        judges = [leg for leg in rankings if leg in legs or chunk not in (unknown or {}).get(leg, ())]
        best = sum(weights[leg] / (k + 1) for leg in judges)
        worth = sum(weights[leg] / (k + place.rank) for leg, place in legs.items())
        candidates.append(Candidate(chunk, legs, worth / best))
    # Ties stay in the order in which the legs brought them: the first leg wins, and ids do not matter, which
    # are others after a rebuild.
    return sorted(candidates, key=lambda candidate: -candidate.fused)
