"""Another model, another chunker: filled beside what is searched, flipped in one row, and back again."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryd.daemon.methods import Methods
from memoryd.jobs.meaning import Meaning
from memoryd.jobs.resplit import resplit
from memoryd.store.documents import Documents
from memoryd.store.errors import EmbedderUnavailable, MemorydError, ModelMissing, NotFound
from memoryd.store.findings import Finding
from memoryd.store.lance import known_fingerprints
from memoryd.store.model import Job
from memoryd.store.protocols import Vectors
from memoryd.store.quarantine import folder_bytes
from tests.support.engine import Gate, Memory, ledger_of
from tests.support.fake_embedder import FakeEmbedder
from tests.support.waiting import eventually

OTHER = {"fingerprint": "other", "dimension": 64}


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = Memory(tmp_path)
    for number in range(12):
        topic = ("river", "stone", "lamp", "cedar", "harbour", "violin")[number % 6]
        memory.write(f"memory/{number}.md", f"# Note {number}\n\nThe {topic} of number{number} stands alone.\n")
    return memory


def serving(memory: Memory) -> str | None:
    return memory.live.semantics.now().fingerprint


def begin_switch(memory: Memory) -> Gate:
    """Go over to an embedder that stops at each batch."""
    gate = Gate(**OTHER)
    turns = memory.live.semantics.serving().turns
    eventually(lambda: not turns.crowded(), what="batches are whole again after the queries that measured the noise")
    memory.switch(gate)
    assert gate.entered.acquire(timeout=60)
    return gate


def finish(memory: Memory, gate: Gate) -> None:
    gate.open()
    memory.settle()
    eventually(lambda: serving(memory) == "other", what="the flip")


def ask(memory: Memory, text: str) -> Meaning:
    """The vector leg as a search has it, checked to be of one piece."""
    meaning = memory.live.semantics.now()
    assert isinstance(meaning, Meaning)
    vector = meaning.embed_query(text)
    assert len(vector) == meaning.generation.dimension
    assert meaning.embedder.identity.fingerprint == meaning.fingerprint
    assert meaning.vectors.name == f"vectors_{meaning.fingerprint}"
    meaning.index().search(vector, 5)  # with a vector of another model numpy would refuse
    return meaning


# -- the switch ------------------------------------------------------------------------------------------------


def test_searches_use_the_old_generation_whole_until_the_new_one_is_filled(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        old = memory.embedder
        gate = begin_switch(memory)
        gate.failure = EmbedderUnavailable("busy")  # half filled, and nobody holds the processor
        gate.open()
        eventually(lambda: "fill" not in engine.queue.waiting_kinds())
        asked = old.query_calls
        assert ask(memory, "the violin").fingerprint == "fake"
        assert memory.search("the violin")["degraded"] is None
        assert old.query_calls > asked
        assert gate.query_calls == 0
        totals = engine.documents.totals("notes", engine.semantics.serving().generation.id)
        assert totals.vectors == totals.passages
        gate.failure = None
        eventually(lambda: serving(memory) == "other", what="the flip")
        assert ask(memory, "the violin").fingerprint == "other"
        assert memory.search("the violin")["degraded"] is None
        assert gate.query_calls > 0


def test_searches_during_a_switch_never_mix_two_models(memory: Memory) -> None:
    """Every search under way, through flips and rollbacks in both directions, is of one generation."""
    with memory.running() as engine:
        memory.settle()
        stop = threading.Event()
        failures: list[BaseException] = []
        asked = {"fake": 0, "other": 0}

        def search_on() -> None:
            while not stop.is_set():
                try:
                    asked[ask(memory, "the violin").fingerprint or ""] += 1
                    answer = memory.search("the violin of number5")
                    assert answer["degraded"] is None, answer["degraded"]
                    assert answer["results"][0]["path"] == "memory/5.md"
                except BaseException as error:
                    failures.append(error)
                    return

        threads = [threading.Thread(target=search_on) for _ in range(2)]
        for thread in threads:
            thread.start()
        memory.switch(FakeEmbedder(**OTHER))
        eventually(lambda: serving(memory) == "other")
        for _ in range(3):
            engine.semantics.roll_back()
        eventually(lambda: failures or min(asked.values()) > 0)
        stop.set()
        for thread in threads:
            thread.join()
        assert failures == []


def test_status_tells_how_far_a_switch_is(memory: Memory) -> None:
    with memory.running():
        memory.settle()
        assert memory.status()["embedder"]["switching"] is None
        gate = begin_switch(memory)
        switching = memory.status()["embedder"]["switching"]
        assert (switching["fingerprint"], switching["done"], switching["total"]) == ("other", 0, 12)
        states = {each["fingerprint"]: each["state"] for each in memory.status()["embedder"]["generations"]}
        assert states == {"fake": "serving", "other": "filling"}
        assert memory.health() == []
        finish(memory, gate)
        states = {each["fingerprint"]: each["state"] for each in memory.status()["embedder"]["generations"]}
        assert states == {"fake": "kept", "other": "serving"}


def test_note_saved_during_a_switch_is_found_by_meaning_at_once_and_after_it(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        old = memory.embedder
        gate = begin_switch(memory)
        memory.write("memory/new.md", "A lighthouse on the cliff.\n")
        engine.look_at_disk()
        gate.passes.release(1)  # the batch that was under way; what was saved comes before the next
        eventually(lambda: "A lighthouse on the cliff." in old.texts)
        engine.queue.wait_until(lambda: "embed" not in engine.queue.waiting_kinds(), 60)
        assert serving(memory) == "fake"
        assert engine.generations.pending(["notes"]) == []
        finish(memory, gate)
        totals = engine.documents.totals("notes", engine.semantics.serving().generation.id)
        assert totals.vectors == totals.passages == 13
        assert ledger_of(engine)["jobs"] == []


def test_switch_cut_off_in_the_middle_goes_on_at_the_next_start_and_embeds_nothing_twice(memory: Memory) -> None:
    with memory.running():
        memory.settle()
        gate = begin_switch(memory)
        gate.passes.release(1)
        assert gate.entered.acquire(timeout=60)
        gate.open()
        gate.failure = EmbedderUnavailable("cut off")  # whatever comes next is not embedded
    done = list(gate.texts)
    assert 0 < len(done) < 12
    memory.embedder = Gate(**OTHER)
    again = memory.embedder
    with memory.running():
        assert again.entered.acquire(timeout=60)
        assert serving(memory) == "fake"  # as before the restart
        again.open()
        memory.settle()
        eventually(lambda: serving(memory) == "other")
        assert sorted(done + again.texts) == sorted(set(done + again.texts))
        assert len(done + again.texts) == 12


def test_without_the_old_model_words_carry_until_the_new_one_is_loaded(memory: Memory) -> None:
    memory.index()
    loading = threading.Event()
    memory.switch(FakeEmbedder(**OTHER))
    memory.former.clear()
    new = memory.embedder

    def load(_progress: Any) -> FakeEmbedder:
        assert loading.wait(60)
        return new

    memory.load = load
    with memory.running():
        eventually(lambda: memory.live.semantics.status().state == "loading")
        answer = memory.search("violin")
        assert answer["results"]
        assert answer["degraded"]["leg"] == "vector"
        loading.set()
        memory.settle()
        assert serving(memory) == "other"
        assert memory.search("violin")["degraded"] is None


def test_model_that_cannot_be_loaded_leaves_the_old_one_searched_and_is_told_of(memory: Memory) -> None:
    def fail(_progress: Any) -> FakeEmbedder:
        raise ModelMissing("The model other is not installed", hint="Install it")

    with memory.running():
        memory.settle()
        memory.load = fail
        memory.switch(FakeEmbedder(**OTHER))
        eventually(lambda: "switch_failing" in memory.health())
        assert serving(memory) == "fake"
        assert memory.search("violin")["degraded"] is None
        memory.settle()


def test_noise_is_measured_for_the_new_generation_before_it_is_searched(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        finish(memory, begin_switch(memory))
        with engine.database.read() as sql:
            measured = {key for (key,) in sql.execute("SELECT key FROM meta WHERE key LIKE 'noise:%'")}
        assert measured == {"noise:fake", "noise:other"}
    with memory.running() as engine, engine.database.read() as sql:
        assert sql.execute("SELECT count(*) FROM generations WHERE active").fetchone() == (1,)


def test_third_model_during_a_switch_takes_the_place_of_the_second(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        gate = begin_switch(memory)
        memory.switch(FakeEmbedder(fingerprint="third", dimension=32))
        gate.open()
        eventually(lambda: serving(memory) == "third")
        memory.settle()
        assert {each.fingerprint for each in engine.generations.all()} == {"fake", "other", "third"}
        assert engine.generations.former() is not None
        assert gate.closed


def test_going_back_to_the_old_model_during_a_switch_gives_it_up(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        old = memory.embedder
        gate = begin_switch(memory)
        memory.switch(old)
        gate.open()
        eventually(lambda: engine.semantics.lineup.filling is None)
        memory.settle()
        assert serving(memory) == "fake"
        assert ledger_of(engine)["jobs"] == []


# -- back again ------------------------------------------------------------------------------------------------


def test_rollback_searches_the_generation_before_at_once_and_embeds_what_changed_since(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        old = memory.embedder
        finish(memory, begin_switch(memory))
        memory.write("memory/new.md", "A lighthouse on the cliff.\n")
        memory.look()
        before = len(old.texts)
        result = Methods(engine, {}).table()["model.rollback"].handler({})
        assert serving(memory) == "fake"
        assert (result["fingerprint"], result["cancelled"]) == ("fake", False)  # type: ignore[index]
        memory.settle()
        assert old.texts[before:] == ["A lighthouse on the cliff."]
        totals = engine.documents.totals("notes", engine.semantics.serving().generation.id)
        assert totals.vectors == totals.passages == 13
    memory.embedder = old
    with memory.running():
        memory.settle()
        assert serving(memory) == "fake"


def test_vectors_of_a_batch_are_searched_though_its_model_was_left_and_came_back_meanwhile(memory: Memory) -> None:
    """The table is open twice then: what the batch writes must not go to the one that nobody searches."""
    memory.index()
    gate = Gate(**OTHER)
    with memory.running() as engine:
        gate.open()
        memory.switch(gate)
        finish(memory, gate)
        gate.passes = threading.Semaphore(0)
        while gate.entered.acquire(blocking=False):
            pass
        memory.write("memory/new.md", "# New\n\nZebras graze beside the quarry.\n")
        engine.look_at_disk()
        assert gate.entered.acquire(timeout=60)
        engine.semantics.roll_back()
        assert engine.semantics.roll_back().fingerprint == "other"
        gate.open()
        memory.settle()
        marked = set(engine.generations.marked(engine.semantics.serving().generation.id).tolist())
        eventually(
            lambda: set(engine.semantics.index().vectors(marked)) == marked, what="all that is marked is searched"
        )
        assert engine.verifier.verify().in_sync
        assert "memory/new.md" in {hit["path"] for hit in memory.search("quarry zebras")["results"]}


def test_rollback_during_a_switch_gives_it_up(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        gate = begin_switch(memory)
        engine.semantics.roll_back()
        gate.open()
        memory.settle()
        assert serving(memory) == "fake"
        assert engine.semantics.lineup.filling is None
        assert memory.status()["embedder"]["switching"] is None


def test_rollback_without_a_generation_before_says_so(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        with pytest.raises(NotFound) as caught:
            engine.semantics.roll_back()
        assert "keep_generations_days" in (caught.value.hint or "")


def test_rollback_to_a_model_that_is_gone_changes_nothing(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        finish(memory, begin_switch(memory))
        memory.former.clear()
        with pytest.raises(ModelMissing):
            engine.semantics.roll_back()
        assert serving(memory) == "other"
        assert memory.search("violin")["degraded"] is None


# -- the space of what is kept -----------------------------------------------------------------------------------


def cached(memory: Memory) -> set[str]:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(memory.data / "embeddings.db")) as sql:
        kept = "SELECT DISTINCT f.fingerprint FROM embeddings e JOIN fingerprints f ON f.id = e.fingerprint"
        return {row[0] for row in sql.execute(kept)}


def test_prune_gives_back_the_bytes_of_what_is_not_in_use(memory: Memory) -> None:
    import asyncio

    for number in range(200):
        memory.write(f"memory/more{number}.md", f"# More {number}\n\nThe thistle of number{number} is blue.\n")
    with memory.running() as engine:
        memory.settle()
        finish(memory, begin_switch(memory))
        vectors, cache = folder_bytes(memory.data / "vectors"), engine.cache.bytes_on_disk()
        result = asyncio.run(Methods(engine, {}).table()["model.prune"].handler({}))  # type: ignore[arg-type]
        assert [each["fingerprint"] for each in result["removed"]] == ["fake"]
        assert result["bytes"] > 0
        assert known_fingerprints(memory.data / "vectors") == {"other"}
        assert folder_bytes(memory.data / "vectors") < vectors
        assert engine.cache.bytes_on_disk() < cache
        assert cached(memory) == {"other"}
        assert [each.fingerprint for each in engine.generations.all()] == ["other"]
        assert memory.search("violin")["degraded"] is None
        with pytest.raises(NotFound):
            engine.semantics.roll_back()


@pytest.mark.parametrize(("days", "kept"), [(0.0, {"other"}), (14.0, {"other", "fake"})])
def test_maintenance_gives_back_a_generation_when_its_time_is_over(memory: Memory, days: float, kept: set[str]) -> None:
    memory.configure(embedder=replace(memory.config.embedder, keep_generations_days=days))
    with memory.running() as engine:
        memory.settle()
        finish(memory, begin_switch(memory))
        engine.queue.enqueue("maintain")
        eventually(lambda: engine.queue.depths() == {})
        assert known_fingerprints(memory.data / "vectors") == kept


def test_generation_that_one_goes_back_to_while_others_are_pruned_is_whole(memory: Memory) -> None:
    memory.index()
    with memory.running() as engine:
        memory.switch(FakeEmbedder(**OTHER))
        memory.settle()
        eventually(lambda: serving(memory) == "other", what="the flip")
        forgetting, go_on = threading.Event(), threading.Event()
        forget = engine.cache.forget

        def forget_slowly(fingerprint: str) -> None:
            forget(fingerprint)
            forgetting.set()
            assert go_on.wait(60)

        engine.cache.forget = forget_slowly  # type: ignore[method-assign]
        engine.queue.enqueue("prune")
        assert forgetting.wait(60)

        def roll_back() -> None:
            with suppress(NotFound):  # where it was pruned first
                engine.semantics.roll_back()

        back = threading.Thread(target=roll_back)
        back.start()
        back.join(0.3)  # long enough for one that does not wait
        go_on.set()
        back.join(60)
        memory.settle()
        generation = engine.semantics.serving().generation
        assert engine.place.table_path(generation.fingerprint).exists()
        assert engine.verifier.verify().in_sync
        assert not engine.healer.incidents()


def test_generation_that_is_filled_is_not_pruned(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        gate = begin_switch(memory)
        engine.queue.enqueue("prune")
        finish(memory, gate)
        eventually(lambda: engine.queue.depths() == {})
        totals = engine.documents.totals("notes", engine.semantics.serving().generation.id)
        assert totals.vectors == totals.passages == 12


def test_tables_that_a_lost_ledger_left_are_given_back(memory: Memory) -> None:
    with memory.running():
        memory.settle()
        finish(memory, begin_switch(memory))
    (memory.data / "ledger.db").unlink()
    with memory.running() as engine:
        memory.settle()
        engine.queue.enqueue("maintain")
        eventually(lambda: engine.queue.depths() == {})
        assert known_fingerprints(memory.data / "vectors") == {"other"}


# -- damage during a switch --------------------------------------------------------------------------------------


def test_ledger_lost_during_a_switch_goes_on_with_both_generations(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        gate = begin_switch(memory)
        engine.database.checkpoint()
        (memory.data / "ledger.db").write_bytes(b"garbage" * 10_000)
        gate.open()
        engine.queue.notify()
        for connection in (*engine.database._idle, engine.database._writer):
            connection.execute("PRAGMA shrink_memory")

        def provoke() -> bool:
            with suppress(MemorydError):
                engine.look_at_disk()
            return bool(engine.healer.incidents())

        eventually(provoke)
        eventually(lambda: serving(memory) == "other" and memory.health() == [])
        memory.settle()
        totals = engine.documents.totals("notes", engine.semantics.serving().generation.id)
        assert totals.vectors == totals.passages == 12


# -- another chunker ---------------------------------------------------------------------------------------------


class Watching(FakeEmbedder):
    """Looks at the ledger whenever it embeds."""

    look: Any = None

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if self.look is not None:
            self.look()
        return super().embed_documents(texts)


def test_document_that_is_split_again_keeps_its_vectors_until_the_new_ones_are_there(tmp_path: Path) -> None:
    memory = Memory(tmp_path, Watching())
    paragraphs = "\n\n".join(f"Paragraph number{n} about rivers. " + "It goes on. " * 30 for n in range(6))
    memory.write("memory/a.md", paragraphs + "\n")
    memory.index()
    cut_as_before(memory)
    missing: list[int] = []

    def look() -> None:
        with memory.live.database.read() as sql:
            missing.append(
                sql.execute(
                    "SELECT count(*) FROM passages WHERE text_hash IS NOT NULL"
                    " AND id NOT IN (SELECT passage_id FROM vectors)"
                ).fetchone()[0]
            )

    assert isinstance(memory.embedder, Watching)
    with memory.running() as engine:
        memory.embedder.look = look
        memory.settle()
        memory.embedder.look = None
        assert missing  # it was embedded again …
        assert set(missing) == {0}  # … while every passage in the ledger had its vector
        totals = engine.documents.totals("notes", engine.semantics.serving().generation.id)
        assert totals.vectors == totals.passages > 1
        assert ledger_of(engine)["jobs"] == []
        assert engine.semantics.index().ids() == set(engine.generations.marked(totals_id(engine)).tolist())


class Looking(Documents):
    """Looks at what the ledger and LanceDB say the moment a document's rows are replaced."""

    look: Any = None

    def keep(self, findings: Sequence[Finding], now: float) -> list[bool]:
        news = super().keep(findings, now)
        self.look()
        return news


