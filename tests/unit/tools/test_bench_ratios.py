"""``make bench-check``: what is a regression, and what is noise."""

from __future__ import annotations

import pytest

from tools.bench_ratios import Ratio, best_of, compare, failing_stages, judge, ratios_of, stage_of, table

SEARCH, INDEX, DISK = (
    "daemon: search p50 over a bare embedding",
    "daemon: indexing over llama.cpp alone",
    "growth 10,000: disk over the text",
)
BASELINE = {SEARCH: Ratio(4.0), INDEX: Ratio(0.96, "high"), DISK: Ratio(6.0)}


def failing(**measured: float) -> list[str]:
    names = {"search": (SEARCH, "low"), "index": (INDEX, "high"), "disk": (DISK, "low")}
    found = {name: Ratio(measured[key], better) for key, (name, better) in names.items() if key in measured}
    return [verdict.name for verdict in compare(BASELINE, found) if verdict.fails]


def test_what_is_more_than_fifteen_percent_worse_fails() -> None:
    assert failing(search=4.64, index=0.96, disk=6.0) == [SEARCH]
    assert failing(search=4.0, index=0.82, disk=6.0) == [INDEX], "of throughput less is worse"
    assert failing(search=9.0, index=0.5, disk=60.0) == [SEARCH, INDEX, DISK]


def test_what_is_a_little_worse_or_better_passes() -> None:
    assert failing(search=4.59, index=0.84, disk=6.8) == []
    assert failing(search=1.0, index=2.0, disk=1.0) == []


def test_what_was_not_measured_or_never_kept_is_told_and_does_not_fail() -> None:
    verdicts = compare(BASELINE, {SEARCH: Ratio(4.0), "load: something new": Ratio(99.0)})
    assert not any(verdict.fails for verdict in verdicts)
    lines = "\n".join(table(verdicts))
    assert lines.count("not measured") == 2
    assert lines.count("new") == 2  # in its name, and in what is said of it


def test_of_two_measurements_the_better_counts() -> None:
    one = {SEARCH: Ratio(5.0), INDEX: Ratio(0.7, "high")}
    other = {SEARCH: Ratio(4.1), INDEX: Ratio(0.6, "high"), DISK: Ratio(6.0)}
    for merged in (best_of(one, other), best_of(other, one)):
        assert merged == {SEARCH: Ratio(4.1), INDEX: Ratio(0.7, "high"), DISK: Ratio(6.0)}


def test_stages_with_a_failure_are_named_once() -> None:
    verdicts = compare(BASELINE, {SEARCH: Ratio(8.0), INDEX: Ratio(0.1, "high"), DISK: Ratio(6.0)})
    assert failing_stages(verdicts) == ["daemon"]
    assert stage_of(DISK) == "growth"


def test_what_fails_by_chance_is_measured_again_and_passes() -> None:
    asked: list[str] = []

    def measure(stage: str) -> dict[str, Ratio]:
        asked.append(stage)
        if stage == "growth":
            return {DISK: Ratio(6.0)}
        return {SEARCH: Ratio(9.0 if asked.count(stage) == 1 else 4.2), INDEX: Ratio(0.9, "high")}

    assert not any(verdict.fails for verdict in judge(BASELINE, ["daemon", "growth"], measure))
    assert asked == ["daemon", "growth", "daemon"], "what held is not measured again"


def test_what_is_slower_stays_so_however_often_it_is_measured() -> None:
    asked: list[str] = []

    def measure(stage: str) -> dict[str, Ratio]:
        asked.append(stage)
        return {SEARCH: Ratio(4.0 * 1.2 + 0.1 * len(asked)), INDEX: Ratio(0.96, "high"), DISK: Ratio(6.0)}

    (failed,) = (verdict for verdict in judge(BASELINE, ["daemon"], measure) if verdict.fails)
    assert failed.name == SEARCH
    assert failed.measured == pytest.approx(4.9), "the best of the three"
    assert asked == ["daemon"] * 3


def test_table_says_which_and_by_how_much() -> None:
    lines = table(compare(BASELINE, {SEARCH: Ratio(6.0), INDEX: Ratio(0.96, "high"), DISK: Ratio(3.0)}))
    assert lines[1].startswith(f"✗ {SEARCH}")
    assert lines[1].endswith("4.000      6.000  50% worse")
    assert lines[2].startswith("✓")
    assert lines[3].endswith("50% better")


def test_ratios_are_taken_from_what_was_measured() -> None:
    spread = {"p50": 10.0, "p95": 15.0}
    growth = {
        "kinds": {
            "natural language": {"ratio": 2.5, "bare_ms": {"p50": 4.0, "p95": 5.0}, "search_ms": spread},
            "in a scope": {"search_ms": {"p50": 12.0, "p95": 20.0}},
        },
        "keywords_ms": {"natural language": {"p50": 6.0}, "Chinese, Japanese, Korean": {"p50": 2.0}},
        "index": {"ratio": 3.0},
        "disk": {"ratio": 5.5},
    }
    found = {name: ratio.value for name, ratio in ratios_of({"growth": {"10000": growth}}).items()}
    assert found == {
        "growth 10,000: search p50 over a bare embedding": 2.5,
        "growth 10,000: search p95 over p50": 1.5,
        "growth 10,000: in a scope over everywhere": 1.2,
        "growth 10,000: keywords alone over a bare embedding": 1.5,
        "growth 10,000: keywords alone in CJK over a bare embedding": 0.5,
        "growth 10,000: CPU to index a chunk over FTS5 alone": 3.0,
        "growth 10,000: disk over the text": 5.5,
    }
    assert ratios_of({"machine": {}, "bars": {}}) == {}
    index = {"ratio": 0.95, "cpu_ratio": 0.9}
    assert all(ratio.better == "high" for ratio in ratios_of({"index": index}).values())


def test_nothing_measured_is_no_ratio_at_all() -> None:
    assert table([]) != []
    with pytest.raises(ZeroDivisionError):
        Ratio(1.0).worse_than(Ratio(0.0))
