"""When the daemon looks after itself. APScheduler enqueues; it does no work. The only module that imports it.

APScheduler goes by the wall clock: one that is set back by a day would stop it for a day. So the clock is watched,
and a jump starts every interval anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import structlog

from memoryd.store.errors import MemorydError
from memoryd.store.native_thread import name_thread
from memoryd.store.protocols import Clock

log = structlog.get_logger()

_JUMP_S = 30.0  # more than a clock is ever slewed between two looks
_LOOK_S = 15.0


def steady_clock() -> float:
    """Seconds that nobody sets, the time that the machine slept included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Schedule:
    """Named repetitions. The first run is one interval after the start: starting does what is due by itself."""

    def __init__(self, clock: Clock = time.time, steady: Clock = steady_clock, look_s: float = _LOOK_S) -> None:
        from apscheduler.schedulers.background import BackgroundScheduler

        self._scheduler: Any = BackgroundScheduler(
            timezone=UTC, job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        self._intervals: dict[str, timedelta] = {}
        self._changing = threading.Lock()  # of what runs when
        self._clock = clock
        self._steady = steady
        self._look_s = look_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch_clock, name="schedule-clock", daemon=True)

    def every(self, minutes: float, name: str, enqueue: Callable[[], object]) -> None:
        with self._changing:
            self._intervals[name] = timedelta(minutes=minutes)
            self._scheduler.add_job(
                partial(_run, name, enqueue),
                "interval",
                seconds=minutes * 60,
                id=name,
                replace_existing=True,
                next_run_time=datetime.now(UTC) + timedelta(minutes=minutes),
            )

    def start(self) -> None:
        self._scheduler.start()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)

    def next_runs(self) -> dict[str, datetime]:
        return {job.id: job.next_run_time for job in self._scheduler.get_jobs() if job.next_run_time}

    def _watch_clock(self) -> None:
        name_thread()
        offset = self._clock() - self._steady()
        while not self._stop.wait(self._look_s):
            jumped = self._clock() - self._steady() - offset
            if abs(jumped) >= _JUMP_S:
                offset += jumped
                log.warning("clock_jumped", seconds=round(jumped))
                self._start_anew()
            else:
                # What is further away than its interval: the clock was there and back between two looks.
                self._start_anew(far_away=timedelta(seconds=_JUMP_S))

    def _start_anew(self, far_away: timedelta | None = None) -> None:
        """All that runs on schedule, or what is further away than its interval by so much."""
        with self._changing:
            for name, run in self.next_runs().items():
                now, interval = datetime.now(UTC), self._intervals[name]
                if far_away is None or run - interval > now + far_away:
                    self._scheduler.modify_job(name, next_run_time=now + interval)


def _run(name: str, enqueue: Callable[[], object]) -> None:
    try:
        enqueue()
    except MemorydError as error:  # a full disk, for instance; the next run is due in a while
        log.warning("schedule_failed", name=name, code=error.code, reason=error.message)
