"""A model that sleeps while nobody needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from memoryd.jobs.embedders.sleeper import Sleeper
from memoryd.store.errors import EmbedderUnavailable, MemorydError, ModelMissing
from tests.support.clock import SetClock
from tests.support.fake_embedder import FakeEmbedder
from tests.support.waiting import eventually


class Shelf:
    """Where models are loaded from; each load can be held up, or fail."""

    def __init__(self) -> None:
        self.loaded: list[FakeEmbedder] = []
        self.open = threading.Event()
        self.open.set()
        self.make: Callable[[], FakeEmbedder] = FakeEmbedder

    def load(self) -> FakeEmbedder:
        assert self.open.wait(60)
        self.loaded.append(self.make())
        return self.loaded[-1]


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def test_model_that_sleeps_is_closed_and_keeps_its_name(shelf: Shelf) -> None:
    sleeper = Sleeper(shelf.load, SetClock(1234.0))
    identity = sleeper.identity
    assert sleeper.nap() is None
    assert sleeper.sleep(0)
    nap = sleeper.nap()
    assert shelf.loaded[0].closed
    assert nap is not None
    assert nap.since == 1234.0
    assert (sleeper.identity, sleeper.idle_s()) == (identity, None)
    assert not sleeper.sleep(0)


def test_model_that_was_just_needed_stays(shelf: Shelf) -> None:
    sleeper = Sleeper(shelf.load)
    sleeper.embed_query("tea")
    assert not sleeper.sleep(3600)
    assert not shelf.loaded[0].closed


def test_whoever_needs_it_gets_the_same_vectors_from_it(shelf: Shelf) -> None:
    sleeper = Sleeper(shelf.load)
    before = sleeper.embed_documents(["tea", "coffee"])
    woken: list[bool] = []
    sleeper.on_woken = lambda: woken.append(sleeper.nap() is None)
    sleeper.sleep(0)
    assert np.array_equal(sleeper.embed_documents(["tea", "coffee"]), before)
    assert (len(shelf.loaded), woken) == (2, [True])


def test_many_who_need_it_load_it_once(shelf: Shelf) -> None:
    sleeper = Sleeper(shelf.load)
    sleeper.sleep(0)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: sleeper.wake(60), range(8)))
    assert len(shelf.loaded) == 2


def test_who_cannot_wait_is_told_why_and_the_model_comes_all_the_same(shelf: Shelf) -> None:
    sleeper = Sleeper(shelf.load)
    sleeper.sleep(0)
    shelf.open.clear()
    with pytest.raises(EmbedderUnavailable, match="asleep and is being loaded"):
        sleeper.wake(0.01)
    assert sleeper.nap() is not None
    shelf.open.set()
    eventually(lambda: sleeper.nap() is None, what="the model is awake")
    assert len(shelf.loaded) == 2


def test_model_that_is_gone_is_told_before_those_who_wait_go_on(shelf: Shelf) -> None:
    sleeper = Sleeper(shelf.load)
    lost: list[MemorydError] = []
    sleeper.on_lost = lost.append

    def missing() -> FakeEmbedder:
        raise ModelMissing("the file is gone", hint="install it")

    sleeper.sleep(0)
    shelf.make = missing
    with pytest.raises(EmbedderUnavailable, match="could not be loaded again: the file is gone") as failure:
        sleeper.embed_query("tea")
    assert failure.value.hint == "install it"
    assert [error.code for error in lost] == ["model_missing"]
    shelf.make = FakeEmbedder
    sleeper.embed_query("tea")  # it is tried anew, not refused for good


def test_another_model_in_its_place_is_not_taken(shelf: Shelf) -> None:
    sleeper = Sleeper(shelf.load)
    sleeper.sleep(0)
    shelf.make = lambda: FakeEmbedder(fingerprint="other")
    with pytest.raises(EmbedderUnavailable, match="not the one that its vectors were made with"):
        sleeper.embed_query("tea")
    assert shelf.loaded[-1].closed


def test_closed_for_good_it_does_not_wake(shelf: Shelf) -> None:
    sleeper = Sleeper(shelf.load)
    sleeper.sleep(0)
    sleeper.close()
    with pytest.raises(EmbedderUnavailable, match="closed"):
        sleeper.embed_query("tea")
    assert len(shelf.loaded) == 1


def test_closed_while_it_wakes_it_leaves_no_model_behind(shelf: Shelf) -> None:
    sleeper = Sleeper(shelf.load)
    sleeper.sleep(0)
    shelf.open.clear()
    with pytest.raises(EmbedderUnavailable):
        sleeper.wake(0.01)
    sleeper.close()
    shelf.open.set()
    eventually(lambda: len(shelf.loaded) == 2 and shelf.loaded[1].closed, what="what came late is closed")
