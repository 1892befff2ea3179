"""What the daemon remembers of its own speed."""

from __future__ import annotations

import json
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.footprint import read_footprint
from memoryd.daemon.measures import BUCKETS, STEP_S, STEPS, WINDOW_S, Measures, percentile
from tests.support.clock import SetClock


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def measures(clock: SetClock) -> Measures:
    return Measures(clock)


def test_percentiles_are_durations_that_were_measured(measures: Measures) -> None:
    for took in range(1, 101):
        measures.note_request("search", float(took), None)
    search = measures.report()["requests"]["search"]
    assert (search["p50_ms"], search["p95_ms"], search["p99_ms"], search["max_ms"]) == (50, 95, 99, 100)
    assert (search["total"], search["in_window"]) == (100, 100)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.integers(1, 100))
def test_percentile_leaves_no_more_than_its_share_above(durations: list[float], share: int) -> None:
    ordered = sorted(round(each, 2) for each in durations)
    found = percentile(ordered, share)
    assert found in ordered
    assert sum(each > found for each in ordered) <= len(ordered) * (100 - share) / 100


def test_what_is_older_than_the_window_counts_in_the_totals_alone(measures: Measures, clock: SetClock) -> None:
    measures.note_request("search", 900.0, None)
    clock.move(WINDOW_S + 1)
    measures.note_request("search", 10.0, "invalid_params")
    search = measures.report()["requests"]["search"]
    assert (search["total"], search["in_window"], search["max_ms"]) == (2, 1, 10)
    assert search["errors"] == {"invalid_params": 1}
    assert search["seconds"] == pytest.approx(0.91)


def test_without_requests_there_are_no_percentiles(measures: Measures, clock: SetClock) -> None:
    assert measures.report()["requests"] == {}
    measures.note_request("search", 1.0, None)
    clock.move(WINDOW_S + 1)
    assert measures.report()["requests"]["search"]["p99_ms"] is None


def test_buckets_are_cumulative_and_a_bound_belongs_to_its_bucket(measures: Measures) -> None:
    for seconds in (*BUCKETS, 60.0):
        measures.note_request("search", seconds * 1000, None)
    buckets = measures.report()["requests"]["search"]["buckets"]
    assert list(buckets.values()) == list(range(1, len(BUCKETS) + 2))
    assert list(buckets)[-1] == "+Inf"


def test_throughput_is_a_ring_of_the_last_steps(measures: Measures, clock: SetClock) -> None:
    measures.note_vectors(7, 3)
    clock.move(STEP_S)
    for outcome in ("indexed", "forgotten", "unchanged", "skipped", "absent"):
        measures.note_jobs("index", 1, 0.1, {"outcome": outcome})
    throughput = measures.report()["throughput"]
    assert throughput["passages"][-2:] == [7, 0]
    assert throughput["files"][-2:] == [0, 2]
    assert len(throughput["passages"]) == STEPS
    clock.move(STEP_S * STEPS)
    assert sum(measures.report()["throughput"]["passages"]) == 0
    assert measures.report()["written"] == {"files": 2, "passages": 7, "computed": 3}


def test_a_clock_that_goes_back_leaves_no_step_behind(measures: Measures, clock: SetClock) -> None:
    for _ in range(1000):
        measures.note_jobs("index", 1, 0.1, {"outcome": "indexed"})
        clock.move(-STEP_S)
    assert sum(measures.report()["throughput"]["files"]) <= 2
    assert len(measures._steps) <= STEPS


def test_everything_kept_is_bounded(measures: Measures) -> None:
    for number in range(10_000):
        measures.note_request("search", 1.0, None)
        measures.note_search(float(number), {"words": 1.0}, 6, degraded=False)
        measures.note_jobs("index", 1, 0.1, {"outcome": "indexed"})
    report = measures.report()
    assert len(json.dumps(report)) < 10_000
    assert report["last_searches"][0]["took_ms"] == 9999  # the newest first
    assert len(measures._requests["search"].recent) < 10_000


def test_jobs_are_counted_by_kind_and_outcome(measures: Measures) -> None:
    measures.note_jobs("embed", 32, 1.5, {"passages": 40})
    measures.note_jobs("embed", 1, 0.0, None)
    assert measures.report()["jobs"] == {"embed": {"done": 32, "failed": 1, "seconds": 1.5}}


def test_it_is_read_while_others_note(measures: Measures) -> None:
    def work() -> None:
        for _ in range(3000):
            measures.note_request("search", 1.0, None)
            measures.note_vectors(1, 1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that threads take turns in the middle of things
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            report = measures.report()  # fails if what it goes through changes meanwhile
            assert list(report["requests"].get("search", {}).get("buckets", {"": 0}).values())[-1] <= 9000
    finally:
        sys.setswitchinterval(before)
    assert measures.report()["requests"]["search"]["total"] == 9000
    assert measures.report()["written"]["passages"] == 9000


def test_footprint_is_of_this_process() -> None:
    footprint = read_footprint()
    assert footprint.resident_bytes > 1_000_000
    assert footprint.cpu_s > 0
    assert footprint.threads == threading.active_count()
    assert 2 < footprint.open_files < footprint.open_files_limit
