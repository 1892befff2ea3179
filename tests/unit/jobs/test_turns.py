from __future__ import annotations

import threading

from memoryd.jobs.turns import Turns
from memoryd.store.interruption import Interruption
from tests.support.waiting import eventually


def test_who_did_not_get_the_turn_does_not_end_that_of_another() -> None:
    """Two at once in one model of llama.cpp would be the end of the process."""
    turns = Turns()
    asked = threading.Event()

    def ask() -> None:
        with turns.query():
            asked.set()

    asking = threading.Thread(target=ask)
    with turns.indexing():
        with turns.last(timeout=0.01) as free:
            assert not free
        asking.start()
        eventually(lambda: turns.waiting() == 1 or asked.is_set(), what="the query has come")
        assert not asked.wait(0.1)
    asking.join(60)
    assert asked.is_set()


def test_a_query_asks_who_is_indexing_to_let_go() -> None:
    turns, interruption = Turns(), Interruption()
    with turns.indexing(interruption=interruption):
        assert not interruption.is_wished()
        with turns.last(timeout=0.01):
            assert interruption.is_wished()


def test_what_is_over_is_not_interrupted() -> None:
    turns, interruption = Turns(), Interruption()
    with turns.indexing(interruption=interruption):
        pass
    with turns.query():
        assert not interruption.is_wished()
