from __future__ import annotations

import threading
from pathlib import Path

import pytest

from memoryd.store.job_rows import LONGEST_WAIT_S, MOST_CRASHES, job_key
from memoryd.store.model import Job
from memoryd.store.queue import Queue
from tests.support.clock import SetClock
from tests.support.ledger import Ledger, open_ledger


@pytest.fixture
def queue(ledger: Ledger) -> Queue:
    return ledger.queue


@pytest.fixture
def clock(ledger: Ledger) -> SetClock:
    return ledger.clock


def claim_one(queue: Queue, kind: str = "index") -> Job:
    (job,) = queue.claim([kind])
    return job


def paths(jobs: list[Job]) -> list[str]:
    return [job.path for job in jobs]


def test_jobs_of_workspaces_that_come_alone_come_alone_and_in_their_turn(queue: Queue, clock: SetClock) -> None:
    for number, workspace in enumerate(("notes", "sessions", "notes", "notes", "sessions", "sessions")):
        clock.now += 1
        queue.enqueue("index", workspace, f"{number}.md")
    taken = []
    while jobs := queue.claim(["index"], limit=10, alone={"sessions"}):
        taken.append([job.path for job in jobs])
    assert taken == [["0.md"], ["1.md"], ["2.md", "3.md"], ["4.md"], ["5.md"]]


def test_key_names_what_a_job_is_about() -> None:
    assert job_key("index", "home", "memory/a.md") == "index:home:memory/a.md"
    assert job_key("reconcile", "home") == "reconcile:home"
    assert job_key("maintain") == "maintain"


# -- asking ---------------------------------------------------------------------------------------------------


def test_asking_twice_is_asking_once(queue: Queue) -> None:
    queue.enqueue("index", "home", "a.md")
    queue.enqueue("index", "home", "a.md")
    assert paths(queue.claim(["index"], limit=10)) == ["a.md"]
    assert queue.claim(["index"], limit=10) == []


def test_job_says_when_it_was_first_asked_for(queue: Queue, clock: SetClock) -> None:
    asked = clock()
    queue.enqueue("index", "home", "a.md")
    clock.move(60)
    queue.enqueue("index", "home", "a.md")
    assert claim_one(queue).enqueued_at == asked


def test_asking_again_does_not_lose_the_place_in_the_queue(queue: Queue, clock: SetClock) -> None:
    queue.enqueue("index", "home", "busy.md")
    clock.move(1)
    queue.enqueue("index", "home", "other.md")
    clock.move(1)
    queue.enqueue("index", "home", "busy.md")
    assert claim_one(queue).path == "busy.md"


def test_oldest_is_claimed_first(queue: Queue, clock: SetClock) -> None:
    for path in ("c.md", "a.md", "b.md"):
        queue.enqueue("index", "home", path)
        clock.move(1)
    assert paths(queue.claim(["index"], limit=2)) == ["c.md", "a.md"]


def test_only_the_kinds_asked_for_are_claimed(queue: Queue) -> None:
    queue.enqueue("embed", "home", "a.md")
    queue.enqueue("index", "home", "a.md")
    assert [job.kind for job in queue.claim(["index", "reconcile"], limit=10)] == ["index"]
    assert queue.claim([], limit=10) == []


def test_claimed_job_is_not_claimed_again(queue: Queue) -> None:
    queue.enqueue("index", "home", "a.md")
    claim_one(queue)
    assert queue.claim(["index"]) == []


# -- ending ---------------------------------------------------------------------------------------------------


def test_completed_job_is_gone(queue: Queue) -> None:
    queue.enqueue("index", "home", "a.md")
    queue.complete([claim_one(queue)])
    assert queue.depths() == {}
    assert queue.oldest() is None


def test_job_asked_for_while_it_runs_runs_once_more(queue: Queue) -> None:
    queue.enqueue("index", "home", "a.md")
    job = claim_one(queue)
    queue.enqueue("index", "home", "a.md")
    queue.enqueue("index", "home", "a.md")
    assert queue.claim(["index"]) == []  # never twice at the same time
    queue.complete([job])
    queue.complete([claim_one(queue)])
    assert queue.depths() == {}


def test_job_that_is_always_asked_for_again_leaves_the_others_their_turn(queue: Queue, clock: SetClock) -> None:
    queue.enqueue("index", "home", "stream.md")
    clock.move(1)
    queue.enqueue("index", "home", "other.md")
    job = claim_one(queue)
    clock.move(1)
    queue.enqueue("index", "home", "stream.md")
    queue.complete([job])
    assert claim_one(queue).path == "other.md"


