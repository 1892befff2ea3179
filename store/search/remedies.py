"""The least that would bring a passage back. What is proposed was tried: the pipeline was asked again with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from memoryd.store.database import Database
from memoryd.store.scope import UNKNOWN
from memoryd.store.search.answer import Answer
from memoryd.store.search.changes import Change, apply_changes
from memoryd.store.search.chunk_rows import read_chunks
from memoryd.store.search.request import SearchQuery, SearchSettings
from memoryd.store.search.spot import Spot, locate
from memoryd.store.search.target import Target, telling_words
from memoryd.store.search.visibility import hidden_by

Ask = Callable[[SearchQuery, SearchSettings], Answer]
Changes = tuple[Change, ...]

MOST_HITS = 100  # what a query may ask for
MOST_CANDIDATES = 10_000  # what a leg may be set to bring
_MOST_CHANGES = 5
_MOST_REMEDIES = 4
_LESS_DECAY = (0.75, 0.5, 0.25, 0.0)  # of the strength that is set
_WORDS_SUGGESTED = 3


@dataclass(frozen=True, slots=True)
class Remedy:
    changes: Changes
    place: int  # at which the passage is found with them


@dataclass(frozen=True, slots=True)
class _Way:
    """Changes to try, the smallest first."""

    options: tuple[Changes, ...]
    go_on: bool = True  # with further changes, where these alone do not do


class Remedies:
    """What would bring one passage into the answer to one query."""

    def __init__(
        self, target: Target, query: SearchQuery, settings: SearchSettings, ask: Ask, database: Database
    ) -> None:
        self._target = target
        self._query = query
        self._settings = settings
        self._ask = ask
        self._database = database

    def find(self) -> list[Remedy]:
        """Those of the fewest changes first."""
        found: dict[frozenset[str], Remedy] = {}
        for way in self._ways(()):
            remedy = self._follow(way)
            if remedy:
                found.setdefault(frozenset(change.setting for change in remedy.changes), remedy)
        remedies = sorted(found.values(), key=lambda remedy: len(remedy.changes))
        return remedies[:_MOST_REMEDIES] or self._other_words()

    def _other_words(self) -> list[Remedy]:
        """The query with words of the passage, where no setting does."""
        with self._database.read() as sql:
            if find_filters(self._target, self._query, self._database):
                return []
            words = telling_words(sql, self._target, _WORDS_SUGGESTED)
        more = [(Change("query", f"{self._query.text} {' '.join(words[:count])}"),) for count in range(1, 1 + len(words))]
        remedy = self._follow(_Way(tuple(more), go_on=False))
        return [remedy] if remedy else []

    # -- trying -------------------------------------------------------------------------------------------

    def _follow(self, way: _Way) -> Remedy | None:
        for changes in way.options:
            spot = self._spot(changes)
            if spot.is_found:
                return Remedy(changes, spot.place or 1)
        return self._mend(way.options[0]) if way.go_on and way.options else None

    def _mend(self, changes: Changes) -> Remedy | None:
        """Change what is in the way, and then what is in the way still."""
        while len(changes) < _MOST_CHANGES:
            way = next(self._ways(changes), None)
            if way is None:
                return None
            more = _merge(changes, way.options[0])
            if more == changes:
                return None
            changes = more
            spot = self._spot(changes)
            if spot.is_found:
                return Remedy(changes, spot.place or 1)
        return None

    def _spot(self, changes: Changes) -> Spot:
        return locate(self._ask(*apply_changes(self._query, self._settings, changes)), self._target)

    # -- what can be changed ------------------------------------------------------------------------------

    def _ways(self, changes: Changes) -> Iterator[_Way]:
        query, settings = apply_changes(self._query, self._settings, changes)
        spot = locate(self._ask(query, settings), self._target)
        if spot.stage == "absent":
            if hidden := find_filters(self._target, query, self._database):
                yield _Way((tuple(self._unhide(query, name) for name in hidden),))
                return
            yield from self._more_candidates(query, settings)
        elif spot.stage == "duplicate":
            yield _Way(((Change("exclude", (*query.exclude, self._key(spot.by or 0))),),))
        elif spot.stage == "limit":
            wide = locate(self._ask(replace(query, limit=MOST_HITS), settings), self._target)
            if wide.place and wide.is_found:
                yield _Way(((Change("limit", wide.place),),))
        elif spot.stage == "min_score" and spot.candidate:
            yield _Way(((Change("min_score", math.floor(spot.candidate.score * 100) / 100),),))
        if spot.stage in ("limit", "min_score") and spot.candidate:
            if settings.mmr.enabled and spot.candidate.mmr:
                yield _Way(((Change("search.mmr.enabled", False),),), go_on=False)
            if spot.candidate.decay < 1:
                less = [round(settings.decay.strength * share, 3) for share in _LESS_DECAY]
                yield _Way(tuple((Change("search.decay.strength", value),) for value in less), go_on=False)

    def _more_candidates(self, query: SearchQuery, settings: SearchSettings) -> Iterator[_Way]:
        enough = ranks_needed(dig(self._target, query, settings, self._ask, self._database), self._target)
        options = sorted({rank for rank in enough if settings.candidates < rank <= MOST_CANDIDATES})
        if options:
            yield _Way(tuple((Change("search.candidates", rank),) for rank in options))
        usual = SearchSettings().weights
        for leg, weight in settings.weights.items():
            if weight == 0:
                yield _Way(((Change(f"search.weights.{leg}", usual[leg]),),))

    def _unhide(self, query: SearchQuery, name: str) -> Change:
        target = self._target
        if name == "include_superseded":
            return Change(name, True)
        if name == "scope":
            return Change(name, None if target.scope == UNKNOWN else target.scope)
        if name in ("after", "before", "as_of"):
            return Change(name, target.date)
        if name == "exclude":
            kept = tuple(each for each in query.exclude if not self._excludes(query, each))
            return Change(name, kept)
        own = {"workspaces": target.workspace, "sources": target.source, "paths": target.path}
        return Change(name.removesuffix("s"), (*getattr(query, name), own[name]))

    def _excludes(self, query: SearchQuery, item: str) -> bool:
        with self._database.read() as sql:
            alone = replace(query, exclude=(item,))
            return any("exclude" in hidden_by(sql, alone, self._target.document, each.id) for each in self._target.chunks)

    def _key(self, chunk: int) -> str:
        with self._database.read() as sql:
            return read_chunks(sql, [chunk])[chunk].key


def find_filters(target: Target, query: SearchQuery, database: Database) -> list[str]:
    """The query's filters that hide the target; none if they leave one of its chunks."""
    with database.read() as sql:
        hidden = [hidden_by(sql, query, target.document, chunk.id) for chunk in target.chunks]
    return min(hidden, key=len, default=[])


