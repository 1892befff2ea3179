"""A clock that jumps a day either way: nothing waits for it. The queue and the schedule have tests of their own."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import pytest

from memoryd.store.errors import EmbedderUnavailable
from tests.support.clock import SetClock
from tests.support.daemon import Daemon, Machine
from tests.support.engine import Memory
from tests.support.programs import leave_out
from tests.support.soundness import OFTEN, check_sound, tidy
from tests.support.waiting import eventually

DAY = 86_400.0


@pytest.mark.parametrize("jump", [-DAY, DAY])
def test_notes_are_indexed_and_retried_after_the_clock_has_jumped(tmp_path: Path, jump: float) -> None:
    memory, clock = Memory(tmp_path), SetClock(time.time())
    memory.clock = clock
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    with memory.running() as engine:
        memory.settle()
        memory.embedder.failure = EmbedderUnavailable("the embedder rests")
        memory.write("memory/b.md", "A violin.\n")
        engine.look_at_disk()
        eventually(lambda: engine.queue.failures(), what="the embedding waits for its next try")
        memory.embedder.failure = None
        clock.move(jump)
        memory.write("memory/c.md", "A harbour.\n")
        memory.look()
        assert memory.found("harbour") == ["memory/c.md"]
        eventually(lambda: engine.queue.depths() == {}, what="what failed was tried again")
        totals = engine.documents.totals("notes", engine.generations.active().id)
        assert totals.vectors == totals.passages == 3


def fake_clock(file: Path) -> dict[str, str]:
    """An environment in which the wall clock is what a file says, and the steady one the machine's own."""
    libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not libraries:
        leave_out("faketime", "libfaketime is not installed")
    file.write_text("+0")
    return {
        "LD_PRELOAD": str(libraries[0]),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_CACHE_DURATION": "1",  # seconds, after which the file is read again
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def says(daemon: Daemon) -> float:
    """By how much the daemon's wall clock is ahead of ours: it notes when it has looked at the disk."""
    daemon.settle()
    (*_, last) = daemon.events("job_done")
    return datetime.fromisoformat(last["timestamp"]).timestamp() - time.time()


def test_daemon_goes_on_when_its_clock_is_set_forward_and_back_by_a_day(machine: Machine) -> None:
    clock = machine.folder / "clock"
    machine.env = OFTEN | fake_clock(clock)
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    with machine.daemon() as daemon:
        daemon.settle()
        for jump, word, ahead in (("+1d", "violin", DAY), ("+0", "harbour", 0.0)):
            clock.write_text(jump)
            eventually(lambda ahead=ahead: abs(says(daemon) - ahead) < DAY / 2, what="the clock has jumped")
            machine.write(f"memory/{word}.md", f"A {word}.\n")
            daemon.wait_for(word, f"memory/{word}.md")  # what is saved is found
            tidy(daemon)  # the schedule goes on
        check_sound(daemon)  # and no job is left
