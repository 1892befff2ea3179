"""A write storm: one file changed after the other, each indexed and committed on its own. Nothing may grow with it.

``make storm`` is the long form (STORM_CHANGES=10000, about a quarter of an hour on two cores).
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from memoryd.jobs.lineup import Lineup
from memoryd.jobs.maintain import Upkeep
from memoryd.jobs.meaning import Meaning
from memoryd.jobs.turns import Turns
from memoryd.store.cache import SqliteCache
from memoryd.store.errors import StoreUnavailable
from memoryd.store.generations import Generation
from memoryd.store.keywords import TABLES, count_pages
from memoryd.store.lance import table_path
from memoryd.store.space import log_bytes
from memoryd.store.vectors import LanceVectors
from tests.support.documents import make_document
from tests.support.engine import Memory
from tests.support.fake_embedder import FakeEmbedder
from tests.support.ledger import check_ledger, open_ledger
from tests.support.waiting import eventually

CHANGES = int(os.environ.get("STORM_CHANGES", "300"))
FILES = 40
WORDS = ["river", "stone", "lamp", "cedar", "harbour", "violin", "copper", "meadow", "orbit", "thistle"]


def note(chance: random.Random) -> str:
    return "\n".join(
        f"## Section {number}\n\n{' '.join(f'{chance.choice(WORDS)}{chance.randrange(500)}' for _ in range(60))}.\n"
        for number in range(6)
    )


def store_bytes(memory: Memory) -> dict[str, int]:
    """What each store takes on disk, and all of them."""
    engine = memory.live
    return {
        "ledger": engine.database.bytes_on_disk(),
        "cache": engine.cache.bytes_on_disk(),
        "vectors": engine.semantics.index().stats().bytes,
        "all": sum(file.stat().st_size for file in memory.data.rglob("*") if file.is_file()),
    }


def keyword_pages(memory: Memory) -> int:
    with memory.live.database.read() as sql:
        return sum(count_pages(sql, table) for table in TABLES)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def maintain(memory: Memory) -> None:
    memory.live.queue.enqueue("maintain")
    eventually(lambda: memory.live.queue.depths() == {}, what="the stores are maintained")


@pytest.mark.timeout(60 + CHANGES)
def test_store_is_at_most_three_times_a_fresh_one_after_a_storm(tmp_path: Path) -> None:
    memory, chance = Memory(tmp_path), random.Random(7)
    for number in range(FILES):
        memory.write(f"memory/{number}.md", note(chance))
    with memory.running() as engine:
        memory.settle()
        most: dict[str, float] = {"log": 0, "versions": 0}
        for change in range(CHANGES):
            path = f"memory/{chance.randrange(FILES)}.md"
            memory.write(path, note(chance))
            engine.index_files("notes", [path])
            assert engine.queue.wait_until(engine.is_current, timeout=60)
            if change == FILES:
                files = open_files()
            most["log"] = max(most["log"], log_bytes(engine.database.path), log_bytes(engine.cache.path))
            most["versions"] = max(most["versions"], engine.semantics.index().backlog())
        assert most["versions"] <= 1.1  # compaction comes by amount, not only by the clock
        assert most["log"] <= 64 * 2**20
        assert abs(open_files() - files) <= 4
        maintain(memory)
        assert memory.health() == []
        stats = engine.semantics.index().stats()
        assert (stats.versions, stats.fragments) == (1, 1)
        check_ledger(engine.database)
        assert engine.verifier.verify().in_sync
        stormed = store_bytes(memory) | {"keywords": keyword_pages(memory)}

    other = tmp_path / "other"
    other.mkdir()
    fresh = Memory(other)
    for number in range(FILES):
        fresh.write(f"memory/{number}.md", (memory.root / f"memory/{number}.md").read_text())
    with fresh.running():
        fresh.settle()
        maintain(fresh)
        sizes = store_bytes(fresh) | {"keywords": keyword_pages(fresh)}
        times = {name: round(stormed[name] / size, 2) for name, size in sizes.items()}
    print(f"{CHANGES:,} changes: {stormed} bytes, {times} times a fresh store; at most {most}")  # noqa: T201
    assert max(times.values()) <= 3
    assert times["keywords"] <= 2.5  # dead words are merged away, but for as many as fill fifty pages


def test_ledger_shrinks_when_most_of_it_is_deleted(tmp_path: Path) -> None:
    memory, chance = Memory(tmp_path), random.Random(7)
    for number in range(60):
        memory.write(f"memory/{number}.md", note(chance))
    with memory.running() as engine:
        memory.settle()
        maintain(memory)
        before = engine.database.bytes_on_disk()
        for number in range(1, 60):
            (memory.root / f"memory/{number}.md").unlink()
        memory.look()
        maintain(memory)
        assert engine.database.bytes_on_disk() < before / 3
        check_ledger(engine.database)


def test_burst_that_is_over_leaves_no_logs_and_little_that_is_not_compacted(tmp_path: Path) -> None:
    memory, chance = Memory(tmp_path), random.Random(7)
    for number in range(FILES):
        memory.write(f"memory/{number}.md", note(chance))
    with memory.running() as engine:
        memory.settle()
        maintain(memory)
        compact = store_bytes(memory)["vectors"]
        memory.write("memory/0.md", note(chance))
        memory.look()
        assert log_bytes(engine.database.path) > 0
        assert log_bytes(engine.cache.path) > 0
        engine.rest()
        assert log_bytes(engine.cache.path) == 0
        assert engine.queue.depths() == {}  # so little is not worth it
        left = table_path(memory.data / "vectors", "fake") / "data" / "of-an-older-version.lance"
        left.write_bytes(bytes(2 * 2**20))
        engine.rest()
        eventually(lambda: engine.queue.depths() == {} and not left.exists(), what="the vectors are compacted")
        engine.rest()
        assert engine.queue.depths() == {}  # once is enough
        assert log_bytes(engine.database.path) == log_bytes(engine.cache.path) == 0
        assert store_bytes(memory)["vectors"] < 1.1 * compact
        assert memory.health() == []
        assert engine.verifier.verify().in_sync


# -- what cannot be compacted -------------------------------------------------------------------------------


class StuckVectors(LanceVectors):
    """LanceDB in earnest, but for compaction: that fails, as a full disk or a bug of LanceDB's would have it."""

    can_rewrite = True

    def compact(self) -> None:
        raise StoreUnavailable("optimize() failed")

    def rewrite(self) -> None:
        if not self.can_rewrite:
            raise StoreUnavailable("rewriting failed")
        super().rewrite()


