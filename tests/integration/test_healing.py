"""Damage of every kind to every store: put into quarantine, rebuilt from what is sound, and told of."""

from __future__ import annotations

import random
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.engine import Engine
from memoryd.daemon.methods import Methods
from memoryd.daemon.paths import find_paths
from memoryd.store.errors import MemorydError, SchemaTooNew, StoreUnavailable
from memoryd.store.schema import migrations
from tests.support.engine import Gate, Memory, ledger_of
from tests.support.waiting import eventually

Damage = Callable[[Path], None]

WORDS = {"settings": {"weights": {"vector": 0}}}  # for who must not wait for an embedder that is held up


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path)


def long_note(sections: int, seed: int = 1) -> str:
    chance = random.Random(seed)
    words = ("river", "stone", "lamp", "cedar", "harbour", "violin", "copper", "meadow", "orbit", "thistle")
    return "\n".join(f"## Topic{n}\n\n{' '.join(chance.choices(words, k=40))} number {n}.\n" for n in range(sections))


def flip_the_middle(file: Path) -> None:
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle - 6000 : middle + 6000] = bytes(byte ^ 0xFF for byte in data[middle - 6000 : middle + 6000])
    file.write_bytes(data)


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 + 100])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def garbage(file: Path) -> None:
    file.write_bytes(random.Random(1).randbytes(file.stat().st_size))


def fill(memory: Memory) -> None:
    for number in range(8):
        memory.write(f"memory/{number}.md", long_note(6, seed=number))


def cut_off(memory: Memory) -> None:
    """As if the last daemon had been killed: its name is still in the lock."""
    (memory.data / "lock").write_text("4242")


def incidents(memory: Memory) -> list[dict[str, Any]]:
    healed: list[dict[str, Any]] = memory.status()["healed"]
    return healed


def check_healed(memory: Memory, store: str, before: dict[str, Any]) -> None:
    """The index is what it was, all is well, and status remembers."""
    eventually(lambda: memory.health() == [], what="all is well again")
    eventually(lambda: memory.live.queue.depths() == {}, what="nothing is left to do")
    assert ledger_of(memory.live) == before
    (incident,) = incidents(memory)
    assert incident["store"] == store
    assert Path(incident["folder"]).parent == memory.data / "quarantine"
    assert memory.status()["health"]["state"] == "ok"


# -- the ledger ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [flip_the_middle, truncate, empty, garbage])
def test_ledger_damaged_while_down_is_rebuilt_without_embedding_anything(memory: Memory, damage: Damage) -> None:
    fill(memory)
    with memory.running() as engine:
        memory.settle()
        before = ledger_of(engine)
    damage(memory.data / "ledger.db")
    cut_off(memory)
    with memory.running():
        assert memory.embedded_by(memory.settle) == []
        check_healed(memory, "ledger", before)
        assert any((memory.data / "quarantine").rglob("ledger.db"))
        assert memory.found("topic3")


def test_damage_that_the_opening_does_not_notice_is_healed_when_it_is_met(memory: Memory) -> None:
    """After a stop in good order nothing is looked at beforehand."""
    fill(memory)
    with memory.running() as engine:
        memory.settle()
        before = ledger_of(engine)
    flip_the_middle(memory.data / "ledger.db")
    with memory.running() as engine:
        memory.settle()
        engine.queue.enqueue("maintain")  # which looks at all of it
        eventually(lambda: incidents(memory), what="the damage is found")
        memory.settle()
        check_healed(memory, "ledger", before)


@pytest.mark.parametrize("met_by", ["maintenance", "a look at the disk"])
@pytest.mark.parametrize("damage", [flip_the_middle, truncate, garbage])
def test_ledger_damaged_while_running_is_rebuilt_and_requests_are_answered(
    memory: Memory, damage: Damage, met_by: str
) -> None:
    fill(memory)
    with memory.running() as engine:
        memory.settle()
        before = ledger_of(engine)
        search = Methods(engine, {}).table()["search"].handler
        engine.database.checkpoint()
        damage(memory.data / "ledger.db")
        for connection in (*engine.database._idle, engine.database._writer):  # SQLite's own memory would hide it
            connection.execute("PRAGMA shrink_memory")
        refusals: list[MemorydError] = []

        def look() -> bool:
            try:
                if met_by == "maintenance":
                    engine.queue.enqueue("maintain")
                else:
                    engine.documents.expire("notes")
                    engine.look_at_disk()
                search({"query": "topic3 river", "limit": 5})
            except MemorydError as error:
                refusals.append(error)
            return bool(engine.healer.incidents())

        eventually(look, what="the damage is met and healed")
        assert all(refusal.retryable for refusal in refusals)
        assert memory.embedded_by(memory.settle) == []
        check_healed(memory, "ledger", before)
        assert memory.found("topic3")


