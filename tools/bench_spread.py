"""Times in two numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median, quantiles

from memoryd.store.search.pipeline import BESIDE


def spread(times: Sequence[float]) -> dict[str, float]:
    cuts = quantiles(times, n=20, method="inclusive") if len(times) > 1 else list(times) * 19
    return {"p50": round(median(times), 2), "p95": round(cuts[18], 2)}


def with_rest(stages: Mapping[str, float], took: float) -> dict[str, float]:
    """A search's stages, those that run beside the others marked, and what is left of the whole."""
    alone = {stage: ms for stage, ms in stages.items() if stage not in BESIDE}
    beside = {f"{stage}, beside": ms for stage, ms in stages.items() if stage in BESIDE}
    return {**alone, "all else": took - sum(alone.values()), **beside}
