"""Where in an answer a passage is: among the hits, or where on the way it was lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memoryd.store.search.answer import Answer, Candidate, Hit, Lost
from memoryd.store.search.why_not.target import Target

SpotStage = Literal["found", "duplicate", "min_score", "abstain", "limit", "absent"]

_NEARNESS: dict[str, int] = {"limit": 0, "neighbour": 1, "duplicate": 2, "min_score": 3, "abstain": 4}


@dataclass(frozen=True, slots=True)
class Spot:
    stage: SpotStage  # "absent": no leg brought it
    candidate: Candidate | None = None  # of the chunk that came furthest; None = absent
    hit: Hit | None = None  # that has its lines, or (duplicate) its very text
    place: int | None = None  # of that hit, from 1
    standing: int | None = None  # by score alone, from 1, among the candidates that do not repeat another
    by: int | None = None  # the chunk that stands for it: its duplicate

    @property
    def is_found(self) -> bool:
        return self.stage == "found"


def locate(answer: Answer, target: Target) -> Spot:
    """A line that several chunks have is where the luckiest of them is."""
    for place, hit in enumerate(answer.hits, start=1):
        if (hit.workspace, hit.path) == (target.workspace, target.path) and (
            hit.start_line <= target.line <= hit.end_line
        ):
            return Spot("found", hit.candidate, hit, place, _standing(answer, hit.candidate))
    ours = [lost for lost in answer.lost if target.chunk(lost.candidate.chunk_id)]
    if not ours:
        return Spot("absent")
    lost = min(ours, key=lambda each: (_NEARNESS[each.stage], -each.candidate.score))
    standing = _standing(answer, lost.candidate)
    if lost.stage == "duplicate":
        first = _place_of(answer, lost)
        return Spot("duplicate", lost.candidate, answer.hits[first - 1] if first else None, first, standing, lost.by)
    stage: SpotStage = lost.stage if lost.stage in ("min_score", "abstain") else "limit"
    return Spot(stage, lost.candidate, standing=standing)


def _standing(answer: Answer, candidate: Candidate) -> int:
    others = [hit.candidate for hit in answer.hits]
    others += [lost.candidate for lost in answer.lost if lost.stage not in ("duplicate", "neighbour")]
    return 1 + sum(other.score > candidate.score for other in others)


def _place_of(answer: Answer, lost: Lost) -> int | None:
    """Of the hit that has the text of a duplicate: the chunk that stands for it, or the one that this joined."""
    joined = next((each.by for each in answer.lost if each.candidate.chunk_id == lost.by and each.by), None)
    for place, hit in enumerate(answer.hits, start=1):
        if hit.candidate.chunk_id in (lost.by, joined):
            return place
    return None
