"""A clock that jumps a day either way: nothing waits for it. The queue and the schedule have tests of their own."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from memoryd.store.errors import EmbedderUnavailable
from tests.support.clock import SetClock
from tests.support.engine import Memory
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
