"""LanceDB that is refused a commit, or cannot be compacted: told, bounded, and over when the cause is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memoryd.store.failpoints import arm
from memoryd.store.vectors import COMPACT_AFTER, LanceVectors
from tests.support.clock import SetClock
from tests.support.engine import Memory
from tests.support.waiting import eventually

DIMENSION = 8
DAY_S, HOUR_S, EDIT_S = 86_400, 3_600, 300


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    arm("")


def test_commit_that_comes_too_late_is_repeated_on_what_is_there_now(tmp_path: Path) -> None:
    """Another process has the table open and commits in between: an update of rows that are being compacted."""
    ours, theirs = (LanceVectors(tmp_path / "vectors", "f", DIMENSION) for _ in range(2))
    unit = np.eye(DIMENSION, dtype=np.float32)
    for identity in range(20):
        theirs.upsert([identity], [1], unit[:1])
    late = LanceVectors(tmp_path / "vectors", "f", DIMENSION)
    theirs.upsert(list(range(DIMENSION)), [2] * DIMENSION, unit)
    late.compact()
    late.upsert([100], [3], unit[:1])
    late.delete([1])
    ours.upsert([101], [3], unit[:1])
    ours.compact()
    assert ours.ids() == {0, *range(2, 20), 100, 101}
    (best, *_) = late.search(unit[5], 1)
    assert best.passage_id == 5


@pytest.mark.timeout(300)  # a day of edits
def test_compaction_that_fails_for_a_day_is_told_and_what_it_leaves_is_bounded(tmp_path: Path) -> None:
    """An edit every five minutes, maintenance every hour and whenever the queue tries again; none of them succeeds."""
    memory, clock = Memory(tmp_path), SetClock(time.time())
    memory.clock = clock
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    with memory.running() as engine:
        memory.settle()
        arm("vectors.compact.before=error")
        backlogs: list[float] = []
        grown = engine.semantics.index().stats()
        for edit in range(DAY_S // EDIT_S):
            clock.move(EDIT_S)
            memory.write("memory/b.md", f"Watch number {edit} of the day.\n")
            engine.index_files("notes", ["memory/b.md"])
            assert engine.queue.wait_until(engine.is_current, timeout=60)
            if edit % (HOUR_S // EDIT_S) == 0:
                engine.queue.enqueue("maintain", afresh=False)  # as the schedule does
                eventually(lambda: "maintain_failing" in memory.health(), what="status tells of it")
                assert memory.status()["health"]["state"] == "degraded"
                assert memory.found(f"Watch number {edit} of") == ["memory/b.md"]
                if engine.semantics.index().backlog() > 1:
                    grown = max(grown, engine.semantics.index().stats(), key=lambda stats: stats.bytes)
            backlogs.append(engine.semantics.index().backlog())
        left = engine.semantics.index().stats()
        assert max(backlogs) <= 2.2  # the table was written anew before it outgrew that …
        assert backlogs[-1] < 1
        assert left.versions < COMPACT_AFTER < grown.versions <= 2.2 * COMPACT_AFTER
        assert left.bytes < grown.bytes / 2  # … and is small again: it does not grow day by day
        (failing,) = (reason for reason in memory.status()["health"]["reasons"] if reason["code"] == "maintain_failing")
        assert failing["hint"]

        arm("")
        clock.move(HOUR_S)
        engine.queue.enqueue("maintain", afresh=False)
        eventually(lambda: memory.health() == [], what="all is well again")
        memory.settle()
        assert engine.semantics.index().stats().versions <= 2
        assert memory.found("lighthouse") == ["memory/a.md"]
        assert memory.search("lighthouse")["degraded"] is None
        assert len(memory.embedder.texts) == len(set(memory.embedder.texts))  # nothing was embedded twice
        assert engine.verifier.verify().in_sync
