"""The least that would bring a passage back. What is proposed was tried: the pipeline was asked again with it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from memoryd.store.scope import UNKNOWN
from memoryd.store.search.request import SearchSettings
from memoryd.store.search.why_not.case import MOST_CANDIDATES, Case
from memoryd.store.search.why_not.changes import Change, Changes, merge_changes
from memoryd.store.search.why_not.finding import Remedy

_MOST_CHANGES = 5
_MOST_REMEDIES = 4
_LESS_DECAY = (0.75, 0.5, 0.25, 0.0)  # of the strength that is set
_WORDS_SUGGESTED = 3


@dataclass(frozen=True, slots=True)
class _Way:
    """Changes to try, the smallest first."""

    options: tuple[Changes, ...]
    go_on: bool = True  # with further changes, where these alone do not do


def find_remedies(case: Case) -> tuple[Remedy, ...]:
    """Those of the fewest changes first, none of which does what another does with less."""
    found: dict[frozenset[str], Remedy] = {}
    for way in _ways(case):
        remedy = _follow(case, way)
        if remedy:
            found.setdefault(frozenset(change.setting for change in remedy.changes), remedy)
    least = [remedy for names, remedy in found.items() if not any(other < names for other in found)]
    remedies = sorted(least, key=lambda remedy: len(remedy.changes))
    return tuple(remedies[:_MOST_REMEDIES])


def find_words(case: Case) -> Remedy | None:
    """The query with words of the passage's own, where no setting does."""
    words = case.telling_words(_WORDS_SUGGESTED)
    queries = [f"{case.query.text} {' '.join(words[:count])}" for count in range(1, 1 + len(words))]
    return _follow(case, _Way(tuple((Change("query", query),) for query in queries), go_on=False))


# -- trying -----------------------------------------------------------------------------------------------------


def _follow(case: Case, way: _Way) -> Remedy | None:
    for changes in way.options:
        spot = case.changed(changes).spot()
        if spot.is_found:
            return Remedy(changes, spot.place)
    return _mend(case, way.options[0]) if way.go_on and way.options else None


def _mend(case: Case, changes: Changes) -> Remedy | None:
    """Change what is in the way, and then what is in the way still."""
    while len(changes) < _MOST_CHANGES:
        way = next(_ways(case.changed(changes)), None)
        more = merge_changes(changes, way.options[0]) if way else changes
        if more == changes:
            return None
        changes = more
        spot = case.changed(changes).spot()
        if spot.is_found:
            return Remedy(changes, spot.place)
    return None


# -- what can be changed ----------------------------------------------------------------------------------------


def _ways(case: Case) -> Iterator[_Way]:
    """What is in the passage's way, and each way around it. The first is the one that changes no order."""
    spot = case.spot()
    if spot.stage == "absent":
        filters = case.filters()
        if filters:
            yield _Way((tuple(unhide(case, name) for name in filters),))
        else:
            yield from _more_candidates(case)
    elif spot.stage == "duplicate" and spot.by is not None:
        yield _Way(((Change("exclude", (*case.query.exclude, case.chunk_row(spot.by).key)),),))
    elif spot.candidate and spot.stage in ("limit", "min_score", "abstain"):
        wide = case.widened().spot()
        if spot.stage in ("min_score", "abstain"):
            yield _Way(((Change("min_score", math.floor(spot.candidate.score * 100) / 100),),))
        elif wide.is_found and wide.place:
            yield _Way(((Change("limit", wide.place),),))
        if case.settings.mmr.enabled and spot.candidate.mmr:
            yield _Way(((Change("search.mmr.enabled", False),),), go_on=False)
        if spot.candidate.decay < 1:
            less = [round(case.settings.decay.strength * share, 3) for share in _LESS_DECAY]
            yield _Way(tuple((Change("search.decay.strength", value),) for value in less), go_on=False)


def _more_candidates(case: Case) -> Iterator[_Way]:
    ranks = sorted({rank for rank in ranks_needed(case) if case.settings.candidates < rank <= MOST_CANDIDATES})
    if ranks and case.deepened().spot().is_found:  # else it would be a candidate, but far from a hit
        yield _Way(tuple((Change("search.candidates", rank),) for rank in ranks))
    usual = SearchSettings().weights
    for leg, weight in case.settings.weights.items():
        if weight == 0:
            yield _Way(((Change(f"search.weights.{leg}", usual[leg]),),))


def ranks_needed(case: Case) -> list[int]:
    """How many candidates the legs would have to bring for the passage to be among them."""
    candidates = case.deepened().candidates()
    ranks: list[int] = []
    for candidate in candidates:
        if not case.target.chunk(candidate.chunk_id):
            continue
        for leg, place in candidate.legs.items():
            ranks.append(place.rank)
            # Chunks come in the order of their best passages, which need not be that of the leg's ranking.
            ranks.append(1 + sum(leg in other.legs and other.legs[leg].score > place.score for other in candidates))
    return ranks


def unhide(case: Case, name: str) -> Change:
    """The change after which a filter lets the passage through."""
    target = case.target
    if name == "include_superseded":
        return Change(name, True)
    if name == "scope":
        return Change(name, None if target.scope == UNKNOWN else target.scope)
    if name in ("after", "before", "as_of"):
        return Change(name, target.date)
    if name == "hidden_sources":
        return Change("source", (*case.query.sources, target.source))
    if name == "exclude":
        hiding = case.excluding()
        return Change(name, tuple(item for item in case.query.exclude if item not in hiding))
    own = {"workspaces": target.workspace, "sources": target.source, "paths": target.path}
    return Change(name.removesuffix("s"), (*getattr(case.query, name), own[name]))
