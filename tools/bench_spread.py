"""Times in two numbers."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median, quantiles


def spread(times: Sequence[float]) -> dict[str, float]:
    cuts = quantiles(times, n=20, method="inclusive") if len(times) > 1 else list(times) * 19
    return {"p50": round(median(times), 2), "p95": round(cuts[18], 2)}
