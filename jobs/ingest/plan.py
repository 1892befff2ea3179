"""What becomes of the facts of one file: which are new, which stay, which are out of date."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memoryd.jobs.ingest.answer import Parsed
from memoryd.jobs.ingest.duplicates import Known
from memoryd.jobs.ingest.fact import GONE, Fact, Origin, fact_id
from memoryd.jobs.ingest.pieces import Piece

_WORDS_IN_COMMON = 0.5  # of two sentences of which the one is taken for the other's new version


@dataclass(frozen=True, slots=True)
class Place:
    """The file that facts are of."""

    workspace: str
    path: str
    scope: str


@dataclass(frozen=True, slots=True)
class Plan:
    new: tuple[Fact, ...] = ()
    changed: tuple[Fact, ...] = ()  # moved to other lines, or back after they were superseded
    superseded: tuple[Fact, ...] = ()
    duplicates: int = 0
    dismissed: int = 0  # forgotten by a person, or expired
    kept: int = 0

    @property
    def writes(self) -> tuple[Fact, ...]:
        return (*self.new, *self.changed, *self.superseded)


def wanted_facts(
    place: Place, answers: Iterable[tuple[Piece, Parsed]], default_decay: str, now: float
) -> dict[str, Fact]:
    """What the answers say, by id; of a statement that several pieces make, the first counts."""
    wanted: dict[str, Fact] = {}
    for piece, parsed in answers:
        for said in parsed.statements:
            identity = fact_id(place.workspace, place.path, said.text)
            origin = Origin(place.workspace, place.path, piece.start_line, piece.end_line, piece.hash)
            fact = Fact(
                identity,
                said.text,
                origin,
                said.category,
                said.tags,
                said.decay or default_decay,
                now,
                scope=place.scope,
            )
            wanted.setdefault(identity, fact)
    return wanted


def plan_file(
    wanted: Mapping[str, Fact],
    existing: Mapping[str, Fact],
    known: Known,
    dismissed: frozenset[tuple[str, str]],
    now: float,
) -> Plan:
    """``existing`` are the facts of this file, ``known`` those of the workspace that hold; it is brought up to date."""
    welcome = {
        identity: fact
        for identity, fact in wanted.items()
        if (identity, "") not in dismissed and (identity, fact.origin.piece) not in dismissed
    }
    staying = [_renew(existing[identity], fact) for identity, fact in welcome.items() if identity in existing]
    gone = [fact for identity, fact in existing.items() if identity not in wanted and not fact.superseded_by]
    known.add(staying)
    known.drop(gone)
    fresh = [fact for identity, fact in welcome.items() if identity not in existing]
    known.prepare(fact.text for fact in fresh)
    new: list[Fact] = []
    for fact in fresh:
        if known.find(fact) is None:
            new.append(fact)
            known.add([fact])
    return Plan(
        new=tuple(new),
        changed=tuple(fact for fact in staying if fact != existing[fact.id]),
        superseded=tuple(supersede(fact, [*new, *staying], now) for fact in gone),
        duplicates=len(fresh) - len(new),
        dismissed=len(wanted) - len(welcome),
        kept=len(staying),
    )


def supersede(fact: Fact, others: Sequence[Fact], now: float) -> Fact:
    """The fact marked as out of date, by the one of its file that is most like it, if any is."""
    nearest = max(others, key=lambda other: _likeness(fact.text, other.text), default=None)
    by = GONE
    if nearest is not None and _likeness(fact.text, nearest.text) >= _WORDS_IN_COMMON:
        by = f"{nearest.id}.md"
    return replace(fact, superseded_by=by, superseded_at=now)


def _renew(fact: Fact, said: Fact) -> Fact:
    """An existing fact at the place where it stands now. Its words may be a person's by now, and stay."""
    return replace(fact, origin=said.origin, scope=said.scope, superseded_by=None, superseded_at=None)


def _likeness(one: str, other: str) -> float:
    mine, theirs = set(one.casefold().split()), set(other.casefold().split())
    return len(mine & theirs) / max(1, len(mine | theirs))
