"""Names and niceness of single threads."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.store.native_thread import give_way, name_thread

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux has them for each thread")


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def on_a_thread(work: Callable[[], object], name: str = "worker") -> list[object]:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(work()), name=name)
    thread.start()
    thread.join(60)
    return found


def test_thread_that_gives_way_takes_those_that_it_starts_along_and_no_other() -> None:
    before = niceness()
    nicer = min(19, before + 3)

    def work() -> tuple[int, list[object]]:
        give_way(nicer)
        return niceness(), on_a_thread(niceness)

    assert on_a_thread(work) == [(nicer, [nicer])]
    assert niceness() == before
    assert on_a_thread(niceness) == [before]


def test_thread_never_becomes_less_nice() -> None:
    def work() -> int:
        give_way(min(19, niceness() + 5))
        before = niceness()
        give_way(1)
        return niceness() - before

    assert on_a_thread(work) == [0]


def test_name_is_what_the_system_shows() -> None:
    def work() -> str:
        name_thread()
        return Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text().strip()

    assert on_a_thread(work, "lane-with-a-long-name") == ["lane-with-a-lon"]
