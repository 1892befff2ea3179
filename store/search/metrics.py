"""How good an answer is, measured against lines that are known to hold it. Pure.

The figures are those of the common retrieval measures, on three levels. ``line``: a gold item is found by the first
result of its file whose lines overlap it. ``file``: it is found by the first result of its file. ``doc``: the same
once repeats of a file are removed, so that a rank counts different files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

_Key = TypeVar("_Key")
_Row = TypeVar("_Row")

CUTS = (1, 5, 6, 10)
_Z95 = 1.96  # standard deviations that hold 95 % of a normal distribution


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
    lines: dict[tuple[str, int, int], float] = {}
    files: dict[str, float] = {}
    found: dict[tuple[str, int, int], int | None] = {}
    for item in gold:
        key = (item.path, item.start_line, item.end_line)
        lines[key] = max(lines.get(key, 0.0), item.grade)
        files[item.path] = max(files.get(item.path, 0.0), item.grade)
        found[key] = first_rank([item], results)
    paths = [result.path for result in results]
    different = list(dict.fromkeys(paths))
    sizes = [result.end_line - result.start_line + 1 for result in results]
    return {
        **_measures("line", found, lines),
        **_measures("file", {path: _place(path, paths) for path in files}, files),
        **_measures("doc", {path: _place(path, different) for path in files}, files),
        "lines_per_result": sum(sizes) / len(sizes) if sizes else 0.0,
    }


def first_rank(gold: Sequence[Span], results: Sequence[Span]) -> int | None:
    """The rank of the first result that finds any of the gold lines."""
    return next((rank for rank, result in enumerate(results, start=1) if any(map(result.overlaps, gold))), None)


def mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each measure over queries."""
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]} if rows else {}


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share that was counted on so many queries."""
    if not count:
        return 0.0, 0.0
    square = _Z95 * _Z95 / count
    middle = (share + square / 2) / (1 + square)
    half = math.sqrt(share * (1 - share) * square + square * square / 4) / (1 + square)
    return middle - half, middle + half


def overlap_slice(lex_overlap: float) -> str:
    """The slice of a query by the share of its content words that stand verbatim in its gold lines."""
    return "~overlap-" + ("1-low" if lex_overlap < 0.34 else "2-mid" if lex_overlap < 0.67 else "3-high")


def group(rows: Iterable[tuple[Iterable[str], _Row]]) -> dict[str, list[_Row]]:
    """Rows by each of their labels, in the order of the labels."""
    groups: dict[str, list[_Row]] = {}
    for labels, row in rows:
        for label in labels:
            groups.setdefault(label, []).append(row)
    return dict(sorted(groups.items()))


def _place(path: str, paths: Sequence[str]) -> int | None:
    return paths.index(path) + 1 if path in paths else None


def _measures(level: str, ranks: Mapping[_Key, int | None], grades: Mapping[_Key, float]) -> dict[str, float]:
    measures: dict[str, float] = {}
    for cut in CUTS:
        within = sum(1 for rank in ranks.values() if rank is not None and rank <= cut)
        measures[f"{level}.hit@{cut}"] = 1.0 if within else 0.0
        measures[f"{level}.recall@{cut}"] = within / len(ranks) if ranks else 0.0
    first = min((rank for rank in ranks.values() if rank is not None), default=None)
    measures[f"{level}.mrr@10"] = 1 / first if first is not None and first <= 10 else 0.0
    gained = _discounted((rank, grades[key]) for key, rank in ranks.items() if rank is not None)
    ideal = _discounted(enumerate(sorted(grades.values(), reverse=True), start=1))
    measures[f"{level}.ndcg@10"] = min(1.0, gained / ideal) if ideal else 0.0
    return measures


def _discounted(pairs: Iterable[tuple[int, float]]) -> float:
    return sum(grade / math.log2(1 + rank) for rank, grade in pairs if rank <= 10)
