"""Vectors kept in another precision than before: in place, by what is there, while they are searched."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memoryd.jobs.lineup import Lineup
from memoryd.jobs.maintain import Upkeep
from memoryd.jobs.meaning import Meaning
from memoryd.store.failpoints import arm
from memoryd.store.lance import stored_rows, table_path
from memoryd.store.precision import Small
from memoryd.store.protocols import Vectors
from memoryd.store.quarantine import folder_bytes
from tests.support.engine import Memory
from tests.support.old_cache import scatter, widen
from tests.support.waiting import eventually

NOTES = 300


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = Memory(tmp_path)
    for number in range(NOTES):
        topic = ("river", "stone", "lamp", "cedar", "harbour", "violin")[number % 6]
        memory.write(f"memory/{number}.md", f"# Note {number}\n\nThe {topic} of number{number} stands alone.\n")
    return memory


def keep_in(memory: Memory, precision: str) -> None:
    memory.configure(embedder=replace(memory.config.embedder, precision=precision))


def kept_in(memory: Memory) -> set[str]:
    return {str(matrix.dtype) for _, _, matrix in stored_rows(memory.data / "vectors", "fake", 128)}


def cached_in(memory: Memory) -> set[str]:
    with closing(sqlite3.connect(memory.data / "embeddings.db")) as sql:
        return {"int8" if row[0] else "float32" for row in sql.execute("SELECT DISTINCT is_small FROM embeddings")}


def table_bytes(memory: Memory) -> int:
    return folder_bytes(table_path(memory.data / "vectors", "fake"))


def stored(memory: Memory) -> dict[int, Vectors | Small]:
    portions = stored_rows(memory.data / "vectors", "fake", 128)
    return {identity: row for ids, _, rows in portions for identity, row in zip(ids, rows, strict=True)}


def test_eight_bits_are_what_vectors_are_kept_in_unless_told_otherwise(memory: Memory) -> None:
    memory.index()
    assert kept_in(memory) == cached_in(memory) == {"int8"}


def test_another_precision_is_taken_up_in_place_and_8_bits_are_what_is_left_of_32(memory: Memory) -> None:
    """From 32 bits to 8 nothing is embedded; on the way back everything is, once."""
    keep_in(memory, "float32")
    with memory.running() as engine:
        memory.settle()
        whole = engine.verifier.verify()
        before = [hit["path"] for hit in memory.search("violin")["results"]]
        large = table_bytes(memory)
    assert whole.in_sync
    assert kept_in(memory) == {"float32"}
    for precision in ("int8", "float32"):
        keep_in(memory, precision)
        embedded = len(memory.embedder.texts)
        with memory.running() as engine:
            memory.settle()
            assert kept_in(memory) == {precision}
            eventually(lambda: engine.queue.depths() == {}, what="no job is left")
            assert len(memory.embedder.texts) == embedded + (NOTES if precision == "float32" else 0)
            assert [hit["path"] for hit in memory.search("violin")["results"]] == before
            verdict = engine.verifier.verify()  # compares every vector with the cache, to the last bit
            assert verdict.in_sync, verdict.drift
            assert verdict.root == whole.root
            assert len(engine.generations.all()) == 1
            memory.write("memory/new.md", "A kettle that whistles.\n")
            memory.look()
            assert memory.found("kettle")
            (memory.root / "memory/new.md").unlink()
            memory.look()
            engine.queue.enqueue("maintain")
            eventually(lambda: engine.queue.depths() == {}, what="no job is left")
            assert cached_in(memory) == {precision}
        assert (table_bytes(memory) < large / 2) == (precision == "int8")


def test_precision_is_taken_up_though_maintenance_begins_before_the_table_is_in_use(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table asks for it while it is opened, and the lane may be quicker than what is left to do of the opening."""
    memory.index()
    keep_in(memory, "float32")
    looked, serve = threading.Event(), Lineup.serve

    def serve_late(lineup: Lineup, meaning: Meaning) -> None:
        looked.wait(1)
        serve(lineup, meaning)

    monkeypatch.setattr(Lineup, "serve", serve_late)
    look = Upkeep._look_for_damage

    def tell(upkeep: Upkeep) -> dict[str, int]:
        found = look(upkeep)
        threading.Timer(0.1, looked.set).start()  # long enough for one that does not wait
        return found

    monkeypatch.setattr(Upkeep, "_look_for_damage", tell)
    with memory.running() as engine:
        eventually(lambda: kept_in(memory) == {"float32"}, what="vectors of 32 bits")
        eventually(lambda: engine.queue.depths() == {}, what="no job is left")