class StuckLineup:
    """The vector side as upkeep sees it."""

    def __init__(self, index: StuckVectors, generation: Generation) -> None:
        self.serving = Meaning(generation, FakeEmbedder(), index, Turns())

    changing = nullcontext()

    def in_use(self) -> list[Meaning]:
        return [self.serving]

    def convertible(self) -> list[Meaning]:
        return []

    def writing(self, _meaning: Meaning) -> AbstractContextManager[None]:
        return nullcontext()


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[tuple[StuckVectors, Upkeep]]:
    with open_ledger(tmp_path / "ledger.db") as ledger:
        index = StuckVectors(tmp_path / "vectors", "f1", 4, compact_after=10)
        lineup = cast(Lineup, StuckLineup(index, ledger.generation()))
        cache = SqliteCache(tmp_path / "embeddings.db", ledger.clock)
        yield (
            index,
            Upkeep(ledger.database, lineup, ledger.generations, cache, shared_cache=False, stopping=lambda: False),
        )
        cache.close()


def commit(index: StuckVectors, number: int) -> None:
    index.upsert([number], [1], np.array([[1, 0, 0, 0]], np.float32))


def test_vectors_that_cannot_be_compacted_are_written_anew_before_they_outgrow_the_disk(
    stuck: tuple[StuckVectors, Upkeep],
) -> None:
    index, upkeep = stuck
    most = 0
    for number in range(100):
        commit(index, number)
        if number == 9:
            assert upkeep.is_due()
        if number > 9 and number % 5 == 0:  # whenever the queue tries again
            with pytest.raises(StoreUnavailable, match="optimize"):
                upkeep.run()
            assert not upkeep.is_due()  # from then on the queue decides when
        most = max(most, index.stats().versions)
    assert most <= 30
    assert index.ids() == set(range(100))
    upkeep.check_room()


def test_nothing_is_written_to_vectors_that_cannot_be_made_smaller_at_all(
    stuck: tuple[StuckVectors, Upkeep],
) -> None:
    index, upkeep = stuck
    index.can_rewrite = False
    for number in range(79):  # making the table was a commit too
        upkeep.check_room()
        commit(index, number)
        if number % 5 == 0:
            with pytest.raises(StoreUnavailable):
                upkeep.run()
    with pytest.raises(StoreUnavailable, match="no more are written"):
        upkeep.check_room()
    index.can_rewrite = True
    with pytest.raises(StoreUnavailable):
        upkeep.run()
    upkeep.check_room()  # there is room again


def test_damage_that_maintenance_meets_is_healed_and_nothing_is_embedded(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    for number in range(3):
        memory.write(f"memory/{number}.md", f"Note number {number} about goats.\n")
        memory.index()
    with memory.running() as engine:
        memory.settle()
        for file in engine.paths.vectors_dir.rglob("data/*.lance"):
            file.write_bytes(b"")
        assert memory.embedded_by(lambda: _maintain_and_heal(memory)) == []
        assert engine.verifier.verify().in_sync
        engine.retry_failures()
        eventually(lambda: memory.health() == [], what="health is well again")


def _maintain_and_heal(memory: Memory) -> None:
    memory.live.queue.enqueue("maintain")
    eventually(lambda: [each["store"] for each in memory.status()["healed"]] == ["vectors"], what="it is healed")
    memory.settle()


# -- the ledger's file --------------------------------------------------------------------------------------


def test_ledger_made_without_incremental_vacuum_is_shortened_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path)) as sql:
        sql.execute("PRAGMA journal_mode = WAL")
        assert sql.execute("PRAGMA auto_vacuum").fetchone() == (0,)
    with open_ledger(path) as ledger:
        ledger.put(*(make_document(f"memory/{n}.md", "words and more words " * 500) for n in range(50)))
        ledger.database.checkpoint()
        before = path.stat().st_size
        for number in range(50):
            ledger.documents.forget("home", f"memory/{number}.md", 0.0)
        assert ledger.database.reclaim() > 0
        assert path.stat().st_size < before / 2
        assert ledger.database.free_share() <= 0.1
        check_ledger(ledger.database)
