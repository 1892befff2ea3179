"""What is said of a passage: the verdict, the way it came, and what would bring it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from memoryd.store.search.answer import LegRank
from memoryd.store.search.why_not.changes import Changes
from memoryd.store.search.why_not.target import SharedWords, TargetChunk

Verdict = Literal[
    "found",  # it is a hit, or its lines are part of one
    "duplicate",  # its text counts as another chunk's
    "limit",  # a hit if more were asked for
    "decayed",  # a hit but for its age
    "mmr",  # put back, for it is like a better one
    "min_score",
    "abstained",  # so little speaks for anything that nothing is returned
    "not_a_candidate",  # no leg brought it
    "vectors_pending",  # nor can the vector leg yet
    "filtered",
    "no_such_line",
    "no_such_file",
    "not_included",
    "ignored",
    "skipped",
    "failed",
    "pending",  # it is not read yet, or not as it is now
    "workspace_away",
]

_LOST_AT = {
    "found": None,
    "duplicate": "duplicates",
    "limit": "limit",
    "decayed": "decay",
    "mmr": "mmr",
    "min_score": "min_score",
    "abstained": "min_score",
    "not_a_candidate": "candidates",
    "vectors_pending": "candidates",
    "filtered": "filters",
}
_WAY = ("indexed", "filters", "candidates", "decay", "min_score", "duplicates", "mmr", "limit")


@dataclass(frozen=True, slots=True)
class Stage:
    """A step on the way, and what there is to know of it."""

    name: str
    passed: bool | None  # None = the passage did not come so far
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Changes with which the passage is found; that was tried."""

    changes: Changes
    place: int | None  # among the hits then; None = another's note: that its scope sees it is all that was tried


@dataclass(frozen=True, slots=True)
class Finding:
    verdict: Verdict
    explanation: str
    place: int | None = None  # among the hits, or where it would be if there were more of them
    chunk: TargetChunk | None = None  # None = there is none, or it is not to be told
    stages: tuple[Stage, ...] = ()
    legs: Mapping[str, LegRank | None] = field(default_factory=dict)  # None = the leg does not know it
    words: SharedWords | None = None
    remedies: tuple[Remedy, ...] = ()
    hint: str | None = None  # what helps where no setting does


def stages_to(verdict: Verdict, details: Mapping[str, str]) -> tuple[Stage, ...]:
    """The whole way, with what is known of each step."""
    lost_at = _LOST_AT.get(verdict, "indexed")
    end = len(_WAY) if lost_at is None else _WAY.index(lost_at)
    return tuple(
        Stage(name, True if place < end else False if place == end else None, details.get(name, ""))
        for place, name in enumerate(_WAY)
    )
