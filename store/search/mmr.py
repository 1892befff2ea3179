"""Maximal marginal relevance: a candidate that says what a better one has said comes later.

The next is always the one with the highest ``relevance x worth - (1 - relevance) x similarity``. Worth is the score
as a share of the best one's, so that it is on the scale of a similarity whatever the fusion makes of scores, and no
candidate's worth hangs on how weak the weakest is. Similarity is that to the nearest candidate chosen before. The
order changes, the scores do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.store.folding import split_words
from memoryd.store.protocols import Vectors
from memoryd.store.search.answer import Candidate, MmrStep

WINDOW = 50  # of the best candidates, however many hits are asked for: `limit` never changes the order

Similarities = NDArray[np.float64]


def diversify(candidates: Sequence[Candidate], similarities: Similarities, relevance: float) -> list[Candidate]:
    """The candidates in their new order, each but the first with what it was nearest to."""
    if relevance >= 1 or not candidates:
        return list(candidates)
    scores = np.array([candidate.score for candidate in candidates])
    worth = scores / scores.max() if scores.max() > 0 else scores
    nearest = np.zeros(len(candidates), int)
    closeness = np.zeros(len(candidates))
    left = np.ones(len(candidates), bool)
    chosen: list[Candidate] = []
    while left.any():
        gain = relevance * worth - (1 - relevance) * closeness
        index = int(np.argmax(np.where(left, gain, -np.inf)))  # of equals the first
        candidate = candidates[index]
        if chosen:
            twin = candidates[nearest[index]].chunk_id
            candidate = candidate._replace(mmr=MmrStep(index + 1, float(closeness[index]), twin))
        closer = similarities[index] > closeness if chosen else np.ones(len(candidates), bool)
        nearest[closer] = index
        closeness[closer] = similarities[index][closer]
        left[index] = False
        chosen.append(candidate)
    return chosen


def measure_similarities(
    candidates: Sequence[Candidate], vectors: Mapping[int, Vectors], texts: Mapping[int, str]
) -> Similarities:
    """Of each candidate to each, 0..1: the cosine where both have a vector, else the share of words in common.

    ``vectors`` and ``texts`` are by chunk id.
    """
    known = np.array([candidate.chunk_id in vectors for candidate in candidates], bool)
    found: Similarities = np.zeros((len(candidates), len(candidates)))
    if not known.all():
        found = _jaccard([set(split_words(texts[candidate.chunk_id])) for candidate in candidates])
    if known.any():
        rows = np.array([vectors[c.chunk_id] for c in candidates if c.chunk_id in vectors], np.float64)
        found[np.ix_(known, known)] = rows @ rows.T
    return np.clip(found, 0.0, 1.0)


def _jaccard(sets: Sequence[set[str]]) -> Similarities:
    column = {word: index for index, word in enumerate(dict.fromkeys(word for words in sets for word in words))}
    has = np.zeros((len(sets), len(column)), np.float32)
    for row, words in enumerate(sets):
        has[row, [column[word] for word in words]] = 1
    shared = np.asarray(has @ has.T, np.float64)
    sizes = np.diag(shared)
    return shared / np.maximum(sizes[:, None] + sizes[None, :] - shared, 1)


def mean_vector(vectors: Sequence[Vectors]) -> Vectors | None:
    """The direction that some vectors have in common; None where they have none."""
    if not vectors:
        return None
    mean = np.mean(vectors, axis=0)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length, np.float32) if length > 0 else None
