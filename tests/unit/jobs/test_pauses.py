"""When embedding is paused, and for how long."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.jobs.pauses import LOOK_S, MOST_PAUSE_S, WORK_S, Course, Pauses, PauseSettings, decide
from memoryd.jobs.surroundings import Surroundings, look_around
from tests.support.clock import SetClock
from tests.support.surroundings import set_battery, set_pressure

CALM, BUSY, UNTOLD = Surroundings(5.0, None), Surroundings(90.0, None), Surroundings(None, None)
BATTERY, PLUGGED = Surroundings(None, on_battery=True), Surroundings(None, on_battery=False)
BOTH = PauseSettings(on_battery=True, on_pressure=60.0)


def test_nothing_pauses_unless_it_is_configured() -> None:
    assert decide(1000, Surroundings(100.0, on_battery=True), PauseSettings(), Course()).pause is None


def test_battery_pauses_at_once_and_for_as_long_as_it_lasts() -> None:
    course = decide(1000, BATTERY, BOTH, Course())
    assert course.pause is not None
    assert (course.pause.reason, course.pause.since, course.pause.until) == ("on battery", 1000, None)
    assert decide(1000 + 10 * MOST_PAUSE_S, BATTERY, BOTH, course) == course
    assert decide(2000, PLUGGED, BOTH, course).pause is None


def test_pressure_of_others_pauses_at_once() -> None:
    course = decide(1000, BUSY, BOTH, Course())
    assert course.pause is not None
    assert (course.pause.reason, course.pause.until) == ("the machine is busy", 1000 + MOST_PAUSE_S)


def test_pressure_must_last_where_there_was_room_a_moment_ago() -> None:
    """Our own work is pressure too."""
    course = decide(1000, CALM, BOTH, Course())
    assert decide(1000 + WORK_S - 1, BUSY, BOTH, course).pause is None
    assert decide(1000 + WORK_S, BUSY, BOTH, course).pause is not None


def test_pause_ends_when_there_is_room_or_the_bound_is_reached() -> None:
    course = decide(1000, BUSY, BOTH, Course())
    assert decide(1005, CALM, BOTH, course).pause is None
    assert decide(1005, UNTOLD, BOTH, course).pause is None
    assert decide(1000 + MOST_PAUSE_S - 1, BUSY, BOTH, course) == course
    over = decide(1000 + MOST_PAUSE_S, BUSY, BOTH, course)
    assert over.pause is None
    assert decide(1000 + MOST_PAUSE_S + WORK_S - 1, BUSY, BOTH, over).pause is None
    assert decide(1000 + MOST_PAUSE_S + WORK_S, BUSY, BOTH, over).pause is not None


def test_busy_battery_is_told_as_battery_and_then_as_busy() -> None:
    course = decide(1000, Surroundings(90.0, on_battery=True), BOTH, Course())
    assert course.pause is not None
    assert course.pause.reason == "on battery"
    plugged = decide(1010, BUSY, BOTH, course).pause
    assert plugged is not None
    assert plugged.reason == "the machine is busy"


def test_kernel_that_tells_no_pressure_pauses_nothing() -> None:
    assert decide(1000, UNTOLD, BOTH, Course()).pause is None


@settings(max_examples=40)
@given(
    pressures=st.lists(st.sampled_from([None, 20.0, 90.0, 90.0, 90.0]), min_size=150, max_size=200),
    jumps=st.dictionaries(st.integers(0, 199), st.floats(-1e6, 1e6), max_size=3),
)
def test_no_pressure_and_no_clock_pauses_for_longer_than_the_bound(
    pressures: list[float | None], jumps: dict[int, float]
) -> None:
    """Counted in looks, for a clock that is set says nothing."""
    now, course, looks = 1_000_000.0, Course(), 0
    wish = PauseSettings(on_pressure=50.0)
    for number, pressure in enumerate(pressures):
        now += LOOK_S + jumps.get(number, 0.0)
        course = decide(now, Surroundings(pressure, None), wish, course)
        looks = looks + 1 if course.pause else 0
        jumped = any(number - looks <= at <= number for at in jumps)
        assert looks <= MOST_PAUSE_S / LOOK_S or jumped
        assert looks <= (1 + len(jumps)) * MOST_PAUSE_S / LOOK_S


@pytest.mark.parametrize("limit", [10.0, 30.0, 60.0])
def test_embedding_that_is_all_the_pressure_there_is_gets_on(limit: float) -> None:
    """Its own work takes avg10 to 80 %; when it rests, the average falls as the kernel's does."""
    course, pressure, worked, seconds = Course(), 0.0, 0, 3600
    wish = PauseSettings(on_pressure=limit)
    for second in range(seconds):
        if second % LOOK_S == 0:
            course = decide(1000.0 + second, Surroundings(pressure, None), wish, course)
        target = 0.0 if course.pause else 80.0
        pressure = target + (pressure - target) * math.exp(-1 / 10)
        worked += course.pause is None
    assert worked > 0.4 * seconds


def test_embedding_on_a_machine_that_is_always_busy_gets_on() -> None:
    course, worked = Course(), 0
    for look in range(10_000):
        course = decide(1000.0 + look * LOOK_S, BUSY, BOTH, course)
        worked += course.pause is None
    assert worked / 10_000 == pytest.approx(WORK_S / (WORK_S + MOST_PAUSE_S), rel=0.1)


def test_machine_is_looked_at_only_if_a_pause_is_wanted_and_every_few_seconds(tmp_path: Path) -> None:
    clock, looks = SetClock(), 0

    def look() -> Surroundings:
        nonlocal looks
        looks += 1
        return look_around(tmp_path)

    set_battery(tmp_path, plugged=False)
    set_pressure(tmp_path, 0)
    pauses = Pauses(PauseSettings(), clock, look)
    assert pauses.now() is None
    assert (looks, pauses.looks_again_at()) == (0, None)
    pauses.follow(PauseSettings(on_battery=True))
    assert all(pauses.now() for _ in range(10))
    assert (looks, pauses.looks_again_at()) == (1, clock() + LOOK_S)
    set_battery(tmp_path, plugged=True)
    clock.now += LOOK_S
    assert pauses.now() is None
    assert (looks, pauses.looks_again_at()) == (2, None)