def test_repeated_job_is_a_new_request(queue: Queue, clock: SetClock) -> None:
    queue.enqueue("index", "home", "a.md")
    queue.retry(claim_one(queue), run_after=clock(), reason="busy", hint=None)
    job = claim_one(queue)
    clock.move(30)
    queue.enqueue("index", "home", "a.md")
    queue.complete([job])
    again = claim_one(queue)
    assert (again.attempts, again.enqueued_at) == (0, clock())
    assert queue.failures() == []


def test_given_back_job_is_as_it_was(queue: Queue, clock: SetClock) -> None:
    queue.enqueue("index", "home", "a.md")
    queue.retry(claim_one(queue), run_after=clock(), reason="busy", hint=None)
    job = claim_one(queue)
    queue.give_back([job])
    assert claim_one(queue) == job


# -- failing --------------------------------------------------------------------------------------------------


def test_failed_job_waits_for_its_time(queue: Queue, clock: SetClock) -> None:
    queue.enqueue("index", "home", "a.md")
    queue.retry(claim_one(queue), run_after=clock() + 10, reason="disk asleep", hint="wake it")
    assert queue.claim(["index"]) == []
    assert queue.next_due(["index"]) == clock() + 10
    clock.move(10)
    assert claim_one(queue).attempts == 1


def test_retries_come_in_the_order_of_their_times(queue: Queue, clock: SetClock) -> None:
    queue.enqueue_all([("index", "home", "slow.md"), ("index", "home", "soon.md")])
    slow, soon = sorted(queue.claim(["index"], limit=2), key=lambda job: job.path)
    queue.retry(slow, run_after=clock() + 20, reason="busy", hint=None)
    queue.retry(soon, run_after=clock() + 10, reason="busy", hint=None)
    queue.enqueue("index", "home", "new.md")
    clock.move(30)
    assert paths(queue.claim(["index"], limit=3)) == ["new.md", "soon.md", "slow.md"]


def test_asking_for_a_job_in_backoff_runs_it_at_once_with_a_fresh_budget(queue: Queue, clock: SetClock) -> None:
    queue.enqueue("index", "home", "a.md")
    queue.retry(claim_one(queue), run_after=clock() + 1000, reason="busy", hint=None)
    queue.enqueue("index", "home", "a.md")
    assert claim_one(queue).attempts == 0


@pytest.mark.parametrize("end", ["retry", "park"])
def test_request_that_came_while_a_job_failed_is_served_at_once(queue: Queue, clock: SetClock, end: str) -> None:
    queue.enqueue("index", "home", "a.md")
    job = claim_one(queue)
    queue.enqueue("index", "home", "a.md")
    if end == "retry":
        queue.retry(job, run_after=clock() + 1000, reason="busy", hint=None)
    else:
        queue.park(job, reason="broken", hint=None)
    assert queue.failures() == []
    assert claim_one(queue).attempts == 0


def test_parked_job_is_not_claimed_until_it_is_asked_for(queue: Queue, clock: SetClock) -> None:
    queue.enqueue("index", "home", "a.md")
    queue.park(claim_one(queue), reason="not text", hint=None)
    clock.move(1e6)
    assert queue.claim(["index"]) == []
    assert queue.next_due(["index"]) is None
    assert queue.oldest() is None
    queue.enqueue("index", "home", "a.md")
    assert queue.oldest() == clock()  # the time that it was set aside was no waiting
    assert claim_one(queue).attempts == 0


def test_parked_jobs_are_requeued_by_kind(queue: Queue) -> None:
    queue.enqueue_all([("index", "home", "a.md"), ("embed", "home", "a.md")])
    for kind in ("index", "embed"):
        queue.park(claim_one(queue, kind), reason="broken", hint=None)
    assert queue.requeue_parked(["embed"]) == 1
    assert queue.claim(["index"]) == []
    assert claim_one(queue, "embed").attempts == 0
    assert queue.requeue_parked() == 1
    assert claim_one(queue, "index").path == "a.md"


def test_failures_name_what_failed_why_and_when_it_is_tried_again(queue: Queue, clock: SetClock) -> None:
    queue.enqueue_all([("index", "home", "a.md"), ("index", "home", "b.md"), ("index", "home", "fine.md")])
    first, second, _ = queue.claim(["index"], limit=3)
    queue.retry(first, run_after=clock() + 5, reason="disk asleep", hint="wake it")
    queue.park(second, reason="not text", hint=None)
    retried, parked = queue.failures()
    assert (retried.path, retried.reason, retried.hint, retried.attempts) == ("a.md", "disk asleep", "wake it", 1)
    assert (retried.parked, retried.next_retry) == (False, clock() + 5)
    assert (parked.path, parked.reason, parked.parked, parked.next_retry) == ("b.md", "not text", True, None)


