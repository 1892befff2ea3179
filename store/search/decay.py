"""How much a note's age takes from its score."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from datetime import date

from memoryd.store.lifespans import LIFESPANS
from memoryd.store.search.answer import Candidate
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
) -> list[Candidate]:
    """``known``: what was read before of some chunks."""
    dates = dict(known or {})
    if unread := [candidate.chunk_id for candidate in candidates if candidate.chunk_id not in dates]:
        dates |= read_dates(sql, unread)
    ages = {dated: _age(*dated, today, decay) for dated in set(dates.values())}
    aged = []
    for candidate in candidates:
        age, factor = ages[dates[candidate.chunk_id]]
        aged.append(Candidate(*candidate[:4], factor, age, *candidate[6:]))
    return sorted(aged, key=lambda candidate: -candidate.relevance * candidate.decay)


def _age(written: str | None, evergreen: int, named: str | None, today: date, decay: Decay) -> tuple[int | None, float]:
    """In days, and what it leaves of a score."""
    lifespan = LIFESPANS.get(named) if named else None
    lasting = bool(evergreen) or (lifespan is not None and lifespan.days is None)
    age = age_in_days(date.fromisoformat(written) if written else None, today, evergreen=lasting)
    return age, decay_factor(age, decay, lifespan.days if lifespan else None)


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
