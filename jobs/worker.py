"""The worker: lanes of threads that claim jobs, run them, and decide what a failure means.

Two lanes, so that words are never late because meaning is slow: *text* reads files and looks at the disk,
*vectors* embeds and is the only writer of LanceDB. An idle lane sleeps until the queue changes.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import structlog

from memoryd.jobs.interrupted import Interrupted
from memoryd.jobs.retry import backoff, unforeseen
from memoryd.store.errors import (
    FileUnreadable,
    MemorydError,
    ProviderUnavailable,
    StoreCorrupt,
    StoreFull,
    StoreUnavailable,
    VectorsAway,
    WorkspaceUnavailable,
)
from memoryd.store.job_rows import Failure, job_key
from memoryd.store.model import Job
from memoryd.store.native_thread import name_thread
from memoryd.store.protocols import Clock
from memoryd.store.queue import Queue

log = structlog.get_logger()

Facts = dict[str, Any]  # what a handler says about its work, for the log
Handler = Callable[[Sequence[Job]], Facts]


class OnJobs(Protocol):
    """Told of jobs that were done, with what the handler says about them, and of each that failed."""

    def __call__(self, kind: str, count: int, seconds: float, facts: Facts | None) -> None: ...


_KEPT_ERRORS = 20
_IDLE_SECONDS = 3600.0
_STORE_SECONDS = 30.0  # at most between two tries while the disk is full or the store away


@dataclass(frozen=True, slots=True)
class Lane:
    name: str
    handlers: dict[str, Handler]  # by kind of job
    batch: Callable[[str], int]  # how many jobs of a kind are handed over at once
    ready: Callable[[str], bool]  # whether jobs of a kind can run now
    alone: Callable[[], Container[str]] = tuple  # the workspaces whose jobs are handed over one by one all the same
    tend: Callable[[], object] = lambda: None  # what the lane looks after before each round of jobs
    begin: Callable[[], object] = lambda: None  # on its thread, before anything else
    wakes_at: Callable[[], float | None] = lambda: None  # when (unix time) jobs that cannot run now may, if it is known


@dataclass(frozen=True, slots=True)
class Mishap:
    """An error as status remembers it."""

    at: float
    job: str
    code: str
    reason: str
    hint: str | None


@dataclass(slots=True)
class Worker:
    queue: Queue
    clock: Clock
    max_attempts: int
    is_healing_due: Callable[[], bool] = lambda: False  # whether a store is damaged, and about to be put right
    mishaps: deque[Mishap] = field(default_factory=lambda: deque(maxlen=_KEPT_ERRORS))
    ledger_trouble: Mishap | None = None  # why nothing can be written down now: a full disk, for instance
    on_jobs: OnJobs | None = None
    _remembering: threading.Lock = field(default_factory=threading.Lock)  # lanes, watchers and ingest have mishaps
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _busy: dict[str, float] = field(default_factory=dict)  # thread at work -> monotonic time of its last sign of life
    _unsettled: set[str] = field(default_factory=set)  # lanes whose jobs may be called running though none is

    def recover(self) -> list[Failure]:
        """Before the start: take up what the last process left; returns what it died of too often."""
        died = self.queue.recover()
        for job in died:
            key = job_key(job.kind, job.workspace, job.path)
            self.mishaps.append(Mishap(self.clock(), key, "crashed", job.reason, job.hint))
            log.error("job_set_aside", kind=job.kind, workspace=job.workspace, path=job.path, reason=job.reason)
        return died

    def start(self, lanes: Sequence[Lane]) -> None:
        for lane in lanes:
            thread = threading.Thread(target=self._run, args=(lane,), name=f"lane-{lane.name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self, timeout: float) -> list[str]:
        """Ask the lanes to stop at their next boundary; returns those that did not within the time."""
        self._stop.set()
        self.queue.notify()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return [thread.name for thread in self._threads if thread.is_alive()]

    def stopping(self) -> bool:
        """Asked by a lane at each boundary of its work, so that asking is a sign of life."""
        name = threading.current_thread().name
        if name in self._busy:
            self._busy[name] = time.monotonic()
        return self._stop.is_set()

    def alive(self) -> bool:
        return bool(self._threads) and all(thread.is_alive() for thread in self._threads)

    def silence_s(self) -> float:
        """For how long a lane at work has reached no boundary; an idle one is not silent."""
        now = time.monotonic()
        return max((now - seen for seen in self._busy.copy().values()), default=0.0)

    # -- a lane's life ------------------------------------------------------------------------------------

    def _run(self, lane: Lane) -> None:
        name_thread()
        lane.begin()
        while True:
            seen = self.queue.changes()  # before the look at the flag: a stop in between is a change after this
            if self.stopping():
                return
            try:
                lane.tend()
                self._return_unsettled(lane)
                due = self.queue.due(tuple(lane.handlers))
                ran = [self._run_kind(lane, kind) for kind in lane.handlers if kind in due]  # in turn: none starves
                if not any(ran):
                    self.queue.wait_for_change(seen, self._idle_seconds(lane))
            except Exception as error:  # the ledger itself failed: nothing can be marked, so look again later
                self._unsettled.add(lane.name)
                known = error if isinstance(error, MemorydError) else unforeseen(error)
                self.ledger_trouble = self.remember("queue", known)
                log.warning(
                    "lane_failed",
                    lane=lane.name,
                    code=known.code,
                    reason=known.message,
                    exc_info=known.__cause__ if known.code == "internal" else None,
                )
                self.queue.wait_for_change(seen, backoff(1))

    def _run_kind(self, lane: Lane, kind: str) -> bool:
        if self.stopping() or not lane.ready(kind):
            return False
        jobs = self.queue.claim([kind], lane.batch(kind), lane.alone())
        if jobs:
            self._busy[threading.current_thread().name] = time.monotonic()
            try:
                self._run_jobs(lane, jobs)
            finally:
                del self._busy[threading.current_thread().name]
            self.ledger_trouble = None
        return bool(jobs)

    def _return_unsettled(self, lane: Lane) -> None:
        """Queue again what could not be settled, or was claimed unbeknown to us, because the ledger failed."""
        if lane.name in self._unsettled:
            self.queue.give_back_all(tuple(lane.handlers))
            self._unsettled.discard(lane.name)

    def _run_jobs(self, lane: Lane, jobs: Sequence[Job]) -> None:
        began = time.monotonic()
        kind = jobs[0].kind
        try:
            facts = lane.handlers[kind](jobs)
        except Interrupted:
            self.queue.give_back(jobs)
            return
        except Exception as error:  # noqa: BLE001 - policy lives here: whatever a job raises is settled, never lost
            known = error if isinstance(error, MemorydError) else unforeseen(error)
            if isinstance(known, StoreCorrupt) and self.is_healing_due():  # not the job's fault: it is repeated then
                self.remember(jobs[0].key, known)
                self.queue.give_back(jobs)
                return
            is_away = isinstance(known, VectorsAway) and not lane.ready(kind)
            if is_away or isinstance(known, ProviderUnavailable):  # nor this: they wait, untouched, until it is back
                self.remember(jobs[0].key, known)
                log.warning("jobs_wait", kind=kind, jobs=len(jobs), code=known.code, reason=known.message)
                self.queue.give_back(jobs)
                return
            if len(jobs) > 1 and (_is_of_one(known) or not all(self._is_retried(job, known) for job in jobs)):
                for job in jobs:  # find the one that spoils the batch before any other bears its reason, or is parked
                    self._run_jobs(lane, [job])
                return
            for job in jobs:
                self._settle_failure(job, known)
            return
        self.queue.complete(jobs)
        job = jobs[0]
        if self.on_jobs:
            self.on_jobs(job.kind, len(jobs), time.monotonic() - began, facts)
        log.info(
            "job_done",
            kind=job.kind,
            workspace=job.workspace,
            path=job.path if len(jobs) == 1 else None,
            jobs=len(jobs),
            took_ms=round((time.monotonic() - began) * 1000, 1),
            **facts,
        )

    def _settle_failure(self, job: Job, error: MemorydError) -> None:
        """A passing fault is tried again, later each time; a lasting one is parked with its reason."""
        self.remember(job.key, error)
        if self.on_jobs:
            self.on_jobs(job.kind, 1, 0.0, None)
        retried = self._is_retried(job, error)
        if retried:
            run_after = self.clock() + backoff(job.attempts + 1, most=_STORE_SECONDS if _is_ours(error) else None)
            self.queue.retry(job, run_after=run_after, reason=error.message, hint=error.hint)
        else:
            self.queue.park(job, reason=error.message, hint=error.hint)
        log.warning(
            "job_failed",
            kind=job.kind,
            workspace=job.workspace,
            path=job.path,
            code=error.code,
            reason=error.message,
            attempts=job.attempts + 1,
            parked=not retried,
            exc_info=error.__cause__ if error.code == "internal" else None,
        )

    def _is_retried(self, job: Job, error: MemorydError) -> bool:
        return error.retryable and (_is_ours(error) or job.attempts + 1 < self.max_attempts)

    def remember(self, job: str, error: MemorydError) -> Mishap:
        """Keep an error for status."""
        mishap = Mishap(self.clock(), job, error.code, error.message, error.hint)
        with self._remembering:
            if self.mishaps and replace(self.mishaps[-1], at=mishap.at) == mishap:
                self.mishaps.pop()  # the same again: one line, with the time of the last
            self.mishaps.append(mishap)
        return mishap

    def _idle_seconds(self, lane: Lane) -> float:
        kinds = [kind for kind in lane.handlers if lane.ready(kind)]
        due = [self.queue.next_due(kinds) if kinds else None, lane.wakes_at()]
        return min((max(0.0, at - self.clock()) for at in due if at is not None), default=_IDLE_SECONDS)


def _is_of_one(error: MemorydError) -> bool:
    """One file's trouble, or one workspace's, of which the others of a batch know nothing."""
    return isinstance(error, FileUnreadable | WorkspaceUnavailable)


def _is_ours(error: MemorydError) -> bool:
    """Our own store failed, not the job: it is not the job that runs out of tries."""
    return isinstance(error, StoreCorrupt | StoreFull | StoreUnavailable)
