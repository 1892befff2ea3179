"""What is looked for as garbage, and when."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from memoryd.jobs.garbage import clear_up, look_seldom


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


class Knot:
    def __init__(self) -> None:
        self.itself = self


def test_cycles_are_freed_in_a_quiet_moment_and_the_rest_is_set_apart() -> None:
    look_seldom()
    knot = weakref.ref(Knot())
    assert knot() is not None
    clear_up()
    assert knot() is None
    assert gc.get_freeze_count() > 1000


def test_what_was_set_apart_is_freed_in_the_next_quiet_moment() -> None:
    knot = Knot()
    clear_up()
    gone = weakref.ref(knot)
    del knot
    gc.collect()
    assert gone() is not None
    clear_up()
    assert gone() is None
