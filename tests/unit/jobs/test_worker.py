"""What the worker makes of success, failure and the order to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from memoryd.jobs.interrupted import Interrupted
from memoryd.jobs.worker import Facts, Handler, Lane, Worker
from memoryd.store.database import Database
from memoryd.store.errors import (
    EmbedderUnavailable,
    FileUnreadable,
    MemorydError,
    ModelCorrupt,
    StoreFull,
    WorkspaceUnavailable,
)
from memoryd.store.failpoints import arm
from memoryd.store.model import Job
from memoryd.store.queue import Queue
from tests.support.waiting import eventually

MAX_ATTEMPTS = 3


class Clock:
    """Time that goes on when it is told to, and is waited for by lanes that look at the queue."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """A queue, a worker and a handler that does what the test says."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = Clock()
        self.queue = Queue(database, self.clock)
        self.worker = Worker(self.queue, self.clock, MAX_ATTEMPTS)
        self.runs: list[list[str]] = []  # the paths of each batch, as handed over
        self.ready = True

    def start(self, handler: Handler, batch: int = 1) -> None:
        def record(jobs: Sequence[Job]) -> Facts:
            self.runs.append([job.path for job in jobs])
            return handler(jobs)

        self.worker.start([Lane("test", {"embed": record}, lambda _kind: batch, lambda _kind: self.ready)])

    def enqueue(self, *paths: str) -> None:
        self.queue.enqueue_all(("embed", "notes", path) for path in paths)

    def advance(self, seconds: float) -> None:
        self.clock.now += seconds
        self.queue.notify()

    def depth(self, state: str) -> int:
        return self.queue.depths().get(("embed", state), 0)

    def wait_for_runs(self, count: int) -> None:
        """Until so many batches were handed over and settled."""
        eventually(lambda: len(self.runs) == count and self.depth("running") == 0)

    def next_retry(self) -> float:
        """How long from now the one waiting job waits."""
        (failure,) = self.queue.failures()
        assert failure.next_retry is not None
        return failure.next_retry - self.clock.now


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    database = Database(tmp_path / "ledger.db")
    bench = Bench(database)
    try:
        yield bench
    finally:
        assert bench.worker.stop(10) == []
        database.close()


def succeed(_jobs: Sequence[Job]) -> Facts:
    return {}


def fail(error: Exception) -> Handler:
    def handler(_jobs: Sequence[Job]) -> Facts:
        raise error

    return handler


def test_job_that_succeeds_is_gone(bench: Bench) -> None:
    bench.start(succeed)
    bench.enqueue("a.md")
    eventually(lambda: bench.runs == [["a.md"]] and bench.queue.depths() == {})
    assert not bench.worker.mishaps


def test_passing_fault_is_tried_again_later_each_time_and_then_parked(bench: Bench) -> None:
    bench.start(fail(EmbedderUnavailable("busy", hint="wait")))
    bench.enqueue("a.md")
    waits = []
    for attempt in range(1, MAX_ATTEMPTS):
        bench.wait_for_runs(attempt)
        waits.append(bench.next_retry())
        bench.advance(waits[-1])
    eventually(lambda: bench.depth("parked") == 1)
    assert waits == [2.0, 4.0]
    assert len(bench.runs) == MAX_ATTEMPTS
    (failure,) = bench.queue.failures()
    assert (failure.path, failure.reason, failure.hint, failure.attempts) == ("a.md", "busy", "wait", MAX_ATTEMPTS)
    assert failure.parked
    assert failure.next_retry is None


def test_waiting_job_is_not_run_before_its_time(bench: Bench) -> None:
    bench.start(fail(EmbedderUnavailable("busy")))
    bench.enqueue("a.md")
    bench.wait_for_runs(1)
    bench.advance(1.9)
    bench.enqueue("b.md")  # run at once, which shows that the lane looked
    bench.wait_for_runs(2)
    assert bench.runs == [["a.md"], ["b.md"]]


def test_lasting_fault_is_parked_at_once(bench: Bench) -> None:
    bench.start(fail(ModelCorrupt("broken", hint="reinstall")))
    bench.enqueue("a.md")
    eventually(lambda: bench.depth("parked") == 1)
    assert len(bench.runs) == 1