def test_success_after_a_failure_leaves_no_failure(queue: Queue, clock: SetClock) -> None:
    queue.enqueue("index", "home", "a.md")
    queue.retry(claim_one(queue), run_after=clock(), reason="busy", hint=None)
    queue.complete([claim_one(queue)])
    assert queue.failures() == []


def test_attempts_add_up(queue: Queue, clock: SetClock) -> None:
    queue.enqueue("index", "home", "a.md")
    for attempt in range(3):
        job = claim_one(queue)
        assert job.attempts == attempt
        queue.retry(job, run_after=clock(), reason="busy", hint=None)


# -- outliving the process ------------------------------------------------------------------------------------


def test_what_ran_when_the_process_died_runs_again(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "ledger.db") as dying:
        dying.queue.enqueue_all([("index", "home", "a.md"), ("index", "home", "b.md"), ("index", "home", "c.md")])
        first, second, third = dying.queue.claim(["index"], limit=3)
        dying.queue.complete([first])
        dying.queue.park(third, reason="broken", hint=None)
        dying.queue.enqueue("index", "home", "b.md")
    with open_ledger(tmp_path / "ledger.db") as reborn:
        assert reborn.queue.claim(["index"]) == []
        assert reborn.queue.recover() == []
        again = claim_one(reborn.queue)
        assert again == second
        reborn.queue.complete([again])
        assert reborn.queue.depths() == {("index", "parked"): 1}


def test_jobs_of_workspaces_no_longer_served_are_dropped_but_for_clearing_vectors(queue: Queue) -> None:
    queue.enqueue_all(
        [
            ("index", "old", "a.md"),
            ("embed", "old", "a.md"),
            ("reconcile", "old", ""),
            ("index", "home", "a.md"),
            ("maintain", "", ""),
        ]
    )
    queue.forget_unserved({"home"})
    assert queue.depths() == {("embed", "queued"): 1, ("index", "queued"): 1, ("maintain", "queued"): 1}


# -- looking --------------------------------------------------------------------------------------------------


def test_next_due_is_the_earliest_of_the_kinds(queue: Queue, clock: SetClock) -> None:
    assert queue.next_due(["index", "embed"]) is None
    queue.enqueue("embed", "home", "a.md")
    queue.retry(claim_one(queue, "embed"), run_after=clock() + 30, reason="busy", hint=None)
    assert queue.next_due(["index"]) is None
    assert queue.next_due(["index", "embed"]) == clock() + 30
    queue.enqueue("index", "home", "a.md")
    assert queue.next_due(["index", "embed"]) == clock()
    assert queue.next_due([]) is None


def test_depths_count_by_kind_and_state(queue: Queue) -> None:
    queue.enqueue_all([("index", "home", path) for path in ("a.md", "b.md", "c.md")])
    queue.claim(["index"], limit=1)
    assert queue.depths() == {("index", "queued"): 2, ("index", "running"): 1}


# -- waiting --------------------------------------------------------------------------------------------------


def test_waiting_ends_when_something_changes(queue: Queue) -> None:
    seen = queue.changes()
    woken: list[int] = []
    waiter = threading.Thread(target=lambda: woken.append(queue.wait_for_change(seen, 30)))
    waiter.start()
    queue.enqueue("index", "home", "a.md")
    waiter.join(30)
    assert woken
    assert woken[0] > seen


def test_change_before_the_wait_is_not_missed(queue: Queue) -> None:
    seen = queue.changes()
    queue.enqueue("index", "home", "a.md")
    assert queue.wait_for_change(seen, timeout=None) == seen + 1


def test_waiting_ends_at_the_timeout(queue: Queue) -> None:
    seen = queue.changes()
    assert queue.wait_for_change(seen, timeout=0.001) == seen
    assert not queue.wait_until(lambda: False, timeout=0.001)


def test_condition_that_holds_is_not_waited_for(queue: Queue) -> None:
    assert queue.wait_until(lambda: True, timeout=0)


def test_condition_is_looked_at_after_every_change(queue: Queue) -> None:
    queue.enqueue_all([("index", "home", path) for path in ("a.md", "b.md", "c.md")])

    def work() -> None:
        while jobs := queue.claim(["index"]):
            queue.complete(jobs)

    worker = threading.Thread(target=work)
    worker.start()
    assert queue.wait_until(lambda: queue.depths() == {}, timeout=30)
    worker.join(30)


