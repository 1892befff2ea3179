from __future__ import annotations

import os
import threading
from contextvars import ContextVar

import pytest

from memoryd.store.companions import Companions, _current_core, send_away

ASKED_BY: ContextVar[str] = ContextVar("ASKED_BY", default="nobody")


def test_companion_is_another_thread_in_the_same_context() -> None:
    ASKED_BY.set("me")
    with Companions("beside").beside(lambda: (threading.get_ident(), ASKED_BY.get())) as coming:
        thread, asked_by = coming.result()
    assert thread != threading.get_ident()
    assert asked_by == "me"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is no other core")
def test_companion_is_on_another_core_than_who_asks() -> None:
    companions, every_core = Companions("beside"), os.sched_getaffinity(0)
    shared = 0
    for _ in range(20):
        before = _current_core()
        with companions.beside(lambda: os.sched_getaffinity(0)) as coming:
            allowed = coming.result()
        assert len(allowed) == len(every_core) - 1
        shared += before in allowed
    assert shared <= 5  # who asks may be moved to another core before it asks


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is no other core")
def test_where_one_core_is_allowed_both_stay_on_it() -> None:
    every_core = os.sched_getaffinity(0)
    only = {min(every_core)}
    os.sched_setaffinity(0, only)
    try:
        with Companions("beside").beside(lambda: os.sched_getaffinity(0)) as coming:
            assert coming.result() == only
    finally:
        os.sched_setaffinity(0, every_core)


def test_where_it_is_forbidden_the_work_is_done_all_the_same_and_it_is_not_tried_again() -> None:
    tried = []

    def forbidden(thread: int) -> None:
        tried.append(thread)
        raise PermissionError(1, "Operation not permitted")

    companions = Companions("beside", forbidden)
    for _ in range(2):
        with companions.beside(lambda: "done") as coming:
            assert coming.result() == "done"
    assert len(tried) == 1


def test_companion_is_asked_again_and_another_one_only_while_it_is_busy() -> None:
    companions = Companions("beside")
    with companions.beside(threading.get_ident) as one, companions.beside(threading.get_ident) as other:
        assert one.result() != other.result()
    with companions.beside(threading.get_ident) as again:
        assert again.result() in (one.result(), other.result())


def test_work_has_ended_when_the_block_ends_whatever_ends_it() -> None:
    """What it reads with is lent to it."""
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(30)
        ended.set()

    def ask() -> None:
        with Companions("beside").beside(work):
            assert begun.wait(30)
            threading.Timer(0.05, go_on.set).start()
            raise ValueError("embedding")

    with pytest.raises(ValueError, match="embedding"):
        ask()
    assert ended.is_set()


def test_what_becomes_of_the_work_is_for_who_asks_for_it() -> None:
    def fail() -> None:
        raise ValueError("not there")

    with Companions("beside").beside(fail) as coming:
        pass
    with pytest.raises(ValueError, match="not there"):
        coming.result()


def test_thread_that_is_gone_cannot_be_sent_away() -> None:
    """So a mistake in whom to send is seen, and not what sandboxes do."""
    if len(os.sched_getaffinity(0)) > 1:
        with pytest.raises(ProcessLookupError):
            send_away(2**22 - 1)
