"""How much a note's age takes from its score."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from datetime import date

from memoryd.store.lifespans import LIFESPANS
from memoryd.store.search.answer import Candidate, NamedStep
from memoryd.store.search.occasion import Occasion
from memoryd.store.search.request import Decay

Dated = tuple[str | None, int, str | None]
DATED = "d.date, d.evergreen, CASE d.source WHEN 'facts' THEN json_extract(d.front_matter, '$.decay') END"  # in SQL


def age_in_days(written: date | None, today: date, *, evergreen: bool) -> int | None:
    """None = evergreen, which has no age. A future date counts as today."""
    if evergreen or written is None:
        return None
    return max(0, (today - written).days)


def decay_factor(age_days: int | None, decay: Decay, half_life_days: float | None = None) -> float:
    """``1 - strength + strength * 2^(-age / half_life)``; exactly 1 for what is evergreen."""
    if age_days is None:
        return 1.0
    half_life = half_life_days or decay.half_life_days
    return float(1 - decay.strength + decay.strength * 2 ** (-age_days / half_life))


def apply_decay(
    sql: sqlite3.Connection,
    candidates: list[Candidate],
    today: date,
    decay: Decay,
    known: Mapping[int, Dated] | None = None,
    occasion: Occasion | None = None,
) -> list[Candidate]:
    """``known``: what was read before of some chunks. ``occasion``: the days that the query names, if any: ages count
    from them then, and what was written there is more relevant."""
    dates = dict(known or {})
    if unread := [candidate.chunk_id for candidate in candidates if candidate.chunk_id not in dates]:
        dates |= read_dates(sql, unread)
    ages = {dated: _age(*dated, today, decay, occasion) for dated in set(dates.values())}
    aged = []
    for chunk, legs, fused, relevance, _, _, _, read, *_, best in candidates:
        age, factor, away = ages[dates[chunk]]
        named = None
        if occasion and away is not None:
            named = NamedStep(away, relevance)
            relevance = occasion.lift(relevance, away)
        aged.append(Candidate(chunk, legs, fused, relevance, factor, age, named, read, best=best))
    return sorted(aged, key=lambda candidate: -candidate.relevance * candidate.decay)


def _age(
    written: str | None, evergreen: int, named: str | None, today: date, decay: Decay, occasion: Occasion | None
) -> tuple[int | None, float, int | None]:
    """In days, what it leaves of a score, and how far it is from the days that the query names, if it names any."""
    lifespan = LIFESPANS.get(named) if named else None
    lasting = bool(evergreen) or (lifespan is not None and lifespan.days is None)
    day = date.fromisoformat(written) if written else None
    age = age_in_days(day, today, evergreen=lasting)
    away = occasion.period.days_away(day) if occasion and day and age is not None else None
    since = age if away is None else abs(away)
    return age, decay_factor(since, decay, lifespan.days if lifespan else None), away


def read_dates(sql: sqlite3.Connection, chunks: Collection[int]) -> dict[int, Dated]:
    """Of each chunk: when it was written, whether that matters, and of a fact the decay class."""
    rows = sql.execute(
        f"""
        SELECT c.id, {DATED} FROM json_each(?) wanted
          JOIN chunks c ON c.id = wanted.value JOIN documents d ON d.id = c.document_id
        """,  # noqa: S608 - a constant
        (json.dumps(list(chunks)),),
    )
    return {chunk: (written, evergreen, named) for chunk, written, evergreen, named in rows.fetchall()}
