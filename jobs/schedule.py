"""When the daemon looks after itself. APScheduler enqueues; it does no work. The only module that imports it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import structlog

from memoryd.store.errors import MemorydError

log = structlog.get_logger()


class Schedule:
    """Named repetitions. The first run is one interval after the start: starting does what is due by itself."""

    def __init__(self) -> None:
        from apscheduler.schedulers.background import BackgroundScheduler

        self._scheduler: Any = BackgroundScheduler(
            timezone=UTC, job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )

    def every(self, minutes: float, name: str, enqueue: Callable[[], object]) -> None:
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

    def stop(self) -> None:
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)

    def next_runs(self) -> dict[str, datetime]:
        return {job.id: job.next_run_time for job in self._scheduler.get_jobs() if job.next_run_time}


def _run(name: str, enqueue: Callable[[], object]) -> None:
    try:
        enqueue()
    except MemorydError as error:  # a full disk, for instance; the next run is due in a while
        log.warning("schedule_failed", name=name, code=error.code, reason=error.message)