def test_vectors_that_the_cache_has_lost_are_embedded_again_on_the_way_back(memory: Memory) -> None:
    keep_in(memory, "int8")
    memory.index()
    assert kept_in(memory) == {"int8"}
    widen(memory.data / "embeddings.db")  # one that has not been maintained since it had 32 bits
    with closing(sqlite3.connect(memory.data / "embeddings.db")) as sql:
        sql.execute("DELETE FROM embeddings WHERE text_hash IN (SELECT text_hash FROM embeddings LIMIT 7)")
        sql.commit()
    keep_in(memory, "float32")
    embedded = len(memory.embedder.texts)
    with memory.running() as engine:
        memory.settle()
        eventually(lambda: engine.queue.depths() == {}, what="no job is left")
        assert kept_in(memory) == {"float32"}
        assert len(memory.embedder.texts) == embedded + 7
        assert engine.verifier.verify().in_sync


@pytest.mark.parametrize("age", [lambda path: None, widen, scatter], ids=["new", "32 bits", "unpacked"])
def test_table_rebuilt_from_the_cache_is_the_one_that_was_embedded_to_the_last_bit(
    memory: Memory, age: Callable[[Path], None]
) -> None:
    keep_in(memory, "int8")
    memory.index()
    before = stored(memory)
    embedded = len(memory.embedder.texts)
    shutil.rmtree(memory.data / "vectors")
    age(memory.data / "embeddings.db")
    with memory.running() as engine:
        memory.settle()
        eventually(lambda: engine.queue.depths() == {}, what="no job is left")
        assert engine.verifier.verify().in_sync
    after = stored(memory)
    assert after.keys() == before.keys()
    assert all(np.array_equal(after[identity], before[identity]) for identity in before)
    assert len(memory.embedder.texts) == embedded


def test_note_embedded_before_the_table_has_its_new_precision_is_no_drift(memory: Memory) -> None:
    """The cache keeps 8 bits from the start on, the table 32 until it is converted."""
    keep_in(memory, "float32")
    memory.index()
    keep_in(memory, "int8")
    arm("maintain.begin=error")
    try:
        with memory.running() as engine:
            memory.settle()
            memory.write("memory/new.md", "A kettle that whistles.\n")
            memory.look()
            eventually(lambda: memory.found("kettle"), what="it is found")
            assert kept_in(memory) == {"float32"}
            eventually(lambda: "embed" not in engine.queue.waiting_kinds(), what="it is embedded")
            verdict = engine.verifier.verify()
            assert verdict.in_sync, verdict.drift
    finally:
        arm("")


def test_number_of_8_bits_that_differs_is_found_and_put_right(memory: Memory) -> None:
    keep_in(memory, "int8")
    memory.index()
    import lancedb

    table = lancedb.connect(memory.data / "vectors").open_table("vectors_fake")
    rows = table.to_arrow().slice(0, 1).to_pylist()
    place = int(np.flatnonzero(np.abs(np.array(rows[0]["vector"])) < 127)[0])
    rows[0]["vector"][place] += 1
    table.merge_insert("id").when_matched_update_all().execute(rows)
    with memory.running() as engine:
        memory.settle()
        assert [(drift.kind, drift.count) for drift in engine.verifier.verify().drift] == [("stale_vector", 1)]
        engine.verifier.verify(repair=True)
        memory.settle()
        eventually(lambda: engine.verifier.verify().in_sync, what="the vector is right again")