def test_full_disk_is_nobodys_fault_and_never_parks_a_job(bench: Bench) -> None:
    bench.start(fail(StoreFull()))
    bench.enqueue("a.md")
    for attempt in range(1, MAX_ATTEMPTS * 3):
        bench.wait_for_runs(attempt)
        assert bench.depth("parked") == 0
        assert bench.next_retry() <= 30
        bench.advance(bench.next_retry())


def test_exception_that_is_not_ours_is_parked_and_remembered(bench: Bench) -> None:
    bench.start(fail(ZeroDivisionError("what")))
    bench.enqueue("a.md")
    eventually(lambda: bench.depth("parked") == 1)
    (mishap,) = bench.worker.mishaps
    assert mishap.job == "embed:notes:a.md"
    assert mishap.code == "internal"
    assert "ZeroDivisionError" in mishap.reason
    assert bench.worker.alive()


def test_the_same_mishap_again_is_one_mishap(bench: Bench) -> None:
    bench.start(fail(EmbedderUnavailable("busy")))
    bench.enqueue("a.md")
    bench.wait_for_runs(1)
    bench.advance(2.0)
    bench.wait_for_runs(2)
    (mishap,) = bench.worker.mishaps
    assert mishap.at == bench.clock.now


def test_spoilt_batch_is_taken_apart(bench: Bench) -> None:
    def handler(jobs: Sequence[Job]) -> Facts:
        if any(job.path == "bad.md" for job in jobs):
            raise ValueError
        return {}

    bench.enqueue("a.md", "bad.md", "c.md")
    bench.start(handler, batch=10)
    eventually(lambda: bench.depth("parked") == 1 and bench.depth("running") == 0)
    assert bench.runs == [["a.md", "bad.md", "c.md"], ["a.md"], ["bad.md"], ["c.md"]]
    assert [failure.path for failure in bench.queue.failures()] == ["bad.md"]
    assert bench.queue.depths() == {("embed", "parked"): 1}


@pytest.mark.parametrize("error", [FileUnreadable, WorkspaceUnavailable])
def test_trouble_of_one_file_is_not_told_of_the_others_in_its_batch(bench: Bench, error: type[MemorydError]) -> None:
    def handler(jobs: Sequence[Job]) -> Facts:
        if any(job.path == "bad.md" for job in jobs):
            raise error("no")
        return {}

    bench.enqueue("a.md", "bad.md", "c.md")
    bench.start(handler, batch=10)
    bench.wait_for_runs(4)
    eventually(lambda: bench.queue.depths() == {("embed", "queued"): 1})
    assert bench.runs == [["a.md", "bad.md", "c.md"], ["a.md"], ["bad.md"], ["c.md"]]
    assert [(failure.path, failure.parked) for failure in bench.queue.failures()] == [("bad.md", False)]


def test_batch_that_keeps_failing_is_taken_apart_before_it_is_parked(bench: Bench) -> None:
    def handler(jobs: Sequence[Job]) -> Facts:
        if any(job.path == "bad.md" for job in jobs):
            raise EmbedderUnavailable("choked")
        return {}

    bench.enqueue("a.md", "bad.md", "c.md")
    bench.start(handler, batch=10)
    for attempt in range(1, MAX_ATTEMPTS):
        bench.wait_for_runs(attempt)
        assert bench.depth("queued") == 3
        bench.advance(100)
    eventually(lambda: bench.queue.depths() == {("embed", "parked"): 1})
    assert [failure.path for failure in bench.queue.failures()] == ["bad.md"]


def test_job_asked_for_while_it_runs_runs_again(bench: Bench) -> None:
    running, go_on = threading.Event(), threading.Event()

    def handler(_jobs: Sequence[Job]) -> Facts:
        running.set()
        assert go_on.wait(10)
        return {}

    bench.start(handler)
    bench.enqueue("a.md")
    assert running.wait(10)
    bench.enqueue("a.md")
    bench.enqueue("a.md")
    go_on.set()
    eventually(lambda: bench.queue.depths() == {})
    assert bench.runs == [["a.md"], ["a.md"]]


