"""Fusion: what the legs say of a chunk, made one score.

``weighted`` adds up shares, the part of a perfect match that a chunk is for each leg. Shares have gaps where ranks
have none, and a query whose words are nowhere has small ones: keywords that say little do not drown the vectors.
``rrf`` adds up what each rank is worth.

The configured weights are where it starts from. Adapted to the query, a leg counts less the nearer nonsense comes to
a perfect match for it (``noise``). The vectors count less where no chunk stands out, for to a model that has no idea
many are equally near, and less in a script that the model puts close together whatever is said (``spread``). Keywords
need no such thing, for where they know little their shares are small. ``rrf`` does not see shares, so there each leg
counts the less, the less its best chunk shares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from heapq import nlargest
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from memoryd.store.search.answer import Candidate, LegRank, Weight
from memoryd.store.search.noise import Noise
from memoryd.store.search.request import Fusion

_CROWD = 6  # chunks: about as many as are returned
_USUAL_STANDOUT = 0.3
_USUAL_SPREAD = 0.84
_LEAST_TRUST = 0.3
NOISE_SCORE = 0.3  # what the best hit for nonsense scores, whatever the memory, the model and the script


def weigh_legs(
    rankings: Mapping[str, Mapping[int, LegRank]],
    priors: Mapping[str, float],
    noise: Noise,
    *,
    fusion: Fusion,
    adaptive: bool,
) -> dict[str, Weight]:
    weights = {}
    for leg, ranking in rankings.items():
        prior, level = priors[leg], noise.of(leg)
        best = max((place.share for place in ranking.values()), default=0.0)
        apart = standout(ranking)
        factor = 1.0
        if adaptive and fusion == "weighted":
            factor = (1 - level) ** 3 * (_trust(apart, noise.spread) if leg == "vector" else 1.0)
        elif adaptive:
            factor = (1 - level) * math.sqrt(best)
        weights[leg] = Weight(prior, level, best, prior * factor, apart)
    return weights


def standout(ranking: Mapping[int, LegRank]) -> float:
    """How far the best chunk stands out from those that come after it, as a part of its share."""
    shares = nlargest(_CROWD, [place.share for place in ranking.values()])
    if not shares or shares[0] <= 0:
        return 0.0
    return 1 - (shares[-1] if len(shares) == _CROWD else 0.0) / shares[0]


def _trust(apart: float, spread: float) -> float:
    """What the vectors are worth: less in a crowd, and less in a script that the model puts close together."""
    return min(1.0, max(_LEAST_TRUST, apart / _USUAL_STANDOUT)) * spread / _USUAL_SPREAD


def fuse(
    rankings: Mapping[str, Mapping[int, LegRank]],
    weights: Mapping[str, float],
    fusion: Fusion,
    k: float,
    unknown: Mapping[str, Set[int]] | None = None,
) -> list[Candidate]:
    """Candidates with a score of 0..1, best first: 1 is a perfect match in every leg that could know the chunk.

    A chunk that a leg did not bring gets nothing from it and loses nothing to it. ``unknown`` names, for a leg,
    the chunks that it could not have brought (their vectors are not there yet): they are judged by the others
    alone. With one leg the order is that leg's own.
    """
    places: dict[int, dict[str, LegRank]] = {}
    worth: dict[int, float] = {}
    for leg, ranking in rankings.items():
        weight = weights[leg]
        for chunk, place in ranking.items():
            share = place.share if fusion == "weighted" else (k + 1) / (k + place.rank)
            if chunk in worth:
                places[chunk][leg] = place
                worth[chunk] += weight * share
            else:
                places[chunk] = {leg: place}
                worth[chunk] = weight * share
    total = sum(weights[leg] for leg in rankings)
    judged = dict.fromkeys(worth, total)
    for leg, chunks in (unknown or {}).items():
        for chunk in chunks:
            if chunk in places and leg not in places[chunk]:
                judged[chunk] -= weights[leg]
    # A leg may rank what it sees nothing in.
    candidates = [
        Candidate(chunk, legs, worth[chunk] / judged[chunk]) for chunk, legs in places.items() if worth[chunk]
    ]
    # Ties stay in the order in which the legs brought them: the first leg wins, and ids do not matter, which
    # are others after a rebuild.
    candidates.sort(key=attrgetter("fused"), reverse=True)
    return candidates


def calibrate(
    candidates: list[Candidate], weights: Mapping[str, Weight], fusion: Fusion, passage: float = 0.0, part: float = 0.0
) -> list[Candidate]:
    """The same candidates with a relevance that means the same for every query, memory, model and script.

    Nonsense scores ``NOISE_SCORE`` at best on average, a perfect match 1, no match 0. Ranks say nothing of that, so
    with ``rrf`` the best candidate is as relevant as its shares say, and the others in proportion. ``passage``:
    what nonsense has in one passage, which is that part of a score.
    """
    if not candidates:
        return []
    total = sum(weight.value for weight in weights.values())
    noise = sum(weight.value * weight.noise for weight in weights.values()) / total if total > 0 else 0.0
    noise = (1 - part) * noise + part * passage
    bend = math.log(1 - NOISE_SCORE) / math.log(1 - min(max(noise, 0.02), 0.95)) if noise > 0 else 1.0
    if fusion == "weighted":
        shares = np.array([candidate.fused for candidate in candidates])
        relevances = _bent(shares, bend).tolist()
        return [
            Candidate(chunk, legs, fused, relevance, best=best)
            for (chunk, legs, fused, *_, best), relevance in zip(candidates, relevances, strict=True)
        ]
    values = {leg: weight.value for leg, weight in weights.items()}
    rankings = {leg: {c.chunk_id: c.legs[leg] for c in candidates if leg in c.legs} for leg in weights}
    best = float(_bent(np.array(fuse(rankings, values, "weighted", 1)[0].fused), bend))
    first = candidates[0].fused
    return [candidate._replace(relevance=best * candidate.fused / first) for candidate in candidates]


def _bent(shares: NDArray[np.float64], bend: float) -> NDArray[np.float64]:
    return np.asarray(1 - (1 - np.minimum(1.0, shares)) ** bend)
