"""Who gets the embedder: a query goes first; it waits for nothing that can be let go of, and for one text at most."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from memoryd.daemon.engine import Engine
from memoryd.daemon.fact_vectors import embed_texts
from memoryd.jobs.meaning import Meaning
from memoryd.store.generations import Wanted
from memoryd.store.interruption import Interruption
from memoryd.store.protocols import Vectors
from tests.support.engine import Gate, Memory
from tests.support.fake_embedder import FakeEmbedder
from tests.support.waiting import eventually

WANTED = [Wanted(number, 1, bytes([number]) * 16, f"text {number}") for number in range(4)]


@contextmanager
def open_engine(folder: Path, gate: Gate | None = None) -> Iterator[tuple[Engine, Meaning, Gate]]:
    gate = gate or Gate()
    memory = Memory(folder, gate)
    with memory.running() as engine:
        memory.settle()
        gate.order.clear()
        try:
            yield engine, engine.semantics.serving(), gate
        finally:
            gate.open()


def place(engine: Engine, meaning: Meaning) -> list[int]:
    """Embed the passages as the lane does; returns those that got a vector."""
    return [placed.passage.passage_id for commit in engine.vectorizer.place(WANTED, meaning) for placed in commit]


def begin(engine: Engine, meaning: Meaning, gate: Gate) -> tuple[threading.Thread, list[int]]:
    """The same on a thread, which is in its first batch then."""
    found: list[int] = []
    indexing = threading.Thread(target=lambda: found.extend(place(engine, meaning)))
    indexing.start()
    assert gate.entered.acquire(timeout=60)
    return indexing, found


def test_batch_is_embedded_in_one_go_while_nobody_asks(tmp_path: Path) -> None:
    with open_engine(tmp_path) as (engine, meaning, gate):
        gate.open()
        eventually(lambda: not meaning.turns.crowded(), what="nobody asks")
        assert place(engine, meaning) == [0, 1, 2, 3]
        assert gate.order == ["documents"]


def test_query_waits_for_one_text_at_most_while_queries_come_in(tmp_path: Path) -> None:
    with open_engine(tmp_path) as (engine, meaning, gate):
        meaning.embed_query("first")
        indexing, found = begin(engine, meaning, gate)
        asking = threading.Thread(target=meaning.embed_query, args=("second",))
        asking.start()
        eventually(lambda: meaning.turns.waiting() == 1, what="the query waits")
        gate.passes.release()  # of the four texts, one
        asking.join(60)
        assert gate.order[:3] == ["query", "documents", "query"]
        gate.open()
        indexing.join(60)
        assert gate.order.count("documents") == 4
        assert found == [0, 1, 2, 3]


def test_batches_are_whole_again_when_the_queries_have_ended(tmp_path: Path) -> None:
    with open_engine(tmp_path) as (engine, meaning, gate):
        gate.open()
        meaning.embed_query("last")
        eventually(lambda: not meaning.turns.crowded(), what="the crowd is gone")
        gate.order.clear()
        assert place(engine, meaning) == [0, 1, 2, 3]
        assert gate.order == ["documents"]


class Obliging(Gate):
    """An embedder that lets go of its documents when it is asked to."""

    def embed_or_yield(self, texts: Sequence[str], interruption: Interruption) -> Vectors | None:
        self.order.append("documents")
        self.entered.release()
        while not self.passes.acquire(timeout=0.01):
            if interruption.is_wished():
                self.order.append("let go")
                return None
        return FakeEmbedder.embed_documents(self, texts)


def test_query_does_not_wait_for_what_can_be_let_go_of(tmp_path: Path) -> None:
    with open_engine(tmp_path, Obliging()) as (engine, meaning, gate):
        indexing, found = begin(engine, meaning, gate)
        meaning.embed_query("now")  # nobody lets the batch pass
        assert gate.order == ["documents", "let go", "query"]
        gate.open()
        indexing.join(60)
        assert found == [0, 1, 2, 3]


def test_what_was_let_go_of_once_is_finished_however_many_queries_come(tmp_path: Path) -> None:
    with open_engine(tmp_path, Obliging()) as (engine, meaning, gate):
        indexing, found = begin(engine, meaning, gate)
        meaning.embed_query("first")
        assert gate.entered.acquire(timeout=60)  # it is tried again
        asking = threading.Thread(target=meaning.embed_query, args=("second",))
        asking.start()
        eventually(lambda: meaning.turns.waiting() == 1, what="the query waits")
        gate.passes.release()
        asking.join(60)
        assert gate.order[:5] == ["documents", "let go", "query", "documents", "query"]
        gate.open()
        indexing.join(60)
        assert sorted(found) == [0, 1, 2, 3]


def test_query_does_not_wait_for_facts_that_are_compared(tmp_path: Path) -> None:
    with open_engine(tmp_path, Obliging()) as (engine, meaning, gate):
        found: list[str] = []
        comparing = threading.Thread(target=lambda: found.extend(embed_texts(engine, ["a fact", "another"])))
        comparing.start()
        assert gate.entered.acquire(timeout=60)
        meaning.embed_query("now")  # nobody lets the facts pass
        assert gate.order == ["documents", "let go", "query"]
        gate.open()
        comparing.join(60)
        assert found == ["a fact", "another"]
