"""The schedule and a clock that jumps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from memoryd.jobs.schedule import Schedule
from tests.support.clock import SetClock
from tests.support.waiting import eventually

DAY = 86_400.0
MINUTE = timedelta(minutes=1)


class CountingClock(SetClock):
    looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return super().__call__()


class Jumping:
    """A schedule whose wall clock is the test's own."""

    def __init__(self) -> None:
        self.wall, self.steady = SetClock(), CountingClock()
        self.schedule = Schedule(self.wall, self.steady, look_s=0.01)

    def due_in(self, name: str) -> timedelta:
        return self.schedule.next_runs()[name] - datetime.now(UTC)


@pytest.fixture
def jumping() -> Iterator[Jumping]:
    jumping = Jumping()
    yield jumping
    jumping.schedule.stop()


def test_what_is_scheduled_is_done_again_and_again() -> None:
    schedule, ran = Schedule(), threading.Semaphore(0)
    schedule.every(0.0005, "often", ran.release)
    schedule.start()
    try:
        assert all(ran.acquire(timeout=30) for _ in range(3))
    finally:
        schedule.stop()


@pytest.mark.parametrize("seconds", [-DAY, DAY])
def test_clock_that_jumps_starts_the_interval_anew(jumping: Jumping, seconds: float) -> None:
    """After a jump back APScheduler would wait for the time that it had noted, a day away."""
    jumping.schedule.every(1, "reconcile", lambda: None)
    jumping.schedule.start()
    jumping.schedule._scheduler.modify_job("reconcile", next_run_time=datetime.now(UTC) + timedelta(days=1))
    jumping.wall.move(seconds)
    eventually(lambda: jumping.due_in("reconcile") <= MINUTE, what="the next run is a minute away")


def test_clock_that_jumped_there_and_back_between_two_looks_starts_the_interval_anew(jumping: Jumping) -> None:
    jumping.schedule.every(1, "reconcile", lambda: None)
    jumping.schedule.start()
    jumping.schedule._scheduler.modify_job("reconcile", next_run_time=datetime.now(UTC) + timedelta(days=1))
    eventually(lambda: jumping.due_in("reconcile") <= MINUTE, what="the next run is a minute away")


def test_clock_that_is_slewed_changes_nothing(jumping: Jumping) -> None:
    jumping.schedule.every(1, "reconcile", lambda: None)
    jumping.schedule.start()
    before = jumping.schedule.next_runs()
    jumping.wall.move(5)
    looks = jumping.steady.looks
    eventually(lambda: jumping.steady.looks > looks + 2, what="the clock was looked at")
    assert jumping.schedule.next_runs() == before


def test_what_is_scheduled_while_the_clock_jumps_does_not_end_the_watch_over_it(jumping: Jumping) -> None:
    for name in ("reconcile", "verify", "maintain"):
        jumping.schedule.every(1, name, lambda: None)
    scheduler = jumping.schedule._scheduler
    modify, entered, go_on = scheduler.modify_job, threading.Event(), threading.Event()

    def modify_slowly(*args: object, **changes: object) -> object:
        entered.set()
        assert go_on.wait(60)
        return modify(*args, **changes)

    scheduler.modify_job = modify_slowly
    jumping.schedule.start()
    looks = jumping.steady.looks
    eventually(lambda: jumping.steady.looks > looks, what="a look at the clock")
    jumping.wall.now += DAY
    assert entered.wait(60)
    adding = threading.Thread(target=jumping.schedule.every, args=(1, "facts", lambda: None))
    adding.start()
    adding.join(0.3)  # long enough for one that does not wait
    go_on.set()
    adding.join(60)
    looks = jumping.steady.looks
    eventually(lambda: jumping.steady.looks > looks + 2, what="the clock is still looked at")
    assert "facts" in jumping.schedule.next_runs()
