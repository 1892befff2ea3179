"""A query that names days is about them: what was written then, or in the days around, comes before what was not.

Ages count from the days that are named instead of from today, and what was written there is lifted besides. Nothing is
pushed down for it: what is evergreen stays what it is, and what was written long after may be what tells of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from memoryd.store.search.day_phrases import find_period
from memoryd.store.search.period import Period
from memoryd.store.search.request import NamedDays, SearchQuery
from memoryd.store.search.visibility import Visible

_AROUND = 7  # days: what is told of a day is written soon after it, and what is planned shortly before


@dataclass(frozen=True, slots=True)
class Occasion:
    """The days that a query names, of which the memory has notes."""

    period: Period  # of a month without a year, the years that have any
    documents: frozenset[int]  # dated then, or in the days around; of those that the query may see
    settings: NamedDays

    def lift(self, relevance: float, days_away: int) -> float:
        """The nearer a note is dated, the less is left to a perfect match: 0 stays 0, and 1 is never passed."""
        closeness = 2 ** (-abs(days_away) / self.settings.half_life_days)
        return float(1 - (1 - relevance) ** (1 + self.settings.strength * closeness))

    def within(self, visible: Visible) -> Visible:
        """Of what a query may see, what was written then."""
        return replace(visible, documents=self.documents)


def find_occasion(
    sql: sqlite3.Connection, query: SearchQuery, settings: NamedDays, visible: Visible
) -> Occasion | None:
    """None where no days are named, or nothing was written then: it would tell nothing of any note."""
    period = find_period(query.text, query.today) if settings.strength > 0 else None
    if period is None:
        return None
    found: dict[date, list[int]] = {}
    for document, written in _dated(sql, period.spans):
        if visible.documents is None or document in visible.documents:
            found.setdefault(date.fromisoformat(written), []).append(document)
    near = {day: documents for day, documents in found.items() if abs(period.days_away(day)) <= _AROUND}
    spans = tuple(span for span in period.spans if any(abs(span.days_away(day)) <= _AROUND for day in near))
    documents = frozenset(document for documents in near.values() for document in documents)
    return Occasion(replace(period, spans=spans), documents, settings) if documents else None


def _dated(sql: sqlite3.Connection, spans: Sequence[tuple[date, date]]) -> list[tuple[int, str]]:
    """The documents between the first of some days and the last."""
    around = timedelta(_AROUND)
    first, last = min(first for first, _ in spans), max(last for _, last in spans)
    rows = sql.execute(
        # Named, for SQLite would rather read all that are not skipped.
        "SELECT id, date FROM documents INDEXED BY documents_by_date"
        " WHERE skipped IS NULL AND date BETWEEN ? AND ? AND NOT evergreen",
        ((first - min(around, first - date.min)).isoformat(), (last + min(around, date.max - last)).isoformat()),
    )
    return rows.fetchall()
