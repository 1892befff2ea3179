"""Two ways to search, side by side on the same queries: how much they differ, whether that is luck, and where. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from memoryd.store.search.bootstrap import Verdict, judge, mean_intervals

SHOWN_HITS = 6  # as many as a caller gets who does not say how many


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure under both settings."""

    measure: str
    a: float
    b: float
    low: float  # of the 95 % interval of b − a
    high: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Change:
    """A query whose answer is found at another rank."""

    query: int  # its place among the queries
    a: int | None  # rank of the first result with the answer
    b: int | None

    @property
    def outcome(self) -> Literal["gained", "lost", "up", "down"]:
        """Gained and lost: moved into the hits that a caller sees, or out of them."""
        before, after = _within(self.a), _within(self.b)
        if before != after:
            return "gained" if after else "lost"
        return "up" if _reciprocal(self.b) > _reciprocal(self.a) else "down"

    @property
    def size(self) -> tuple[bool, float]:
        """For ordering: what a caller would notice first, then the difference of the reciprocal ranks."""
        return _within(self.a) != _within(self.b), abs(_reciprocal(self.b) - _reciprocal(self.a))


def compare(measures: Sequence[str], a: Sequence[dict[str, float]], b: Sequence[dict[str, float]]) -> list[Difference]:
    """The measures of the same queries, one row a query, under A and B."""
    first, second = (np.array([[row[name] for name in measures] for row in rows]) for rows in (a, b))
    differences = second - first
    intervals = mean_intervals(differences)
    return [
        Difference(
            measure=name,
            a=float(first[:, column].mean()),
            b=float(second[:, column].mean()),
            low=float(low),
            high=float(high),
            verdict=judge(differences[:, column].tolist(), float(low), float(high)),
        )
        for column, (name, (low, high)) in enumerate(zip(measures, intervals, strict=True))
    ]


def find_changes(a: Sequence[int | None], b: Sequence[int | None]) -> list[Change]:
    """The queries whose first rank differs, the largest changes first."""
    changes = [Change(query, *ranks) for query, ranks in enumerate(zip(a, b, strict=True)) if ranks[0] != ranks[1]]
    return sorted(changes, key=lambda change: change.size, reverse=True)


def _within(rank: int | None) -> bool:
    return rank is not None and rank <= SHOWN_HITS


def _reciprocal(rank: int | None) -> float:
    return 1 / rank if rank else 0.0