def dig(target: Target, query: SearchQuery, settings: SearchSettings, ask: Ask, database: Database) -> Answer:
    """The answer with every chunk a candidate, as far as a leg can be made to bring them."""
    with database.read() as sql:
        # A leg asks for a few passages a chunk: with as many as there are, none is left out.
        (rows,) = sql.execute("SELECT (SELECT count(*) FROM chunks) + (SELECT count(*) FROM passages)").fetchone()
    deep = replace(settings, candidates=min(MOST_CANDIDATES, max(rows, settings.candidates)))
    return ask(replace(query, limit=MOST_HITS, min_score=0.0), deep)


def ranks_needed(deep: Answer, target: Target) -> list[int]:
    """How many candidates each leg would have to bring for the target to be one of them."""
    candidates = [*(hit.candidate for hit in deep.hits), *(lost.candidate for lost in deep.lost)]
    ranks: list[int] = []
    for candidate in candidates:
        if not target.chunk(candidate.chunk_id):
            continue
        for leg, place in candidate.legs.items():
            ranks.append(place.rank)
            # Chunks come in the order of their best passages, which is not that of the leg's own ranking.
            ranks.append(1 + sum(leg in other.legs and other.legs[leg].score > place.score for other in candidates))
    return ranks


def _merge(changes: Sequence[Change], more: Sequence[Change]) -> Changes:
    """The later word about a setting counts."""
    later = {change.setting for change in more}
    return (*(change for change in changes if change.setting not in later), *more)
