"""Why there are no hits, or none to rely on: an empty answer that does not say why looks like a broken one, and a weak
one that does not say so like a good one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from memoryd.store.folding import typed_words
from memoryd.store.search.answer import Absence, Candidate, Doubt, Hit, Lost, Weight
from memoryd.store.search.noise import Noise

_FAR = 0.4  # of what nonsense gets: a query that gets less is about nothing that is written here
_READS = 0.7  # the spread of a script that the model can read: in others its vectors say nothing either way
_NAMED = 3  # words at most
_SURER = 2.0  # times as relevant must an answer be to a query that is so far from everything, or names what is not here
_UNMEASURED = 0.7  # as relevant, where nobody knows what nonsense gets: of a few notes one too many had better be shown
_SMALL, _LARGE = 80, 320  # chunks: between these, what is asked for grows with the logarithm of their number
_LARGER = 1.5  # times as relevant must an answer be in a large memory


def least_relevance(abstain: float, weights: Mapping[str, Weight], noise: Noise, *, stranger: bool = False) -> float:
    """What the best candidate must reach to be taken for an answer.

    More where the leg that can read the script finds nothing at all, or where the query names a ``stranger``; more in
    a large memory, for the more there is, the nearer something comes to any question by chance; less in a memory that
    is too small to have its noise measured, and the less there, the less the model makes of its script.
    """
    telling = weights.get("vector" if noise.spread >= _READS else "words")
    far = telling is not None and telling.best < _FAR * telling.noise
    asked = abstain * (_SURER if far or stranger else _by_size(noise.chunks))
    return asked if noise.shares else _UNMEASURED * noise.spread * asked


def _by_size(chunks: int) -> float:
    size = min(max(chunks, _SMALL), _LARGE)
    return 1 + (_LARGER - 1) * math.log(size / _SMALL) / math.log(_LARGE / _SMALL)


def is_absent(candidates: Sequence[Candidate], least: float) -> bool:
    """Whether even the best candidate is too little to go by. Its age does not count: an old answer is one.

    Nor does the reranker's doubt: of an answer in other words than the question's it is as sure as of none.
    """
    return _relevance_of(candidates) < least


def _relevance_of(candidates: Sequence[Candidate]) -> float:
    """With the reranker or without, whichever says more for one."""
    relevances = [candidate.relevance for candidate in candidates]
    relevances += [candidate.rerank.relevance for candidate in candidates if candidate.rerank]
    return max(relevances, default=0.0)


def explain_absence(
    hits: Sequence[Hit],
    lost: Sequence[Lost],
    min_score: float,
    least: float,
    *,
    filtered: bool,
    limit: int,
    missing: Sequence[str] = (),
) -> Absence | None:
    """``least``: the relevance that was asked for; ``missing``: the query's words that stand nowhere."""
    if hits or limit == 0:
        return None
    best = max((each.candidate.score for each in lost), default=0.0)
    if best > 0:
        count = f"the best of {len(lost)} candidates" if len(lost) > 1 else "the only candidate"
        relevance = _relevance_of([each.candidate for each in lost])
        below = (
            f"has a relevance of {relevance:.3f}, less than {least:.3g} (search.abstain)"
            if lost[0].stage == "abstain"
            else f"scores {best:.3f}, less than min_score {min_score:g}"
        )
        return Absence(
            f"{_say_missing(missing)}{count} {below}: nothing here seems to answer this",
            "Ask in other words, or with a min_score of 0 to see what there is",
            best,
        )
    where = "among what the filters leave" if filtered else "in this memory"
    return Absence(f"nothing {where} has these words or this meaning", None, 0.0)


def explain_doubt(
    hits: Sequence[Hit], candidates: Sequence[Candidate], sure: float, missing: Sequence[str] = ()
) -> Doubt | None:
    """``sure``: the relevance from which on the best candidate is taken for an answer."""
    relevance = _relevance_of(candidates)
    if not hits or relevance >= sure:
        return None
    return Doubt(
        f"{_say_missing(missing)}even the best has a relevance of {relevance:.2f}, less than {sure:g} (search.doubt): "
        "these may not answer it",
        "Read them before relying on them, or ask in other words",
        relevance,
    )


def _say_missing(missing: Sequence[str]) -> str:
    named = " or ".join(f"“{word}”" for word in missing[:_NAMED])
    return f"nothing here mentions {named}; " if named else ""


def as_typed(words: Sequence[str], query: str) -> list[str]:
    """Words of the index as the user spelled them."""
    typed = typed_words(query)
    return [typed.get(word, word) for word in words]