def test_two_claimers_never_get_the_same_job(queue: Queue) -> None:
    queue.enqueue_all([("index", "home", f"{number}.md") for number in range(60)])
    claimed: list[str] = []

    def work() -> None:
        while jobs := queue.claim(["index"], limit=2):
            claimed.extend(paths(jobs))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(claimed) == sorted(f"{number}.md" for number in range(60))


def test_what_failed_or_is_parked_is_not_waited_for(ledger: Ledger) -> None:
    queue = ledger.queue
    for kind in ("index", "embed", "maintain"):
        queue.enqueue(kind, "home", "memory/a.md")
    assert queue.waiting_kinds() == {"index", "embed", "maintain"}
    (failed,) = queue.claim(["index"])
    queue.retry(failed, run_after=ledger.clock() + 60, reason="no", hint=None)
    (parked,) = queue.claim(["embed"])
    queue.park(parked, reason="never", hint=None)
    assert queue.waiting_kinds() == {"maintain"}


# -- a clock that jumps ---------------------------------------------------------------------------------------

DAY = 86_400.0


@pytest.mark.parametrize("seconds", [-DAY, -LONGEST_WAIT_S / 2, DAY])
def test_queued_job_is_due_whatever_the_clock_does(queue: Queue, clock: SetClock, seconds: float) -> None:
    queue.enqueue("index", "home", "a.md")
    clock.move(seconds)
    assert queue.next_due(["index"]) == clock()
    assert claim_one(queue).path == "a.md"


@pytest.mark.parametrize("seconds", [-DAY, DAY])
def test_job_in_backoff_does_not_wait_for_a_clock_that_jumped(queue: Queue, clock: SetClock, seconds: float) -> None:
    queue.enqueue("index", "home", "a.md")
    queue.retry(claim_one(queue), run_after=clock() + LONGEST_WAIT_S, reason="busy", hint=None)
    assert queue.claim(["index"]) == []
    clock.move(seconds)
    assert queue.next_due(["index"]) == clock()
    assert claim_one(queue).attempts == 1


# -- a job that the process dies of ---------------------------------------------------------------------------


def die_with(queue: Queue, limit: int = 1) -> list[str]:
    """Take the next jobs, die, and start again; returns what was in hand."""
    taken = paths(queue.claim(["index"], limit=limit))
    queue.recover()
    return taken


def test_job_that_the_process_died_of_comes_alone_and_last(queue: Queue) -> None:
    queue.enqueue_all([("index", "home", path) for path in ("a.md", "b.md")])
    assert die_with(queue, limit=2) == ["a.md", "b.md"]
    queue.enqueue("index", "home", "c.md")
    assert paths(queue.claim(["index"], limit=10)) == ["c.md"]
    assert paths(queue.claim(["index"], limit=10)) == ["a.md"]
    assert paths(queue.claim(["index"], limit=10)) == ["b.md"]


def test_job_that_the_process_dies_of_again_and_again_is_set_aside(queue: Queue) -> None:
    queue.enqueue("index", "home", "a.md")
    for _ in range(MOST_CRASHES - 1):
        assert die_with(queue) == ["a.md"]
        assert queue.failures() == []
    claim_one(queue)
    (died,) = queue.recover()
    assert (died.path, died.parked) == ("a.md", True)
    assert "died 5 times" in died.reason
    assert died.hint
    assert queue.failures() == queue.crashed("index") == [died]
    assert queue.claim(["index"]) == []


def test_job_set_aside_is_tried_once_more_when_something_changed(queue: Queue) -> None:
    queue.enqueue("index", "home", "a.md")
    for _ in range(MOST_CRASHES):
        die_with(queue)
    queue.enqueue("index", "home", "a.md", afresh=False)
    assert queue.requeue_parked() == 0
    assert queue.claim(["index"]) == []
    queue.enqueue("index", "home", "a.md")
    assert die_with(queue) == ["a.md"]
    assert queue.claim(["index"]) == []
    assert queue.requeue_parked(crashed=True) == 1
    queue.complete([claim_one(queue)])
    assert queue.depths() == {}


def test_crashes_are_forgotten_with_the_first_success(queue: Queue) -> None:
    for _ in range(3):
        queue.enqueue("index", "home", "a.md")
        for _ in range(MOST_CRASHES - 1):
            assert die_with(queue) == ["a.md"]
        job = claim_one(queue)
        queue.enqueue("index", "home", "a.md")  # asked for while it runs: a new request
        queue.complete([job])
        for _ in range(MOST_CRASHES - 1):
            assert die_with(queue) == ["a.md"]
        queue.complete([claim_one(queue)])
    assert queue.depths() == {}