def test_job_asked_for_while_it_fails_runs_again_at_once(bench: Bench) -> None:
    def handler(_jobs: Sequence[Job]) -> Facts:
        if len(bench.runs) == 1:
            bench.enqueue("a.md")
            raise EmbedderUnavailable
        return {}

    bench.start(handler)
    bench.enqueue("a.md")
    eventually(lambda: bench.queue.depths() == {})
    assert bench.runs == [["a.md"], ["a.md"]]


def test_interrupted_jobs_go_back_untouched(bench: Bench) -> None:
    running = threading.Event()

    def handler(_jobs: Sequence[Job]) -> Facts:
        running.set()
        eventually(bench.worker.stopping)
        raise Interrupted

    bench.enqueue("a.md", "b.md")
    bench.start(handler, batch=10)
    assert running.wait(10)
    assert bench.worker.stop(10) == []
    assert bench.queue.depths() == {("embed", "queued"): 2}
    assert bench.queue.failures() == []


def test_lane_that_does_not_come_to_an_end_is_named(bench: Bench) -> None:
    running, go_on = threading.Event(), threading.Event()

    def handler(_jobs: Sequence[Job]) -> Facts:
        running.set()
        assert go_on.wait(10)
        return {}

    bench.start(handler)
    bench.enqueue("a.md")
    assert running.wait(10)
    assert bench.worker.stop(0.01) == ["lane-test"]
    go_on.set()


def test_idle_worker_stops_at_once_however_often_it_is_tried(tmp_path: Path) -> None:
    database = Database(tmp_path / "ledger.db")
    for _ in range(50):  # the order to stop may arrive at any moment of a lane's round
        bench = Bench(database)
        bench.start(succeed)
        assert bench.worker.stop(10) == []
    database.close()


def test_jobs_that_ran_when_the_process_died_run_again(bench: Bench) -> None:
    bench.enqueue("a.md")
    bench.queue.claim(["embed"])
    assert bench.worker.recover() == []
    bench.start(succeed)
    eventually(lambda: bench.queue.depths() == {})
    assert bench.runs == [["a.md"]]


def test_lane_that_is_not_ready_leaves_its_jobs(bench: Bench) -> None:
    bench.ready = False
    bench.enqueue("a.md")
    bench.start(succeed)
    bench.queue.notify()
    assert bench.depth("queued") == 1
    bench.ready = True
    bench.queue.notify()
    eventually(lambda: bench.queue.depths() == {})


def full_disk(database: Database) -> Callable[[], None]:
    """Let no page be added to the ledger, as on a full disk; returns the way back."""
    with database.write() as sql:
        sql.execute("CREATE TABLE ballast (data)")
    with database._lock:
        sql = database._writer
        pages = sql.execute("PRAGMA page_count").fetchone()[0]
        sql.execute(f"PRAGMA max_page_count = {pages}")

    def free() -> None:
        with database._lock:
            sql.execute("PRAGMA max_page_count = 1073741823")

    return free


def test_job_that_cannot_be_settled_because_the_ledger_failed_is_not_stuck(bench: Bench) -> None:
    """SQLite's own limit of pages gives the real SQLITE_FULL at the moment a job is to be marked as failed."""
    long = "x" * 50_000  # more than the free pages of the ledger hold
    failed = threading.Event()

    def handler(_jobs: Sequence[Job]) -> Facts:
        if not failed.is_set():
            failed.set()
            raise ModelCorrupt(long)
        return {}

    bench.enqueue("a.md")
    free = full_disk(bench.database)
    bench.start(handler)
    eventually(lambda: any(mishap.code == "store_full" for mishap in bench.worker.mishaps))
    assert bench.depth("running") == 1
    free()
    eventually(lambda: bench.queue.depths() == {})
    assert len(bench.runs) == 2
    assert bench.worker.alive()


def test_job_that_was_claimed_though_the_ledger_failed_is_not_stuck(bench: Bench) -> None:
    """The claim is written, and an error hides it from the lane."""
    arm("queue.claim.after=error@1-1")
    try:
        bench.enqueue("a.md")
        bench.start(succeed)
        eventually(lambda: bench.queue.depths() == {}, what="it was given back and run")
    finally:
        arm("")
    assert bench.runs == [["a.md"]]
