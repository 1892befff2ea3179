"""Reasons in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memoryd.store.scope import UNKNOWN
from memoryd.store.search.answer import Candidate, LegRank
from memoryd.store.search.why_not.case import Case
from memoryd.store.search.why_not.target import SharedWords

_BY = {"words": "by words", "trigram": "by parts of words", "vector": "by meaning"}


def describe_filter(case: Case, name: str) -> str:
    """Completes the sentence "Hidden by …"; the filter, its value, and what of the note does not fit."""
    target, query = case.target, case.query
    if name == "include_superseded":
        by = case.superseded_by()
        return f"being superseded by {by}" if by else "being superseded"
    if name == "scope":
        whose = "whose the note is cannot be told" if target.scope == UNKNOWN else f"the note is for {target.scope}"
        return f"scope {query.scope} ({whose})"
    if name in ("after", "before", "as_of"):
        written = f"the note is dated {target.date}" if target.date else "the note has no date"
        return f"{name} {getattr(query, name)} ({written})"
    if name == "hidden_sources":
        return f"its source: {target.source} are searched only when asked for"
    if name == "exclude":
        return f"exclude {', '.join(case.excluding())}"
    own = {
        "workspaces": f"the note is of {target.workspace}",
        "sources": f"the note is of {target.source}",
        "paths": f"the note is {target.path}",
    }
    return f"{name.removesuffix('s')} {', '.join(getattr(query, name))} ({own[name]})"


def describe_ranks(legs: Mapping[str, LegRank | None]) -> str:
    """A leg may rank what is no nearer to the query than chance; that is told, for its rank looks better than it is."""
    return _listed(
        [
            f"#{place.rank:,} {_BY[leg]}{'' if place.share > 0 else ' (no nearer than chance)'}"
            for leg, place in legs.items()
            if place
        ]
    )


def describe_age(candidate: Candidate) -> str:
    leaves = f"leaves {candidate.decay:.2f} of its score"
    if candidate.named and (away := candidate.named.days_away):
        side = "after" if away > 0 else "before"
        return f"Being dated {_days(abs(away))} {side} those that the query names {leaves}"
    return f"Its age of {_days(candidate.age_days or 0)} {leaves}"


def _days(count: int) -> str:
    return f"{count:,} day{'' if count == 1 else 's'}"


def describe_words(words: SharedWords) -> str:
    if not words.has and not words.lacks:
        return "The query has no word that counts."
    if not words.has:
        return f"It has none of the query's words ({', '.join(words.lacks)})."
    if not words.lacks:
        return "It has all of the query's words."
    return f"Of the query's words it has {_listed(words.has)}, not {_listed(words.lacks)}."


def _listed(items: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(items[:-1]), items[-1]])) if items else ""
