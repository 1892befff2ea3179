"""A stretch of days, or several: what a query may name."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple


class Span(NamedTuple):
    """Both days included."""

    first: date
    last: date

    @classmethod
    def of_day(cls, day: date) -> Span:
        return cls(day, day)

    @classmethod
    def of_month(cls, year: int, month: int) -> Span:
        """Months before January and after December are those of the years around."""
        years, month = divmod(month - 1, 12)
        year += years
        return cls(date(year, month + 1, 1), date(year, month + 1, monthrange(year, month + 1)[1]))

    @classmethod
    def of_year(cls, year: int) -> Span:
        return cls(date(year, 1, 1), date(year, 12, 31))

    def days_away(self, day: date) -> int:
        """Less than 0 before it, more than 0 after it, 0 within."""
        return min(0, (day - self.first).days) or max(0, (day - self.last).days)


@dataclass(frozen=True, slots=True)
class Period:
    said: str  # as it stands in the query, folded
    spans: tuple[Span, ...]

    def days_away(self, day: date) -> int:
        """From the nearest of its days: less than 0 before it, more than 0 after it, 0 within."""
        return min((span.days_away(day) for span in self.spans), key=abs)
