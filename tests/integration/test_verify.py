"""Each store damaged row by row behind memoryd's back: the damage is named, put right, and nothing else is touched."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pytest

from memoryd.daemon.commands.status import describe_proof
from memoryd.daemon.config import Workspace
from memoryd.daemon.methods import Methods
from memoryd.jobs.look import Look
from memoryd.jobs.look_documents import look_at_documents
from memoryd.jobs.look_light import look_lightly
from memoryd.jobs.repair import repair_ledger
from memoryd.store.errors import EmbedderRefused, InvalidParams, ModelMissing
from tests.support.engine import Gate, Memory, ledger_of
from tests.support.fake_embedder import FakeEmbedder
from tests.support.ledger import check_ledger
from tests.support.privileges import public_folder, unprivileged
from tests.support.waiting import eventually

Kinds = set[tuple[str, str, str]]  # kind, store, path

TEXTS = {
    "memory/goats.md": "# Goats\n\nThe goats like the northern meadow.\n\n## Milk\n\nRunning relational tests daily.\n",
    "memory/2026-11-15.md": "---\nscope: user:ann\n---\n# A day\n\nThe harbour lamp was copper.\n",
    "memory/letters.md": "# Letters\n\n胶圈 and Straße, filed under thistle.\n",
    "skills/ship.md": "# Shipping\n\nTag, build, publish.\n",
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    memory = Memory(tmp_path)
    for path, text in TEXTS.items():
        memory.write(path, text)
    with memory.running():
        memory.settle()
        yield memory


def verify(memory: Memory, **params: Any) -> dict[str, Any]:
    return Methods(memory.live, {}).verify(params)


def kinds(result: dict[str, Any]) -> Kinds:
    return {(entry["kind"], entry["store"], entry["path"]) for entry in result["drift"]}


def lance(memory: Memory) -> Any:
    """LanceDB's table, through a connection of the test's own."""
    generation = memory.live.generations.active()
    assert generation is not None
    return lancedb.connect(memory.live.paths.vectors_dir).open_table(f"vectors_{generation.fingerprint}")


def lance_row(memory: Memory, path: str = "memory/goats.md") -> dict[str, Any]:
    with memory.live.database.read() as sql:
        (passage,) = sql.execute(
            "SELECT p.id FROM passages p JOIN documents d ON d.id = document_id"
            " WHERE path = ? AND text_hash IS NOT NULL ORDER BY ordinal",
            (path,),
        ).fetchone()
    (row,) = lance(memory).search().where(f"id = {passage}").to_list()
    return dict(row)


def run_sql(memory: Memory, *statements: str) -> None:
    with memory.live.database.write() as sql:
        for statement in statements:
            sql.execute(statement)


def run_sql_unchecked(memory: Memory, statement: str) -> None:
    """As another program would, without foreign keys."""
    with closing(sqlite3.connect(memory.live.database.path, isolation_level=None)) as sql:
        sql.execute(statement)


GOATS = "(SELECT id FROM documents WHERE path = 'memory/goats.md')"
A_CHUNK = f"(SELECT min(id) FROM chunks WHERE document_id = {GOATS})"


def forget_words(memory: Memory, table: str, function: str) -> None:
    run_sql(
        memory,
        f"INSERT INTO {table} ({table}, rowid, heading, text)"
        f" SELECT 'delete', id, {function}(heading), {function}(text) FROM chunk_texts WHERE id = {A_CHUNK}",
    )


def garble_words(memory: Memory, table: str, function: str) -> None:
    forget_words(memory, table, function)
    run_sql(
        memory,
        f"INSERT INTO {table} (rowid, heading, text) SELECT id, 'other', 'ghostly words here' FROM chunks"
        f" WHERE id = {A_CHUNK}",
    )


def garble_stems(memory: Memory) -> None:
    """Words whose stem is another when it is stemmed again."""
    run_sql(
        memory,
        f"INSERT INTO chunk_words (rowid, heading, text) SELECT id, '', 'generalizations databases' FROM chunks"
        f" WHERE id = {A_CHUNK}",
    )


def change_vector(memory: Memory) -> None:
    row = lance_row(memory)
    other = np.roll(np.array(row["vector"], np.float32), 1).tolist()
    lance(memory).update(where=f"id = {row['id']}", values={"vector": other})


def shorten_vector(memory: Memory) -> None:
    row = lance_row(memory)
    lance(memory).update(where=f"id = {row['id']}", values={"vector": (np.array(row["vector"]) / 2).tolist()})


def add_rows(memory: Memory, **changes: Any) -> None:
    row = lance_row(memory)
    lance(memory).add([{key: value for key, value in (row | changes).items() if key in ("id", "document", "vector")}])


DAMAGES: dict[str, tuple[Callable[[Memory], object], Kinds]] = {
    "a row of the ledger says another title": (
        lambda m: run_sql(m, f"UPDATE documents SET title = 'x' WHERE id = {GOATS}"),
        {("wrong_rows", "ledger", "memory/goats.md")},
    ),
    "a scope is lost": (
        lambda m: run_sql(m, "UPDATE documents SET scope = 'global' WHERE path = 'memory/2026-11-15.md'"),
        {("wrong_rows", "ledger", "memory/2026-11-15.md")},
    ),
    "the ledger has another hash": (
        lambda m: run_sql(m, f"UPDATE documents SET content_hash = 'x' WHERE id = {GOATS}"),
        {("stale", "ledger", "memory/goats.md")},
    ),
    "a chunk has other lines": (
        lambda m: run_sql(m, f"UPDATE chunks SET start_line = start_line + 7 WHERE id = {A_CHUNK}"),
        {("wrong_lines", "ledger", "memory/goats.md")},
    ),
    "a chunk names other passages": (
        lambda m: run_sql(m, f"UPDATE chunks SET passages = x'6712000000000000' WHERE id = {A_CHUNK}"),
        {("wrong_rows", "ledger", "memory/goats.md")},
    ),
    "a passage has other lines": (
        lambda m: run_sql(m, f"UPDATE passages SET end_line = 99 WHERE document_id = {GOATS} AND ordinal = 0"),
        {("wrong_lines", "ledger", "memory/goats.md")},
    ),
    "a passage says something else": (
        lambda m: run_sql(m, f"UPDATE passages SET text = 'sheep' WHERE document_id = {GOATS} AND ordinal = 0"),
        {("wrong_rows", "ledger", "memory/goats.md"), ("wrong_keywords", "keywords", "memory/goats.md")},
    ),
    "a passage is doubled": (
        lambda m: run_sql(
            m,
            f"INSERT INTO passages SELECT document_id, ordinal + 50, id, text, text_hash, start_line, end_line"
            f" FROM passages WHERE document_id = {GOATS} AND ordinal = 0",
        ),
        {("duplicate", "ledger", "memory/goats.md")},
    ),
    "a chunk is lost with its keyword rows": (
        lambda m: (
            forget_words(m, "chunks_fts", "fold"),
            forget_words(m, "chunk_words", "words"),
            run_sql(m, f"DELETE FROM chunks WHERE id = {A_CHUNK}"),
        ),
        {("wrong_rows", "ledger", "memory/goats.md")},
    ),
    "all passages of a document are lost": (
        lambda m: run_sql(m, f"DELETE FROM passages WHERE document_id = {GOATS}"),
        {
            ("wrong_rows", "ledger", "memory/goats.md"),
            ("wrong_keywords", "keywords", "memory/goats.md"),
            ("orphan", "vectors", "memory/goats.md"),
        },
    ),
    "a document is forgotten without a word": (
        lambda m: (
            run_sql(m, f"DELETE FROM vectors WHERE document_id = {GOATS}"),
            m.live.documents.forget("notes", "memory/goats.md", 0.0),
            run_sql(m, "DELETE FROM jobs"),
        ),
        {("missing", "ledger", "memory/goats.md"), ("orphan", "vectors", "")},
    ),
    "chunks belong to no document": (
        lambda m: run_sql_unchecked(m, "INSERT INTO chunks VALUES (9999, 'key', 4711, 0, 0, 0, '', 1, 1, x'')"),
        {("orphan", "ledger", ""), ("missing_keywords", "keywords", "")},
    ),
    "trigrams of a chunk are lost": (
        lambda m: forget_words(m, "chunks_fts", "fold"),
        {("missing_keywords", "keywords", "memory/goats.md")},
    ),
    "words of a chunk are lost": (
        lambda m: forget_words(m, "chunk_words", "words"),
        {("missing_keywords", "keywords", "memory/goats.md")},
    ),
    "trigrams of a chunk are those of another text": (
        lambda m: garble_words(m, "chunks_fts", "fold"),
        {("wrong_keywords", "keywords", "memory/goats.md")},
    ),
    "words of a chunk are those of another text": (
        lambda m: garble_words(m, "chunk_words", "words"),
        {("wrong_keywords", "keywords", "memory/goats.md")},
    ),
    "a keyword row has no chunk": (
        lambda m: run_sql(m, "INSERT INTO chunk_words (rowid, heading, text) VALUES (777, 'a', 'ghost running')"),
        {("orphan", "keywords", "")},
    ),
    "words of a chunk are stems that have stems of their own": (
        lambda m: (forget_words(m, "chunk_words", "words"), garble_stems(m)),
        {("wrong_keywords", "keywords", "memory/goats.md")},
    ),
    "a keyword index has lost its sizes": (
        lambda m: run_sql(m, f"DELETE FROM chunks_fts_docsize WHERE id = {A_CHUNK}"),
        {("missing_keywords", "keywords", "memory/goats.md")},
    ),
    "a vector is lost": (
        lambda m: lance(m).delete(f"id = {lance_row(m)['id']}"),
        {("missing_vector", "vectors", "memory/goats.md")},
    ),
    "a vector and its mark are lost": (
        lambda m: (
            run_sql(m, f"DELETE FROM vectors WHERE passage_id = {lance_row(m)['id']}"),
            lance(m).delete(f"id = {lance_row(m)['id']}"),
        ),
        {("missing_vector", "vectors", "memory/goats.md")},
    ),
    "a mark is lost": (
        lambda m: run_sql(m, f"DELETE FROM vectors WHERE passage_id = {lance_row(m)['id']}"),
        {("unmarked", "vectors", "memory/goats.md")},
    ),
    "a mark has neither passage nor vector": (
        lambda m: run_sql(m, f"INSERT INTO vectors SELECT id, 4711, {GOATS} FROM generations WHERE active"),
        {("orphan", "vectors", "memory/goats.md")},
    ),
    "a vector is that of another text": (change_vector, {("stale_vector", "vectors", "memory/goats.md")}),
    "a vector is half as long": (shorten_vector, {("stale_vector", "vectors", "memory/goats.md")}),
    "a vector names another document": (
        lambda m: lance(m).update(where=f"id = {lance_row(m)['id']}", values={"document": 4711}),
        {("stale_vector", "vectors", "memory/goats.md")},
    ),
    "a vector is there twice": (add_rows, {("duplicate", "vectors", "memory/goats.md")}),
    "a vector belongs to no passage": (
        lambda m: add_rows(m, id=4711, document=4712),
        {("orphan", "vectors", "")},
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_and_repaired_without_embedding_anything(memory: Memory, damage: str) -> None:
    before = verify(memory)
    assert before["in_sync"], before["drift"]
    ledger = ledger_of(memory.live)

    harm, expected = DAMAGES[damage]
    harm(memory)
    found = verify(memory)
    assert kinds(found) == expected
    assert not found["in_sync"]
    assert found["root"] != before["root"]
    assert all(entry["message"] and entry["count"] >= 1 for entry in found["drift"])

    results: list[dict[str, Any]] = []
    assert memory.embedded_by(lambda: results.append(verify(memory, repair=True))) == []
    (repaired,) = results
    assert repaired["in_sync"], repaired["drift"]
    assert {entry["kind"] for entry in repaired["repaired"]} == {kind for kind, _, _ in expected}
    assert repaired["root"] == before["root"]
    memory.settle()
    again = verify(memory)
    assert again["in_sync"]
    assert again["root"] == before["root"]
    assert ledger_of(memory.live) == ledger
    check_ledger(memory.live.database)
    assert set(memory.found("northern meadow")) == {"memory/goats.md"}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("query", ["ghost running tests", "harbour lamp thistle 胶圈 publish goats"])
def test_search_answers_whatever_is_damaged(memory: Memory, damage: str, query: str) -> None:
    harm, _ = DAMAGES[damage]
    harm(memory)
    paths = {hit["path"] for hit in memory.search(query, limit=100, min_score=0)["results"]}
    assert paths
    assert paths <= TEXTS.keys()


# -- what is not drift --------------------------------------------------------------------------------------


def test_files_changed_added_and_deleted_unnoticed_are_named_and_repaired(memory: Memory) -> None:
    memory.write("memory/goats.md", TEXTS["memory/goats.md"] + "\nOne more line.\n")
    memory.write("memory/new.md", "Something new.\n")
    (memory.root / "skills/ship.md").unlink()
    found = verify(memory)
    assert kinds(found) == {
        ("stale", "ledger", "memory/goats.md"),
        ("missing", "ledger", "memory/new.md"),
        ("orphan", "ledger", "skills/ship.md"),
    }
    assert verify(memory, repair=True)["in_sync"]
    assert set(memory.found("something new")) == {"memory/new.md"}
    assert memory.found("publish") == []


def test_file_that_was_only_touched_is_in_sync(memory: Memory) -> None:
    before = verify(memory)["root"]
    os.utime(memory.root / "memory/goats.md")
    result = verify(memory)
    assert result["in_sync"]
    assert result["root"] == before


def test_document_that_waits_for_its_vectors_is_pending_and_not_drift(tmp_path: Path) -> None:
    gate = Gate()
    memory = Memory(tmp_path, gate)
    memory.write("memory/goats.md", TEXTS["memory/goats.md"])
    with memory.running():
        assert gate.entered.acquire(timeout=60)
        result = verify(memory)
        assert result["in_sync"]
        assert result["pending"] == 1
        assert result["vectors"] == 0
        gate.open()
        memory.settle()
        result = verify(memory)
        assert (result["in_sync"], result["pending"]) == (True, 0)
        assert result["vectors"] > 0


def test_file_that_is_rewritten_all_the_time_is_pending_and_not_drift(memory: Memory) -> None:
    done = threading.Event()

    def rewrite() -> None:
        number = 0
        while not done.wait(0.01):
            number += 1
            memory.write("memory/busy.md", f"Version {number}.\n")

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        eventually((memory.root / "memory/busy.md").exists)
        result = verify(memory)
    finally:
        done.set()
        writer.join()
    assert result["drift"] == []
    assert result["pending"] == 1


def test_workspace_that_is_away_is_named_and_nothing_of_it_is_forgotten(memory: Memory) -> None:
    before = verify(memory)
    memory.root.rename(memory.root.with_name("elsewhere"))
    for result in (verify(memory), verify(memory, repair=True)):
        assert kinds(result) == {("unavailable", "disk", "")}
        assert result["documents"] == len(TEXTS)
        assert not result["in_sync"]
    memory.root.with_name("elsewhere").rename(memory.root)
    after = verify(memory)
    assert after["in_sync"]
    assert after["root"] == before["root"]


def test_folder_that_cannot_be_looked_into_is_named_and_nothing_of_it_is_forgotten() -> None:
    with public_folder() as folder:
        memory = Memory(folder)
        for path, text in TEXTS.items():
            memory.write(path, text)
        with memory.running() as engine:
            memory.settle()
            (memory.root / "skills").chmod(0)
            (memory.root / "memory/letters.md").chmod(0)
            look = Look(("notes",), 0.0, True, engine.queue.work())
            with unprivileged():
                look_at_documents(engine.stores, look)
            assert {(entry.kind, entry.store, entry.path) for entry in look.drift} == {
                ("unavailable", "disk", "skills"),
                ("unavailable", "disk", "memory/letters.md"),
            }
            repair_ledger(engine.stores, look.drift, 0.0)
            assert engine.queue.depths() == {}
            assert look.documents == len(TEXTS)


def test_embedder_that_failed_is_told_and_not_taken_for_work_in_progress(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.write("memory/goats.md", TEXTS["memory/goats.md"])

    def fail(_progress: object) -> FakeEmbedder:
        raise ModelMissing("no model")

    memory.load = fail
    with memory.running():
        memory.settle()
        result = verify(memory)
        assert kinds(result) == {("unavailable", "vectors", "")}
        assert "no model" in result["drift"][0]["message"]


def test_vectors_deleted_from_disk_come_back_from_the_cache(memory: Memory) -> None:
    before = verify(memory)["root"]
    shutil.rmtree(memory.live.paths.vectors_dir)
    assert {kind for kind, _, _ in kinds(verify(memory))} == {"missing_vector"}
    results: list[dict[str, Any]] = []
    assert memory.embedded_by(lambda: results.append(verify(memory, repair=True))) == []
    assert results[0]["in_sync"], results[0]["drift"]
    assert results[0]["root"] == before


@pytest.mark.parametrize("light", [False, True])
def test_vector_that_no_search_looks_at_is_drift_and_is_searched_again(memory: Memory, light: bool) -> None:
    index, passage = memory.live.semantics.serving().vectors, lance_row(memory)["id"]
    assert index._mirror is not None
    index._mirror.delete([passage])
    if light:
        verdict = memory.live.verifier.verify_lightly()
        assert verdict is not None
        assert [entry.kind for entry in verdict.repaired] == ["unsearched"]
    else:
        assert kinds(verify(memory)) == {("unsearched", "vectors", "memory/goats.md")}
        assert memory.embedded_by(lambda: verify(memory, repair=True) and None) == []
    assert passage in index.vectors([passage])
    assert verify(memory)["in_sync"]


def test_passage_that_the_cache_has_lost_too_is_embedded_again_and_no_other(memory: Memory) -> None:
    row = lance_row(memory)
    lance(memory).delete(f"id = {row['id']}")
    with closing(sqlite3.connect(memory.live.paths.embeddings, isolation_level=None)) as sql:
        with memory.live.database.read() as ledger:
            (text_hash,) = ledger.execute("SELECT text_hash FROM passages WHERE id = ?", (row["id"],)).fetchone()
        sql.execute("DELETE FROM embeddings WHERE text_hash = ?", (text_hash,))
    assert len(memory.embedded_by(lambda: verify(memory, repair=True) and None)) == 1
    assert verify(memory)["in_sync"]


# -- the root -----------------------------------------------------------------------------------------------


def test_root_after_edits_is_that_of_a_fresh_index_elsewhere(memory: Memory, tmp_path: Path) -> None:
    memory.write("memory/goats.md", "# Goats\n\nAll different now.\n")
    (memory.root / "skills/ship.md").rename(memory.root / "memory/ship.md")
    (memory.root / "memory/letters.md").unlink()
    memory.write("memory/huge.md", "x" * 100)
    memory.look()
    mine = verify(memory)
    other = tmp_path / "other"
    other.mkdir()
    fresh = Memory(other)
    for path in sorted((p.relative_to(memory.root) for p in memory.root.rglob("*.md")), reverse=True):
        fresh.write(str(path), (memory.root / path).read_text())
    with fresh.running():
        fresh.settle()
        theirs = verify(fresh)
    assert mine["in_sync"], mine["drift"]
    assert mine["root"] == theirs["root"]
    assert (mine["documents"], mine["chunks"], mine["vectors"]) == (
        theirs["documents"],
        theirs["chunks"],
        theirs["vectors"],
    )


def test_other_model_has_another_root(memory: Memory, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    theirs = Memory(other, FakeEmbedder(fingerprint="another"))
    for path, text in TEXTS.items():
        theirs.write(path, text)
    with theirs.running():
        theirs.settle()
        assert verify(theirs)["root"] != verify(memory)["root"]


def test_one_workspace_can_be_verified_alone(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.write("memory/goats.md", TEXTS["memory/goats.md"])
    second = tmp_path / "second"
    (second / "memory").mkdir(parents=True)
    (second / "memory/other.md").write_text("Other words.\n")
    memory.configure(workspaces=(*memory.config.workspaces, Workspace(second, "second")))
    with memory.running():
        memory.settle()
        (second / "memory/other.md").write_text("Changed words.\n")
        alone = verify(memory, workspace=["notes"])
        assert (alone["in_sync"], alone["documents"]) == (True, 1)
        assert kinds(verify(memory, workspace=["second"])) == {("stale", "ledger", "memory/other.md")}
        with pytest.raises(InvalidParams):
            verify(memory, workspace=["third"])


def test_drift_tells_no_word_of_the_notes(memory: Memory) -> None:
    run_sql(memory, f"UPDATE passages SET text = 'sheep' WHERE document_id = {GOATS}", "DELETE FROM vectors")
    garble_words(memory, "chunk_words", "words")
    told = json.dumps(verify(memory))
    assert not any(word in told for word in ("sheep", "meadow", "harbour", "ghostly"))


# -- on schedule --------------------------------------------------------------------------------------------

LIGHT = [
    "all passages of a document are lost",
    "trigrams of a chunk are lost",
    "words of a chunk are lost",
    "a keyword row has no chunk",
    "a vector is lost",
    "a mark is lost",
    "a vector names another document",
    "a vector is there twice",
    "a vector belongs to no passage",
    "a passage is doubled",
    "chunks belong to no document",
    "a document is forgotten without a word",
]


def verify_on_schedule(memory: Memory) -> dict[str, Any]:
    before, _ = memory.live.verifier.proofs.last()
    memory.live.queue.enqueue("verify")
    eventually(lambda: memory.live.verifier.proofs.last()[0] is not before, what="a new proof")
    memory.settle()
    proof: dict[str, Any] = memory.status()["proof"]
    return proof


@pytest.mark.parametrize("damage", LIGHT)
def test_light_look_repairs_what_ids_and_counts_show(memory: Memory, damage: str) -> None:
    before = verify(memory)["root"]
    harm, _ = DAMAGES[damage]
    harm(memory)
    assert memory.embedded_by(lambda: verify_on_schedule(memory) and None) == []
    proof = memory.status()["proof"]
    assert proof["in_sync"]
    assert proof["light"]
    assert proof["root"] is None
    assert verify(memory)["root"] == before


def test_light_look_at_what_is_in_step_reads_no_passage(memory: Memory) -> None:
    look = Look(("notes",), 0.0, True, memory.live.queue.work())
    look_lightly(memory.live.stores, look)
    assert look.drift == []
    assert look.vectors == len(memory.live.semantics.index().ids()) > 0
    assert look.wanted == {}


def test_light_look_finds_files_that_no_event_told_of(memory: Memory) -> None:
    memory.write("memory/new.md", "Something new.\n")
    (memory.root / "skills/ship.md").unlink()
    verify_on_schedule(memory)
    assert set(memory.found("something new")) == {"memory/new.md"}
    assert memory.found("publish") == []


def test_scheduled_look_does_not_repeat_what_has_failed_and_a_repair_does(memory: Memory) -> None:
    memory.embedder.failure = EmbedderRefused("no such tokens")
    memory.write("memory/new.md", "Something new.\n")
    memory.look()
    (failed,) = memory.live.queue.failures()
    assert failed.parked
    run_sql(memory, f"DELETE FROM vectors WHERE document_id = {GOATS}")  # something else is to be put right
    calls = memory.embedder.document_calls
    proof = verify_on_schedule(memory)
    assert (proof["in_sync"], proof["pending"], proof["failed"]) == (True, 0, 1)
    assert describe_proof(proof).endswith(", but for 1 file that failed")
    assert memory.live.queue.failures() == [failed]
    assert memory.embedder.document_calls == calls

    memory.embedder.failure = None
    assert verify(memory, repair=True)["in_sync"]
    assert memory.live.queue.failures() == []


def test_status_tells_when_it_was_proven_and_what_changed_since(memory: Memory) -> None:
    proof = memory.status()["proof"]
    assert (proof["in_sync"], proof["light"], proof["drift"], proof["changed_since"]) == (True, True, 0, 0)
    assert re.fullmatch(r"in sync, proven at \d\d:\d\d:\d\d", describe_proof(proof))
    memory.write("memory/goats.md", "Changed.\n")
    assert describe_proof(memory.status()["proof"]).endswith("; 1 file changed since")  # nobody has noticed yet
    memory.look()
    assert describe_proof(memory.status()["proof"]).endswith("; 1 file changed since")
    result = verify(memory)
    proof = memory.status()["proof"]
    assert proof["root"] == result["root"]
    assert (proof["light"], proof["changed_since"]) == (False, 0)


def test_drift_degrades_health_until_a_look_as_close_finds_it_gone(memory: Memory) -> None:
    change_vector(memory)
    assert not verify(memory)["in_sync"]
    assert "drift" in memory.health()
    assert describe_proof(memory.status()["proof"]).startswith("not in sync at ")
    proof = verify_on_schedule(memory)  # a light one would not see it, and must not say that all is well
    assert (proof["in_sync"], proof["light"]) == (True, False)
    assert "drift" not in memory.health()
