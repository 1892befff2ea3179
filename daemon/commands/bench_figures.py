"""What ``memoryd bench`` asks and how it adds up what it was answered; pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

BESIDE = ("words", "trigram")  # stages that run beside the others, on another thread
_WORD = re.compile(r"\w[\w'-]*")
_FEWEST_WORDS, _MOST_WORDS = 3, 8
_LONGEST = 24  # characters of a word; in scripts without spaces a sentence is one, and a part of it is taken
_PART = 6


@dataclass(frozen=True, slots=True)
class Sample:
    """One query, in milliseconds."""

    whole_ms: float  # as the client saw it
    daemon_ms: float  # of that, inside the daemon
    stages_ms: Mapping[str, float]
    embedding_ms: float | None  # of the same query, while nothing else was done for it; None: it was not embedded
    keywords_ms: float  # a query by words alone
    degraded: str | None  # why the search was not whole


def draw_queries(texts: Sequence[str], count: int, random: Random) -> list[str]:
    """Runs of words that stand in the texts, as a question about them would have; none where there are no words."""
    wordy = [words for text in texts if (words := _WORD.findall(text))]
    queries: list[str] = []
    for _ in range(count if wordy else 0):
        words = random.choice(wordy)
        length = random.randint(_FEWEST_WORDS, _MOST_WORDS)
        first = random.randint(0, max(0, len(words) - length))
        queries.append(" ".join(_part(word, random) for word in words[first : first + length]))
    return queries


def _part(word: str, random: Random) -> str:
    if len(word) <= _LONGEST:
        return word
    first = random.randint(0, len(word) - _PART)
    return word[first : first + _PART]


def summarise(samples: Sequence[Sample]) -> dict[str, Any]:
    """Half of the queries took no longer than p50, and 95 of a hundred no longer than p95."""
    stages = list(dict.fromkeys(stage for sample in samples for stage in sample.stages_ms))
    ordered = [*(stage for stage in stages if stage not in BESIDE), *(stage for stage in stages if stage in BESIDE)]
    embedded = [sample.embedding_ms for sample in samples if sample.embedding_ms is not None]
    search = spread([sample.whole_ms for sample in samples])
    bare = spread(embedded) if embedded else None
    reasons = [sample.degraded for sample in samples if sample.degraded]
    return {
        "queries": len(samples),
        "search_ms": search,
        "stages_ms": {
            f"{stage}, beside the others" if stage in BESIDE else stage: spread(
                [sample.stages_ms[stage] for sample in samples if stage in sample.stages_ms]
            )
            for stage in ordered
        },
        "socket_ms": spread([sample.whole_ms - sample.daemon_ms for sample in samples]),
        "embedding_ms": bare,
        "ratio": round(search["p50"] / bare["p50"], 2) if bare and bare["p50"] else None,
        "keywords_ms": spread([sample.keywords_ms for sample in samples]),
        "degraded": len(reasons),
        "reason": reasons[0] if reasons else None,
    }


def spread(times: Sequence[float]) -> dict[str, float]:
    """Times that were really measured, none in between."""
    ordered = sorted(times)
    return {f"p{share}": round(ordered[max(0, math.ceil(len(ordered) * share / 100) - 1)], 2) for share in (50, 95)}
