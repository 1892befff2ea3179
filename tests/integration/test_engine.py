"""The index at work on real SQLite and real LanceDB, told of nothing: it looks for itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.daemon.config import Index, Search, Weights, Workspace
from memoryd.store.errors import EmbedderUnavailable, ModelMissing
from tests.support.engine import Gate, Memory, ledger_of
from tests.support.fake_embedder import FakeEmbedder
from tests.support.waiting import eventually


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path)


def long_note(paragraphs: int, topic: str = "topic") -> str:
    """Paragraphs of prose, no two alike."""
    words = ["river", "stone", "lamp", "cedar", "harbour", "violin", "copper", "meadow", "orbit", "thistle"]
    return "\n".join(
        f"## Section {number}\n\n"
        + " ".join(f"{words[(number * 7 + i * 3) % 10]}{number * 31 + i}" for i in range(60))
        + f" and {topic}{number}.\n"
        for number in range(paragraphs)
    )


# -- what is embedded ---------------------------------------------------------------------------------------


def test_line_inserted_at_the_top_of_a_long_file_embeds_only_what_changed(memory: Memory) -> None:
    text = long_note(420)
    memory.write("memory/long.md", text)
    with memory.running() as engine:
        memory.settle()
        totals = engine.documents.totals("notes", 1)
        assert totals.chunks >= 200
        assert len(memory.embedder.texts) == totals.passages
        (before,) = {hit["start_line"] for hit in memory.search("topic250")["results"][:1]}

        memory.write("memory/long.md", "One new line at the top.\n" + text)
        embedded = memory.embedded_by(memory.look)
        assert 1 <= len(embedded) <= 2
        assert any("One new line" in words for words in embedded)
        assert memory.search("topic250")["results"][0]["start_line"] == before + 1


def test_line_inserted_in_the_middle_embeds_only_what_is_near(memory: Memory) -> None:
    text = long_note(100)
    memory.write("memory/long.md", text)
    with memory.running():
        memory.settle()
        memory.write("memory/long.md", text.replace("## Section 50", "A thought in between.\n\n## Section 50"))
        assert 1 <= len(memory.embedded_by(memory.look)) <= 3


def test_renaming_a_file_embeds_nothing(memory: Memory) -> None:
    memory.write("memory/old.md", long_note(20))
    with memory.running():
        memory.settle()
        (memory.root / "memory/old.md").rename(memory.root / "memory/new.md")
        assert memory.embedded_by(memory.look) == []
        assert set(memory.found("topic7")) == {"memory/new.md"}
        assert memory.status()["workspaces"][0]["pending"] == 0


def test_same_text_in_two_files_is_embedded_once(memory: Memory) -> None:
    memory.write("memory/a.md", long_note(5))
    memory.write("memory/b.md", long_note(5))
    memory.index()
    assert len(memory.embedder.texts) == len(set(memory.embedder.texts))
    with memory.running() as engine:
        totals = engine.documents.totals("notes", 1)
        assert totals.vectors == totals.passages == 2 * len(memory.embedder.texts)


def test_touching_a_file_embeds_nothing(memory: Memory) -> None:
    file = memory.write("memory/a.md", "A note.\n")
    with memory.running():
        memory.settle()
        os.utime(file, (1, 1))
        assert memory.embedded_by(memory.look) == []
        assert memory.status()["health"]["state"] == "ok"


# -- what happened while it was down -------------------------------------------------------------------------


def test_everything_that_happens_while_it_is_down_is_followed(memory: Memory) -> None:
    for name in ("edited", "appended", "deleted", "renamed", "kept"):
        memory.write(f"memory/{name}.md", f"This note was {name}original.\n")
    memory.write("memory/folder/inside.md", "This note is insidefolder.\n")
    memory.write("MEMORY.md", "The long term.\n")
    memory.index()

    memory.write("memory/created.md", "This note was createdlater.\n")
    memory.write("memory/edited.md", "This note says somethingelse.\n")
    with (memory.root / "memory/appended.md").open("a") as file:
        file.write("And an appendedline.\n")
    (memory.root / "memory/deleted.md").unlink()
    (memory.root / "memory/renamed.md").rename(memory.root / "memory/elsewhere.md")
    (memory.root / "memory/folder").rename(memory.root / "memory/moved")
    embedded = memory.embedded_by(memory.index)
    assert len(embedded) == 3  # created, edited, appended

    with memory.running() as engine:
        assert memory.found("createdlater") == ["memory/created.md"]
        assert memory.found("editedoriginal") == []
        assert memory.found("somethingelse") == ["memory/edited.md"]
        assert memory.found("appendedline") == ["memory/appended.md"]
        assert memory.found("deletedoriginal") == []
        assert memory.found("renamedoriginal") == ["memory/elsewhere.md"]
        assert memory.found("insidefolder") == ["memory/moved/inside.md"]
        assert memory.found("keptoriginal") == ["memory/kept.md"]
        memory.settle()
        ledger = ledger_of(engine)
        assert ledger["jobs"] == []
        assert ledger["lance"] == [(passage,) for passage, _ in ledger["vectors"]]


def test_restart_without_changes_has_nothing_to_do(memory: Memory) -> None:
    memory.write("memory/a.md", long_note(10))
    with memory.running() as engine:
        memory.settle()
        before = ledger_of(engine)
    calls = memory.embedder.document_calls
    with memory.running() as engine:
        memory.settle()
        assert ledger_of(engine) == before
    assert memory.embedder.document_calls == calls


def test_five_hundred_files_at_once(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        for number in range(500):
            memory.write(f"memory/n{number % 7}/{number}.md", f"Note with marker{number}x in it.\n")
        memory.look()
        assert engine.documents.totals("notes", 1).documents == 500
        assert memory.found("marker0x") == ["memory/n0/0.md"]
        assert memory.found("marker499x") == ["memory/n2/499.md"]
        stats = engine.semantics.index().stats()
        assert stats.rows == 500
        assert stats.versions < 60  # written in batches, not one commit a file
        shutil.rmtree(memory.root / "memory")
        memory.look()
        assert engine.documents.totals("notes", 1).documents == 0
        assert engine.semantics.index().stats().rows == 0


# -- deletion ------------------------------------------------------------------------------------------------


def test_forgotten_document_disappears_before_its_vectors(tmp_path: Path) -> None:
    gate = Gate()
    memory = Memory(tmp_path, gate)
    memory.configure(search=Search(weights=Weights(vector=0)))  # a query for meaning would wait at the gate too
    memory.write("memory/gone.md", "The lighthouse keeper.\n")
    with memory.running() as engine:
        gate.passes.release()
        memory.settle()
        memory.write("memory/slow.md", "Something that takes a while to embed.\n")
        (memory.root / "memory/gone.md").unlink()
        engine.look_at_disk()
        eventually(lambda: memory.found("lighthouse") == [])
        # Its vector goes as soon as the lane that writes vectors is free.
        gate.open()
        memory.settle()
        assert engine.semantics.index().stats().rows == 1


# -- stores that are lost ------------------------------------------------------------------------------------


def test_vectors_deleted_while_down_are_rebuilt_from_the_cache(memory: Memory) -> None:
    memory.write("memory/a.md", long_note(30))
    memory.index()
    shutil.rmtree(memory.data / "vectors")
    with memory.running() as engine:
        assert memory.embedded_by(memory.settle) == []
        totals = engine.documents.totals("notes", 1)
        assert totals.vectors == totals.passages == engine.semantics.index().stats().rows
        assert memory.health() == []


def test_vectors_deleted_while_running_are_rebuilt_at_the_next_write(memory: Memory) -> None:
    memory.write("memory/a.md", long_note(10))
    with memory.running() as engine:
        memory.settle()
        shutil.rmtree(memory.data / "vectors")
        memory.write("memory/b.md", "One more note.\n")
        assert memory.embedded_by(memory.look) == ["One more note."]
        totals = engine.documents.totals("notes", 1)
        assert totals.vectors == totals.passages == len(engine.semantics.index().ids())
        assert memory.health() == []


def test_damaged_vectors_are_rebuilt_from_the_cache(memory: Memory) -> None:
    memory.write("memory/a.md", long_note(30))
    memory.index()
    for file in (memory.data / "vectors").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with memory.running() as engine:
        assert memory.embedded_by(memory.settle) == []
        totals = engine.documents.totals("notes", 1)
        assert totals.vectors == totals.passages > 0


def test_ledger_deleted_while_down_is_rebuilt_without_embedding(memory: Memory) -> None:
    memory.write("memory/a.md", long_note(30))
    memory.write("memory/2026-11-15.md", "A day.\n")
    with memory.running() as engine:
        memory.settle()
        before = ledger_of(engine)
    for file in memory.data.glob("ledger.db*"):
        file.unlink()
    with memory.running() as engine:
        assert memory.embedded_by(memory.settle) == []
        assert ledger_of(engine) == before


def test_damaged_embedding_cache_is_begun_anew(memory: Memory) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    memory.index()
    (memory.data / "embeddings.db").write_bytes(b"this is no database" * 1000)
    memory.write("memory/b.md", "The night train.\n")
    with memory.running():
        assert memory.embedded_by(memory.settle) == ["The night train."]
        assert memory.health() == []


# -- an embedder that fails, is late, or is missing ----------------------------------------------------------


def test_embedder_that_fails_and_recovers_loses_nothing(memory: Memory) -> None:
    memory.embedder.failure = EmbedderUnavailable("out of memory", hint="close something")
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    memory.write("memory/b.md", "The night train.\n")
    with memory.running() as engine:
        eventually(lambda: len(engine.queue.failures()) == 2)
        assert memory.found("lighthouse") == ["memory/a.md"]
        answer = memory.search("lighthouse")
        assert answer["degraded"]["leg"] == "vector"
        assert answer["degraded"]["reason"] == "out of memory"
        assert {entry["path"] for entry in answer["pending"]} == {"memory/a.md", "memory/b.md"}
        failed = memory.status()["workspaces"][0]["failed"]
        assert {entry["path"] for entry in failed} == {"memory/a.md", "memory/b.md"}
        assert all(entry["reason"] == "out of memory" and entry["next_retry"] for entry in failed)

        memory.embedder.failure = None
        eventually(lambda: engine.documents.totals("notes", 1).vectors == 2)
        eventually(lambda: memory.health() == [])
        assert memory.search("lighthouse")["degraded"] is None


def test_queries_are_answered_by_words_while_the_embedder_is_loading(memory: Memory) -> None:
    loaded = threading.Event()

    def load(progress: object) -> FakeEmbedder:
        assert loaded.wait(60)
        return memory.embedder

    memory.load = load
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    with memory.running() as engine:
        eventually(lambda: memory.found("lighthouse"))
        answer = memory.search("lighthouse")
        assert answer["degraded"] == {"leg": "vector", "reason": "the model is being loaded", "hint": None}
        assert answer["pending"] == [{"workspace": "notes", "path": "memory/a.md", "phase": "vectors"}]
        assert not engine.is_current()
        loaded.set()
        memory.settle()
        answer = memory.search("lighthouse")
        assert answer["degraded"] is None
        assert answer["pending"] == []


def test_installation_shows_how_far_it_is(memory: Memory) -> None:
    reported, loaded = threading.Event(), threading.Event()

    def load(progress: object) -> FakeEmbedder:
        progress("downloading", 25, 100)  # type: ignore[operator]
        reported.set()
        assert loaded.wait(60)
        return memory.embedder

    memory.load = load
    with memory.running():
        assert reported.wait(60)
        embedder = memory.status()["embedder"]
        assert (embedder["state"], embedder["done"], embedder["total"]) == ("installing", 25, 100)
        assert "25 %" in memory.search("anything")["degraded"]["reason"]
        loaded.set()
        memory.settle()


@pytest.mark.parametrize("error", [ModelMissing("no model", hint="install it"), RuntimeError("native trouble")])
def test_embedder_that_cannot_be_loaded_leaves_words_and_says_why(memory: Memory, error: Exception) -> None:
    broken = True

    def load(_progress: object) -> FakeEmbedder:
        if broken:
            raise error
        return memory.embedder

    memory.load = load
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    with memory.running() as engine:
        memory.settle()
        assert engine.semantics.status().state == "failed"
        assert memory.found("lighthouse") == ["memory/a.md"]
        degraded = memory.search("lighthouse")["degraded"]
        assert degraded["hint"]
        assert "no model" in degraded["reason"] or "RuntimeError" in degraded["reason"]
        assert "embedder_failed" in memory.health()
        broken = False
        engine.retry_failures()
        eventually(engine.semantics.ready)
        memory.settle()
        assert memory.search("lighthouse")["degraded"] is None
        assert memory.health() == []


def test_query_goes_before_the_next_batch_of_indexing(tmp_path: Path) -> None:
    gate = Gate()
    memory = Memory(tmp_path, gate)
    memory.write("memory/a.md", long_note(30))
    with memory.running():
        assert gate.entered.acquire(timeout=60)  # a batch is being embedded
        answered = threading.Event()

        def ask() -> None:
            memory.search("lighthouse")
            answered.set()

        asking = threading.Thread(target=ask)
        asking.start()
        eventually(lambda: memory.live.semantics.lineup.turns._queries == 1)
        gate.passes.release()  # this batch ends; many are left
        assert answered.wait(60)
        asking.join()
        assert gate.order[:2] == ["documents", "query"]
        gate.open()
        memory.settle()


def test_stop_in_the_middle_of_embedding_loses_nothing(tmp_path: Path) -> None:
    gate = Gate()
    memory = Memory(tmp_path, gate)
    memory.write("memory/a.md", long_note(30))
    with memory.running() as engine:
        assert gate.entered.acquire(timeout=60)

        def let_go_on() -> None:
            eventually(engine.worker.stopping)
            gate.open()

        batch_in_hand = threading.Thread(target=let_go_on)
        batch_in_hand.start()
    batch_in_hand.join()
    assert gate.document_calls == 1  # it stopped at the boundary
    embedded = len(gate.texts)
    memory.index()
    assert len(gate.texts) == len(set(gate.texts)) > embedded


# -- configuration that changes ------------------------------------------------------------------------------


def test_other_chunk_size_splits_everything_again_and_embeds_nothing(memory: Memory) -> None:
    memory.write("memory/a.md", long_note(40).replace("## ", ""))
    memory.index()
    with memory.running() as engine:
        before = engine.documents.totals("notes", 1).chunks
    memory.configure(index=Index(chunk_tokens=1600))
    with memory.running() as engine:
        assert memory.embedded_by(memory.settle) == []
        assert engine.documents.totals("notes", 1).chunks < before / 2


def test_larger_limit_of_size_indexes_what_was_too_large(memory: Memory) -> None:
    memory.configure(index=Index(max_file_bytes=1024))
    memory.write("memory/a.md", "The lighthouse keeper. " * 100)
    with memory.running():
        memory.settle()
        assert "more than index.max_file_bytes" in memory.status()["workspaces"][0]["skipped"][0]["reason"]
    memory.configure(index=Index())
    with memory.running():
        memory.settle()
        assert set(memory.found("lighthouse")) == {"memory/a.md"}


def test_file_that_was_too_large_and_is_emptied_is_no_longer_named(memory: Memory) -> None:
    memory.configure(index=Index(max_file_bytes=1024))
    memory.write("memory/a.md", "x" * 2000)
    with memory.running():
        memory.settle()
        assert memory.status()["workspaces"][0]["skipped_count"] == 1
        memory.write("memory/a.md", "")
        memory.look()
        assert memory.status()["workspaces"][0]["skipped_count"] == 0


def test_note_declared_evergreen_later_stops_to_decay(memory: Memory) -> None:
    memory.write("memory/2020-01-01.md", "The lighthouse keeper.\n")
    with memory.running():
        memory.settle()
        assert memory.search("lighthouse", explain=True)["results"][0]["explain"]["decay"] < 1
    memory.configure(workspaces=(Workspace(memory.root, "notes", evergreen=("memory/2020-*.md",)),))
    with memory.running():
        memory.settle()
        assert memory.search("lighthouse", explain=True)["results"][0]["explain"]["decay"] == 1


def test_workspace_removed_from_the_configuration_is_forgotten(memory: Memory, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "memory").mkdir(parents=True)
    (other / "memory/b.md").write_text("The night train.\n")
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    one = memory.config.workspaces
    memory.configure(workspaces=(*one, Workspace(other, "other")))
    with memory.running():
        memory.settle()
        assert memory.found("train") == ["memory/b.md"]
    memory.configure(workspaces=one)
    with memory.running() as engine:
        memory.settle()
        assert memory.found("train") == []
        assert engine.documents.workspaces() == ["notes"]
        assert engine.semantics.index().stats().rows == 1
        assert ledger_of(engine)["jobs"] == []
        assert memory.health() == []


def test_narrower_globs_forget_what_they_leave_out(memory: Memory) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    memory.write("skills/b.md", "The night train.\n")
    memory.index()
    memory.configure(workspaces=(replace(memory.config.workspaces[0], include=("memory/**/*.md",)),))
    with memory.running():
        memory.settle()
        assert memory.found("train") == []
        assert memory.found("lighthouse") == ["memory/a.md"]


def test_another_model_embeds_everything_and_coming_back_embeds_nothing(memory: Memory) -> None:
    memory.write("memory/a.md", long_note(10))
    first = memory.embedder
    memory.index()
    memory.embedder = FakeEmbedder(fingerprint="another", dimension=64)
    memory.index()
    assert len(memory.embedder.texts) == len(first.texts)
    memory.embedder = first
    with memory.running():
        assert memory.embedded_by(memory.settle) == []
        assert memory.found("topic3")


# -- disks and permissions -----------------------------------------------------------------------------------


def test_missing_root_forgets_nothing(memory: Memory, tmp_path: Path) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    memory.index()
    memory.root.rename(tmp_path / "away")
    with memory.running():
        eventually(lambda: "workspace_unavailable" in memory.health())
        eventually(lambda: memory.live.queue.failures() != [])
        assert memory.found("lighthouse") == ["memory/a.md"]
        (tmp_path / "away").rename(memory.root)
        memory.look()
        assert memory.found("lighthouse") == ["memory/a.md"]
        assert memory.health() == []
    assert len(memory.embedder.texts) == 1


def test_unmounted_root_forgets_nothing(memory: Memory) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(memory.root)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not permitted here")
    try:
        memory.write("memory/a.md", "The lighthouse keeper.\n")
        memory.index()
        saved = (memory.root / "memory/a.md").read_text()
    finally:
        subprocess.run(["umount", str(memory.root)], check=True)
    with memory.running():
        eventually(lambda: memory.live.queue.failures() != [])
        assert "not on the disk" in memory.live.queue.failures()[0].reason
        assert memory.found("lighthouse") == ["memory/a.md"]
        subprocess.run(mount, check=True)
        try:
            memory.write("memory/a.md", saved)
            memory.look()
            assert memory.found("lighthouse") == ["memory/a.md"]
            assert memory.health() == []
        finally:
            subprocess.run(["umount", str(memory.root)], check=True)
    assert len(memory.embedder.texts) == 1


# -- files of every kind -------------------------------------------------------------------------------------


def test_odd_files_are_read_or_named(memory: Memory) -> None:
    (memory.root / "memory").mkdir()
    raw = {
        "latin1.md": b"Caf\xe9 lighthouse with enough text around it.\n",
        "binary.md": bytes(range(256)) * 4,
        "broken.md": b"---\ntitle: [unclosed\n---\nThe lighthouse keeper.\n",
        "crlf.md": b"\xef\xbb\xbf# Title\r\n\r\nThe lighthouse by the sea.\r\n",
        "empty.md": b"",
        "blank.md": b"\n\n\n",
        "rules.md": b"---\n---\n---\n",
    }
    for name, data in raw.items():
        (memory.root / "memory" / name).write_bytes(data)
    os.mkfifo(memory.root / "memory/pipe.md")
    with memory.running():
        memory.settle()
        assert set(memory.found("lighthouse")) == {"memory/latin1.md", "memory/broken.md", "memory/crlf.md"}
        named = {entry["path"]: entry for entry in memory.status()["workspaces"][0]["skipped"]}
        assert set(named) == {"memory/latin1.md", "memory/binary.md", "memory/broken.md", "memory/pipe.md"}
        assert named["memory/latin1.md"]["indexed"]
        assert "UTF-8" in named["memory/latin1.md"]["reason"]
        assert not named["memory/binary.md"]["indexed"]
        assert "front matter" in named["memory/broken.md"]["reason"]
        assert memory.health() == []


def test_folder_in_the_place_of_a_file_is_no_failure(memory: Memory) -> None:
    file = memory.write("memory/a.md", "The lighthouse keeper.\n")
    with memory.running():
        memory.settle()
        file.unlink()
        memory.write("memory/a.md/b.md", "The night train.\n")
        memory.look()
        assert memory.found("lighthouse") == []
        assert memory.found("train") == ["memory/a.md/b.md"]
        assert memory.health() == []


def test_maintenance_keeps_the_answers_and_clears_the_versions(memory: Memory) -> None:
    with memory.running() as engine:
        for number in range(5):
            memory.write(f"memory/{number}.md", f"Note with marker{number}x.\n")
            memory.look()
        assert engine.semantics.index().stats().versions > 5
        engine.queue.enqueue("maintain")
        eventually(lambda: engine.queue.depths() == {})
        stats = engine.semantics.index().stats()
        assert stats.versions <= 2
        assert stats.rows == 5
        assert memory.found("marker3x") == ["memory/3.md"]


def test_nothing_of_the_engine_is_left_when_it_has_stopped(memory: Memory) -> None:
    memory.write("memory/a.md", "A note.\n")
    memory.index()  # what libraries start once for all is started now
    threads = set(threading.enumerate())
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    memory.index()
    assert set(threading.enumerate()) <= threads
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors
    assert memory.embedder.closed