@pytest.mark.parametrize("log", [None, b"", b"garbage" * 5000])
def test_log_that_is_lost_or_garbage_costs_no_note(memory: Memory, log: bytes | None, tmp_path: Path) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    memory.index()
    with memory.running() as engine:
        memory.settle()
        memory.write("memory/b.md", "The night train.\n")
        memory.look()
        before = ledger_of(engine)
        for name in ("ledger.db", "ledger.db-wal"):  # as a crash would leave them
            shutil.copy(memory.data / name, tmp_path / name)
    shutil.copy(tmp_path / "ledger.db", memory.data / "ledger.db")
    for name in ("ledger.db-wal", "ledger.db-shm"):
        (memory.data / name).unlink(missing_ok=True)
    if log is not None:
        (memory.data / "ledger.db-wal").write_bytes(log)
    cut_off(memory)
    with memory.running() as engine:
        assert memory.embedded_by(memory.settle) == []
        assert ledger_of(engine) == before
        assert memory.found("night train") == ["memory/b.md"]
        assert memory.health() == []


def test_words_are_found_while_the_ledger_is_rebuilt_and_the_answer_says_so(tmp_path: Path) -> None:
    memory = Memory(tmp_path, Gate())
    gate = memory.embedder
    assert isinstance(gate, Gate)
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    gate.open()
    memory.index()
    empty(memory.data / "ledger.db")
    shutil.rmtree(memory.data / "vectors")
    (memory.data / "embeddings.db").unlink()
    gate.entered, gate.passes = threading.Semaphore(0), threading.Semaphore(0)
    with memory.running():
        assert gate.entered.acquire(timeout=30)
        eventually(lambda: memory.search("lighthouse", **WORDS)["results"])
        answer = memory.search("lighthouse", **WORDS)
        assert answer["degraded"]["leg"] == "ledger"
        assert "rebuilt" in answer["degraded"]["reason"]
        assert memory.health() == ["ledger_rebuilding"]
        assert memory.status()["health"]["state"] == "degraded"
        gate.open()
        memory.settle()
        eventually(lambda: memory.health() == [])
        assert memory.search("lighthouse")["degraded"] is None
        assert [incident["store"] for incident in incidents(memory)] == ["ledger"]


# -- what is not damage ----------------------------------------------------------------------------------------


