"""When a changed file is ready to be read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.debounce import Debounce

SETTLE, LONGEST = 0.2, 2.0
STEPS = st.lists(st.tuples(st.floats(0, 1), st.sampled_from("ab"), st.booleans()), max_size=60)


def make() -> Debounce:
    return Debounce(SETTLE, LONGEST)


def test_finished_save_is_due_at_once() -> None:
    debounce = make()
    debounce.note("a", 10.0, finished=False)
    debounce.note("a", 10.01, finished=True)
    assert debounce.take_due(10.01) == ["a"]
    assert debounce.next_due() is None


def test_unfinished_write_is_due_when_it_pauses() -> None:
    debounce = make()
    debounce.note("a", 10.0, finished=False)
    assert debounce.take_due(10.19) == []
    assert debounce.next_due() == 10.2
    assert debounce.take_due(10.2) == ["a"]


def test_stream_of_writes_is_due_now_and_then() -> None:
    debounce = make()
    taken = []
    for tick in range(500):  # a write every 10 ms for 5 s
        now = 10.0 + tick / 100
        debounce.note("a", now, finished=False)
        taken += [now for _ in debounce.take_due(now)]
    assert [round(now - 10, 1) for now in taken] == [2.0, 4.0]


def test_stream_of_saves_is_coalesced_and_the_first_is_not_late() -> None:
    debounce = make()
    taken = []
    for tick in range(100):  # a save every 10 ms for 1 s
        now = 10.0 + tick / 100
        debounce.note("a", now, finished=True)
        taken += [now for _ in debounce.take_due(now)]
    assert taken[0] == 10.0
    assert len(taken) <= 11


def test_saves_of_different_files_do_not_wait_for_each_other() -> None:
    debounce = make()
    for name in "abc":
        debounce.note(name, 10.0, finished=True)
    assert sorted(debounce.take_due(10.0)) == ["a", "b", "c"]


def test_without_settling_everything_is_due_at_once() -> None:
    debounce = Debounce(0.0)
    debounce.note("a", 1.0, finished=False)
    assert debounce.take_due(1.0) == ["a"]


@given(STEPS)
def test_nothing_noted_is_lost_and_nothing_waits_longer_than_the_longest(steps: list[tuple[float, str, bool]]) -> None:
    debounce = make()
    now, waiting = 100.0, dict[str, float]()
    for pause, path, finished in steps:
        now += pause
        waiting.setdefault(path, now)
        debounce.note(path, now, finished=finished)
        for taken in debounce.take_due(now):
            del waiting[taken]
        assert all(now - since < LONGEST for since in waiting.values())
    due = debounce.next_due()
    assert (due is None) == (not waiting)
    assert sorted(debounce.take_due(now + LONGEST)) == sorted(waiting)
    assert debounce.next_due() is None


@given(STEPS)
def test_next_due_is_when_something_can_be_taken(steps: list[tuple[float, str, bool]]) -> None:
    debounce = make()
    now = 100.0
    for pause, path, finished in steps:
        now += pause
        debounce.note(path, now, finished=finished)
    while (due := debounce.next_due()) is not None:
        if due > now:
            assert debounce.take_due((now + due) / 2) == [] or due - now < 1e-9
        now = max(now, due)
        assert debounce.take_due(now)
