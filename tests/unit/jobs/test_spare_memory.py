"""When memory is given back: once after each burst of work, and never while nothing happens."""

from __future__ import annotations

import threading
from pathlib import Path

from memoryd.jobs.spare_memory import SpareMemory
from tests.support.waiting import eventually


def test_memory_is_given_back_once_after_each_burst() -> None:
    given_back: list[bool] = []
    spare = SpareMemory(0.05, lambda: given_back.append(True))
    for _ in range(3):
        spare.note_work()
    spare.start()
    eventually(lambda: len(given_back) == 1, what="the first burst is over")
    spare.note_work()
    eventually(lambda: len(given_back) == 2, what="the second burst is over")
    spare.stop()
    assert len(given_back) == 2


def test_it_ends_at_once_whether_it_waits_for_work_or_for_its_end() -> None:
    for work in (False, True):
        given_back: list[bool] = []
        spare = SpareMemory(3600, lambda given_back=given_back: given_back.append(True))
        spare.start()
        if work:
            spare.note_work()
        spare.stop()
        assert not given_back
        assert not [thread for thread in threading.enumerate() if thread.name == "spare-memory"]


def test_its_time_is_told_from_the_main_threads() -> None:
    """By its name in /proc, which ``make bench`` counts CPU and wake-ups by."""
    names: list[str] = []
    spare = SpareMemory(0.01, lambda: names.append(Path("/proc/thread-self/comm").read_text().strip()))
    spare.note_work()
    spare.start()
    eventually(lambda: bool(names), what="memory is given back")
    spare.stop()
    assert names == ["spare-memory"]
