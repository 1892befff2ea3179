"""The benchmark's results as ratios to what was measured beside them, and a run's ratios beside the baseline's.

Pure: ``bench_check`` measures, ``bench_baseline`` keeps. Only ratios are compared, for only they mean the same on
another machine, or on the same one on another day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

TOLERANCE = 0.15  # so much worse is a regression
AGAIN = 2  # times that a stage is measured again
NATURAL, CJK = "natural language", "Chinese, Japanese, Korean"
FILTERED = IN_PATHS, IN_SOURCE, IN_SCOPE = "in some paths", "in one source", "in a scope"

Better = Literal["low", "high"]


@dataclass(frozen=True, slots=True)
class Ratio:
    value: float
    better: Better = "low"

    def worse_than(self, other: Ratio) -> float:
        """By which part this one is worse; negative where it is better."""
        return self.value / other.value - 1 if self.better == "low" else other.value / self.value - 1


@dataclass(frozen=True, slots=True)
class Verdict:
    name: str
    baseline: float | None  # None: it was never kept
    measured: float | None  # None: it was not measured this time
    worse: float  # by which part; negative: better

    @property
    def fails(self) -> bool:
        return self.worse > TOLERANCE


def ratios_of(result: Mapping[str, Any]) -> dict[str, Ratio]:
    """By name; a name begins with the stage that measures it."""
    return dict(_ratios(result))


def stage_of(name: str) -> str:
    return name.split(":", 1)[0].split(" ", 1)[0]


def compare(baseline: Mapping[str, Ratio], measured: Mapping[str, Ratio]) -> list[Verdict]:
    """One verdict a ratio, in the baseline's order, then those that it does not have."""
    verdicts: list[Verdict] = []
    for name, kept in baseline.items():
        now = measured.get(name)
        worse = now.worse_than(kept) if now else 0.0
        verdicts.append(Verdict(name, kept.value, now.value if now else None, worse))
    verdicts += [Verdict(name, None, now.value, 0.0) for name, now in measured.items() if name not in baseline]
    return verdicts


def best_of(one: Mapping[str, Ratio], other: Mapping[str, Ratio]) -> dict[str, Ratio]:
    """Of a ratio that was measured twice the better: what else the machine does makes it worse, never better."""
    merged = {**one, **other}
    for name in one.keys() & other.keys():
        merged[name] = min(one[name], other[name], key=lambda ratio: ratio.worse_than(one[name]))
    return merged


def judge(
    baseline: Mapping[str, Ratio], stages: Sequence[str], measure: Callable[[str], Mapping[str, Ratio]]
) -> list[Verdict]:
    """Measure the stages, and those in which a ratio fails again, ``AGAIN`` times at most."""
    due: Sequence[str] = stages
    measured: dict[str, Ratio] = {}
    verdicts: list[Verdict] = []
    for _ in range(1 + AGAIN):
        for stage in due:
            measured = best_of(measured, measure(stage))
        verdicts = compare(baseline, measured)
        due = failing_stages(verdicts)
        if not due:
            break
    return verdicts


def failing_stages(verdicts: Sequence[Verdict]) -> list[str]:
    return list(dict.fromkeys(stage_of(verdict.name) for verdict in verdicts if verdict.fails))


def table(verdicts: Sequence[Verdict]) -> list[str]:
    """Lines of text: what is worse than it may be is marked, and by how much."""
    width = max((len(verdict.name) for verdict in verdicts), default=0)
    lines = [f"  {'':<{width}}  {'baseline':>9}  {'now':>9}"]
    for verdict in verdicts:
        kept, now = (
            f"{value:9.3f}" if value is not None else f"{'–':>9}" for value in (verdict.baseline, verdict.measured)
        )
        if verdict.baseline is None:
            words = "new"
        elif verdict.measured is None:
            words = "not measured"
        else:
            words = f"{abs(verdict.worse):.0%} {'worse' if verdict.worse > 0 else 'better'}"
        mark = "✗" if verdict.fails else " " if None in (verdict.baseline, verdict.measured) else "✓"
        lines.append(f"{mark} {verdict.name:<{width}}  {kept}  {now}  {words}")
    return lines


def _ratios(result: Mapping[str, Any]) -> Iterator[tuple[str, Ratio]]:
    if index := result.get("index"):
        yield "daemon: indexing over llama.cpp alone", Ratio(index["ratio"], "high")
        yield "daemon: CPU of llama.cpp alone over a passage's", Ratio(index["cpu_ratio"], "high")
    if search := result.get("search"):
        times = search["search_ms"]
        yield "daemon: search p50 over a bare embedding", Ratio(search["ratio"])
        yield "daemon: search p95 over p50", Ratio(times["p95"] / times["p50"])
        if busy := search.get("while_indexing"):
            yield "daemon: search p95 while indexing over idle", Ratio(busy["p95"] / times["p95"])
    if cli := result.get("cli"):
        yield "daemon: CPU of a cold 'memoryd search' over python's", Ratio(cli["search_cpu_ms"] / cli["python_cpu_ms"])
    if intake := result.get("intake"):
        burst, rescan, change, rebuild = (intake[part] for part in ("burst", "rescan", "change", "rebuild"))
        yield "intake: many small files over FTS5 alone", Ratio(burst["cpu_ms"] / burst["bare_ms"])
        yield "intake: a rescan over scandir and stat", Ratio(rescan["seconds"] / rescan["bare_s"])
        yield "intake: a changed line over splitting alone", Ratio(change["cpu_ms"]["p50"] / change["bare_ms"])
        yield "intake: vectors from the cache over LanceDB alone", Ratio(rebuild["rate"] / rebuild["bare_rate"], "high")
    if load := result.get("load"):
        yield "load: p95 at a rate while indexing over idle", Ratio(load["paced"]["ratio"])
        yield "load: p95 flat out while indexing over idle", Ratio(load["flat_out"]["ratio"])
    for size, measured in (result.get("growth") or {}).items():
        yield from _growth(f"growth {int(size):,}", measured)


def _growth(where: str, measured: Mapping[str, Any]) -> Iterator[tuple[str, Ratio]]:
    search, keywords = measured["kinds"][NATURAL], measured["keywords_ms"]
    bare = search["bare_ms"]["p50"]
    yield f"{where}: search p50 over a bare embedding", Ratio(search["ratio"])
    yield f"{where}: search p95 over p50", Ratio(search["search_ms"]["p95"] / search["search_ms"]["p50"])
    for kind in FILTERED:
        if kind in measured["kinds"]:
            filtered = measured["kinds"][kind]["search_ms"]["p50"]
            yield f"{where}: {kind} over everywhere", Ratio(filtered / search["search_ms"]["p50"])
    yield f"{where}: keywords alone over a bare embedding", Ratio(keywords[NATURAL]["p50"] / bare)
    yield f"{where}: keywords alone in CJK over a bare embedding", Ratio(keywords[CJK]["p50"] / bare)
    yield f"{where}: CPU to index a chunk over FTS5 alone", Ratio(measured["index"]["ratio"])
    yield f"{where}: disk over the text", Ratio(measured["disk"]["ratio"])
