"""LanceDB that is refused a commit, or cannot be compacted: told, bounded, and over when the cause is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memoryd.store.failpoints import arm
from memoryd.store.vectors import COMPACT_AFTER, LanceVectors
from tests.support.engine import Memory
from tests.support.waiting import eventually

DIMENSION = 8


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


def test_compaction_that_fails_for_a_day_is_told_and_what_it_leaves_is_bounded(tmp_path: Path) -> None:
    """A day of commits, and maintenance that fails each time it is tried."""
    memory = Memory(tmp_path)
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    with memory.running() as engine:
        memory.settle()
        arm("vectors.compact.before=error")
        index = engine.semantics.index()
        (held,) = index.ids()
        row = index.vectors([held])[held].reshape(1, -1)
        for _ in range(2 * COMPACT_AFTER):
            index.upsert([held], [0], row)
        grown = index.stats()
        engine.queue.enqueue("maintain")
        eventually(lambda: "maintain_failing" in memory.health(), what="status tells of it")
        eventually(lambda: engine.semantics.index().stats().versions < 10, what="the table is begun anew")
        memory.settle()
        assert engine.semantics.index().stats().bytes < grown.bytes / 10
        assert memory.found("lighthouse") == ["memory/a.md"]
        assert memory.search("lighthouse")["degraded"] is None
        assert len(memory.embedder.texts) == len(set(memory.embedder.texts))  # from the cache: nothing embedded twice
        arm("")
        eventually(lambda: memory.health() == [], what="all is well again")
