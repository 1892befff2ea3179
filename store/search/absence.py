"""Why there are no hits: an empty answer that does not say why looks like a broken one."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.store.search.answer import Absence, Candidate, Hit, Lost


def is_absent(candidates: Sequence[Candidate], least: float) -> bool:
    """Whether even the best candidate is too little to go by. Its age does not count: an old answer is one.

    Nor does the reranker's doubt: of an answer in other words than the question's it is as sure as of none.
    """
    return max(map(_best_word, candidates), default=0.0) < least


def _best_word(candidate: Candidate) -> float:
    """Its relevance, with the reranker or without, whichever says more for it."""
    return max(candidate.relevance, candidate.rerank.relevance if candidate.rerank else 0.0)


def explain_absence(
    hits: Sequence[Hit], lost: Sequence[Lost], min_score: float, abstain: float, *, filtered: bool, limit: int
) -> Absence | None:
    if hits or limit == 0:
        return None
    best = max((each.candidate.score for each in lost), default=0.0)
    if best > 0:
        count = f"the best of {len(lost)} candidates" if len(lost) > 1 else "the only candidate"
        relevance = max(_best_word(each.candidate) for each in lost)
        below = (
            f"has a relevance of {relevance:.3f}, less than {abstain:g} (search.abstain)"
            if lost[0].stage == "abstain"
            else f"scores {best:.2f}, less than min_score {min_score:.2f}"
        )
        return Absence(
            f"{count} {below}: nothing here seems to answer this",
            "Ask in other words, or with a min_score of 0 to see what there is",
            best,
        )
    where = "among what the filters leave" if filtered else "in this memory"
    return Absence(f"nothing {where} has these words or this meaning", None, 0.0)
