"""Who gets the embedder: a query goes first, and waits for one text at most while queries come in."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from memoryd.jobs.semantics import Semantics
from tests.support.engine import Gate, Memory
from tests.support.waiting import eventually

TEXTS = ["one", "two", "three", "four"]


@contextmanager
def open_semantics(folder: Path) -> Iterator[tuple[Semantics, Gate]]:
    gate = Gate()
    memory = Memory(folder, gate)
    with memory.running() as engine:
        memory.settle()
        gate.order.clear()
        try:
            yield engine.semantics, gate
        finally:
            gate.open()


def test_batch_is_embedded_in_one_go_while_nobody_asks(tmp_path: Path) -> None:
    with open_semantics(tmp_path) as (semantics, gate):
        gate.open()
        assert len(semantics.embed_documents(TEXTS)) == 4
        assert gate.order == ["documents"]


def test_query_waits_for_one_text_at_most_while_queries_come_in(tmp_path: Path) -> None:
    with open_semantics(tmp_path) as (semantics, gate):
        semantics.embed_query("first")
        found: list[object] = []
        indexing = threading.Thread(target=lambda: found.extend(semantics.embed_documents(TEXTS)))
        indexing.start()
        assert gate.entered.acquire(timeout=60)
        asking = threading.Thread(target=semantics.embed_query, args=("second",))
        asking.start()
        eventually(lambda: semantics._turns._queries == 1, what="the query waits")
        gate.passes.release()  # of the four texts, one
        asking.join(60)
        assert gate.order[:3] == ["query", "documents", "query"]
        gate.open()
        indexing.join(60)
        assert gate.order.count("documents") == 4
        assert np.array_equal(np.stack([np.asarray(vector) for vector in found]), semantics.embed_documents(TEXTS))


def test_batches_are_whole_again_when_the_queries_have_ended(tmp_path: Path) -> None:
    with open_semantics(tmp_path) as (semantics, gate):
        gate.open()
        semantics.embed_query("last")
        eventually(lambda: not semantics._turns.crowded(), what="the crowd is gone")
        gate.order.clear()
        semantics.embed_documents(TEXTS)
        assert gate.order == ["documents"]