def test_document_that_is_split_again_has_its_vectors_the_moment_its_rows_are_replaced(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    paragraphs = (" ".join(f"Paragraph number{n} about river{m}." for m in range(60)) for n in range(6))
    memory.write("memory/a.md", "\n\n".join(paragraphs))
    memory.index()
    cut_as_before(memory, resplit=False)
    with memory.running() as engine:
        memory.settle()
        meaning = engine.semantics.serving()
        held: list[tuple[set[int], set[int]]] = []

        def look() -> None:
            wanted = engine.generations.missing(-1, [("notes", "memory/a.md")])  # of no generation: all
            marked = {each.passage_id for each in wanted} & set(
                engine.generations.marked(meaning.generation.id).tolist()
            )
            held.append(({each.passage_id for each in wanted}, marked & meaning.vectors.ids()))

        documents = Looking(engine.database)
        documents.look = look
        job = Job("resplit:notes:memory/a.md", "resplit", "notes", "memory/a.md", 0, 0.0)
        workspace, settings = engine.workspaces["notes"], engine.index_settings
        facts = resplit(job, workspace, documents, settings, engine.clock, engine.vectorizer, meaning)
        assert 1 < facts["computed"] <= len(held[0][0])  # the same words in two paragraphs are embedded once
        assert held == [(held[0][0], held[0][0])]
        memory.look()
        assert meaning.vectors.ids() == held[0][0]  # those of the old splitting are gone
        assert engine.verifier.verify().in_sync


def totals_id(engine: Any) -> int:
    generation = engine.semantics.generation()
    assert generation is not None
    return int(generation.id)


def cut_as_before(memory: Memory, *, resplit: bool = True) -> None:
    """Leave the ledger as an earlier chunker would have: the whole document one passage, with its vector."""
    from contextlib import closing

    from memoryd.store.cache import SqliteCache
    from memoryd.store.database import Database
    from memoryd.store.documents import Documents
    from memoryd.store.generations import Generations
    from memoryd.store.vectors import LanceVectors
    from tests.support.documents import make_document

    with closing(Database(memory.data / "ledger.db")) as database:
        documents, generations = Documents(database), Generations(database)
        known = documents.lookup("notes", "memory/a.md")
        assert known is not None
        text = (memory.root / "memory/a.md").read_text()
        whole = make_document("memory/a.md", text, workspace="notes")
        documents.replace(replace(whole, signature=known.signature, content_hash=known.content_hash), 0.0)
        generation = generations.active()
        assert generation is not None
        vectors = LanceVectors(memory.data / "vectors", generation.fingerprint, generation.dimension)
        (wanted,) = generations.missing(generation.id, [("notes", "memory/a.md")])
        orphans = generations.orphans(generation.id)
        vectors.delete(orphans)
        generations.unmark(generation.id, orphans)
        vector = np.zeros((1, generation.dimension), np.float32)
        vector[0, 0] = 1.0
        vectors.upsert([wanted.passage_id], [wanted.document_id], vector)
        generations.mark(generation.id, [(wanted.passage_id, wanted.document_id)])
        if resplit:
            database.remember("splitting:notes", "an earlier one")
        with database.write() as sql:
            sql.execute("DELETE FROM jobs")
    with closing(SqliteCache(memory.data / "embeddings.db", lambda: 0.0)) as cache:
        cache.forget(generation.fingerprint)  # else nothing would be left to embed


def test_recipe_of_a_generation_is_written_down(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        generation = engine.generations.active()
        assert generation is not None
        assert json.loads(generation.recipe) == {"model": "fake"}