def test_locked_ledger_is_not_damage(memory: Memory) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    memory.index()
    with closing(sqlite3.connect(memory.data / "ledger.db", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreUnavailable):
            Engine(memory.config, find_paths(memory.config, {}), memory.models)
    assert not (memory.data / "quarantine").exists()
    memory.index()


def test_ledger_of_a_newer_memoryd_is_refused_and_not_touched(memory: Memory) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    memory.index()
    with closing(sqlite3.connect(memory.data / "ledger.db")) as newer:
        newer.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
    cut_off(memory)
    content = (memory.data / "ledger.db").read_bytes()
    with pytest.raises(SchemaTooNew) as caught:
        Engine(memory.config, find_paths(memory.config, {}), memory.models)
    assert caught.value.hint
    assert (memory.data / "ledger.db").read_bytes() == content
    assert not (memory.data / "quarantine").exists()


# -- the embedding cache ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [flip_the_middle, truncate, empty, garbage])
def test_damaged_cache_is_begun_anew_and_what_is_indexed_stays(memory: Memory, damage: Damage) -> None:
    fill(memory)
    with memory.running() as engine:
        memory.settle()
        before = ledger_of(engine)
    damage(memory.data / "embeddings.db")
    cut_off(memory)
    with memory.running():
        assert memory.embedded_by(memory.settle) == []
        check_healed(memory, "embedding_cache", before)


def test_cache_damaged_while_running_is_begun_anew_and_the_note_is_embedded(memory: Memory) -> None:
    fill(memory)
    with memory.running() as engine:
        memory.settle()
        engine.queue.enqueue("maintain")  # folds the log back into the file
        eventually(lambda: ("maintain", "queued") not in engine.queue.depths() and not engine.queue.depths())
        garbage(memory.data / "embeddings.db")
        engine.queue.enqueue("maintain")
        memory.write("memory/new.md", "The night train.\n")
        memory.look()
        eventually(lambda: incidents(memory), what="the damage is found")
        memory.settle()
        eventually(lambda: memory.health() == [])
        assert memory.found("night train") == ["memory/new.md"]
        (incident,) = incidents(memory)
        assert incident["store"] == "embedding_cache"
        totals = engine.documents.totals("notes", 1)
        assert totals.vectors == totals.passages


def test_loss_of_vectors_and_a_spoilt_row_of_the_cache_embeds_that_row_alone(memory: Memory) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    memory.write("memory/b.md", "The night train.\n")
    memory.index()
    shutil.rmtree(memory.data / "vectors")
    with closing(sqlite3.connect(memory.data / "embeddings.db")) as cache:
        (spoilt,) = cache.execute("SELECT text_hash FROM embeddings LIMIT 1").fetchone()
        cache.execute("UPDATE embeddings SET vector = zeroblob(length(vector)) WHERE text_hash = ?", (spoilt,))
        cache.commit()
    with memory.running():
        assert len(memory.embedded_by(memory.settle)) == 1
        assert memory.health() == []


# -- the vectors -----------------------------------------------------------------------------------------------


def table_of(memory: Memory) -> Path:
    (table,) = (memory.data / "vectors").glob("*.lance")
    return table


def lose_folder(table: Path) -> None:
    shutil.rmtree(table.parent)


def truncate_all(table: Path) -> None:
    for file in [path for path in table.rglob("*") if path.is_file()]:
        truncate(file)


def lose_manifests(table: Path) -> None:
    shutil.rmtree(table / "_versions")


def garble_manifests(table: Path) -> None:
    for file in (table / "_versions").glob("*.manifest"):
        garbage(file)


def garble_data(table: Path) -> None:
    for file in (table / "data").iterdir():
        garbage(file)


def become_another_version(table: Path) -> None:
    import lancedb

    shutil.rmtree(table)
    lancedb.connect(table.parent).create_table(table.stem, data=[{"key": "a", "embedding": [0.5, 0.5]}])


VECTOR_DAMAGE = [lose_folder, truncate_all, lose_manifests, garble_manifests, garble_data, become_another_version]


@pytest.mark.parametrize("damage", VECTOR_DAMAGE)
def test_vectors_damaged_while_down_are_rebuilt_from_the_cache(memory: Memory, damage: Damage) -> None:
    fill(memory)
    with memory.running() as engine:
        memory.settle()
        before = ledger_of(engine)
    damage(table_of(memory))
    with memory.running() as engine:
        assert memory.embedded_by(memory.settle) == []
        assert ledger_of(engine) == before
        assert memory.health() == []
        stores = [incident["store"] for incident in incidents(memory)]
        assert stores == ([] if damage is lose_folder else ["vectors"])  # what is gone cannot be kept


@pytest.mark.parametrize("damage", [lose_folder, garble_manifests, garble_data])
@pytest.mark.parametrize("met_by", ["upsert", "maintain"])
def test_vectors_damaged_while_running_are_rebuilt_when_it_is_met(memory: Memory, damage: Damage, met_by: str) -> None:
    fill(memory)
    with memory.running() as engine:
        memory.settle()
        damage(table_of(memory))
        if met_by == "upsert":
            memory.write("memory/new.md", "The night train.\n")
            assert memory.embedded_by(memory.look) == ["The night train."]
        else:
            engine.queue.enqueue("maintain")
        eventually(lambda: incidents(memory), what="the damage is met")
        assert memory.embedded_by(memory.settle) == []
        eventually(lambda: memory.health() == [])
        totals = engine.documents.totals("notes", 1)
        assert totals.vectors == totals.passages == len(engine.semantics.index().ids())


def test_search_while_vectors_are_rebuilt_answers_by_words_and_says_so(tmp_path: Path) -> None:
    memory = Memory(tmp_path, Gate())
    gate = memory.embedder
    assert isinstance(gate, Gate)
    gate.open()
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    memory.index()
    garble_data(table_of(memory))
    (memory.data / "embeddings.db").unlink()
    gate.entered, gate.passes = threading.Semaphore(0), threading.Semaphore(0)
    with memory.running():
        assert gate.entered.acquire(timeout=30)
        answer = memory.search("lighthouse", **WORDS)
        assert [hit["path"] for hit in answer["results"]] == ["memory/a.md"]
        assert answer["degraded"]["leg"] == "vector"
        assert "rebuilt" in answer["degraded"]["reason"]
        assert memory.health() == ["vectors_rebuilding"]
        gate.open()
        memory.settle()
        eventually(lambda: memory.search("lighthouse")["degraded"] is None)


def test_all_three_stores_damaged_at_once_heal(memory: Memory) -> None:
    fill(memory)
    with memory.running() as engine:
        memory.settle()
        before = ledger_of(engine)
    flip_the_middle(memory.data / "ledger.db")
    garbage(memory.data / "embeddings.db")
    garble_data(table_of(memory))
    cut_off(memory)
    with memory.running() as engine:
        memory.settle()
        eventually(lambda: memory.health() == [])
        assert ledger_of(engine) == before
        assert {incident["store"] for incident in incidents(memory)} == {"ledger", "embedding_cache", "vectors"}


def test_disk_that_spoils_everything_is_not_rebuilt_on_for_ever(memory: Memory) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    with memory.running() as engine:
        memory.settle()
        table = table_of(memory)
        for number in range(5):
            eventually(table.exists)
            garble_manifests(table)
            memory.write("memory/a.md", f"The lighthouse keeper, {number}.\n")
            engine.look_at_disk()
            engine.queue.enqueue("maintain")
            eventually(lambda number=number: memory.found(f"keeper {number}") == ["memory/a.md"])
            eventually(lambda: "maintain" not in engine.queue.waiting_kinds())
            eventually(lambda: engine.is_current() or engine.healer.given_up())
            if engine.healer.given_up():
                break
        assert number == 3
        assert len(incidents(memory)) == 3
        assert "store_corrupt" in memory.health()
        assert memory.found("lighthouse") == ["memory/a.md"]
