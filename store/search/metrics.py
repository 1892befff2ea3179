"""How good an answer is, measured against lines that are known to hold it. Pure.

The figures are those of the common retrieval measures. On lines, a gold item is found by the first result of its
file whose lines overlap it; on documents, repeats of a file are removed first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

_Key = TypeVar("_Key")

CUTS = (1, 5, 6, 10)


@dataclass(frozen=True, slots=True)
class Span:
    """Lines of a file: a result, or (with a grade) a gold item."""

    path: str
    start_line: int
    end_line: int
    grade: float = 1.0

    def overlaps(self, other: Span) -> bool:
        return self.path == other.path and self.start_line <= other.end_line and self.end_line >= other.start_line


def score_query(gold: Sequence[Span], results: Sequence[Span]) -> dict[str, float]:
    """The measures of one query, by name."""
    lines = {(item.path, item.start_line, item.end_line): item for item in gold}
    found = {
        key: next((rank for rank, result in enumerate(results, start=1) if result.overlaps(item)), None)
        for key, item in lines.items()
    }
    files = list(dict.fromkeys(result.path for result in results))
    grades: dict[str, float] = {}
    for item in gold:
        grades[item.path] = max(grades.get(item.path, 0.0), item.grade)
    documents = {path: files.index(path) + 1 if path in files else None for path in grades}
    sizes = [result.end_line - result.start_line + 1 for result in results]
    measures = {
        f"line.{name}": value for name, value in _measures(found, {k: i.grade for k, i in lines.items()}).items()
    }
    measures |= {f"doc.{name}": value for name, value in _measures(documents, grades).items()}
    measures["lines_per_result"] = sum(sizes) / len(sizes) if sizes else 0.0
    return measures


def mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each measure over queries."""
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]} if rows else {}


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def _measures(ranks: Mapping[_Key, int | None], grades: Mapping[_Key, float]) -> dict[str, float]:
    measures: dict[str, float] = {}
    for cut in CUTS:
        within = sum(1 for rank in ranks.values() if rank is not None and rank <= cut)
        measures[f"hit@{cut}"] = 1.0 if within else 0.0
        measures[f"recall@{cut}"] = within / len(ranks) if ranks else 0.0
    first = min((rank for rank in ranks.values() if rank is not None), default=None)
    measures["mrr@10"] = 1 / first if first is not None and first <= 10 else 0.0
    gained = _discounted((rank, grades[key]) for key, rank in ranks.items() if rank is not None)
    ideal = _discounted(enumerate(sorted(grades.values(), reverse=True), start=1))
    measures["ndcg@10"] = min(1.0, gained / ideal) if ideal else 0.0
    return measures


def _discounted(pairs: Iterable[tuple[int, float]]) -> float:
    return sum(grade / math.log2(1 + rank) for rank, grade in pairs if rank <= 10)
