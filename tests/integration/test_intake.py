"""Many files at once, and files whose changes hide: what the lanes make of them, on real stores."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from memoryd.daemon.lanes import EMBED_BATCH, FEW_TEXTS, INDEX_BATCH
from memoryd.jobs.workspace import signature_of
from memoryd.store.vectors import SCATTERED_COMMITS
from tests.support.engine import Memory, ledger_of
from tests.support.fake_embedder import DenseEmbedder
from tests.support.waiting import eventually

FILES = 3 * INDEX_BATCH
FEW = FEW_TEXTS * EMBED_BATCH


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path, DenseEmbedder())


def write_many(memory: Memory, files: int, words: str = "Parcel n{}n came.\n") -> None:
    for number in range(files):
        memory.write(f"memory/{number}.md", words.format(number))


def done(events: list[Any], kind: str) -> list[Any]:
    return [event for event in events if event["event"] == "job_done" and event["kind"] == kind]


# -- many at once -------------------------------------------------------------------------------------------


def test_files_that_arrive_together_are_indexed_a_batch_at_a_time(memory: Memory) -> None:
    write_many(memory, FILES)
    with capture_logs() as events, memory.running():
        memory.settle()
        assert memory.found("n7n") == ["memory/7.md"]
    batches = done(events, "index")
    assert sum(batch["indexed"] for batch in batches) == FILES
    assert len(batches) <= FILES / INDEX_BATCH + 1


def test_batch_with_every_outcome_tells_each_of_them(memory: Memory) -> None:
    write_many(memory, 4)
    with memory.running() as engine:
        memory.settle()
        memory.write("memory/0.md", "Another text.\n")
        (memory.root / "memory/1.md").unlink()
        memory.write("memory/2.md", "\0\1\2\3")
        with capture_logs() as events:
            engine.index_files("notes", [f"memory/{number}.md" for number in range(5)])
            memory.settle()
        (batch,) = done(events, "index")
        counts = {name: batch[name] for name in ("indexed", "forgotten", "skipped", "unchanged", "absent")}
        assert counts == dict.fromkeys(counts, 1)
        assert memory.status()["workspaces"][0]["indexed"] == 2


def test_vectors_of_a_lost_table_come_from_the_cache_and_more_at_a_time(memory: Memory) -> None:
    write_many(memory, FILES)
    memory.index()
    shutil.rmtree(memory.data / "vectors")
    with capture_logs() as events, memory.running() as engine:
        assert memory.embedded_by(memory.settle) == []
        assert engine.semantics.index().stats().rows == FILES
    batches = [batch["jobs"] for batch in done(events, "embed")]
    assert sum(batches) == FILES
    assert batches == sorted(batches[:-1]) + batches[-1:]
    assert max(batches) > EMBED_BATCH


def test_many_new_texts_among_many_known_ones_are_each_embedded_once_and_few_at_a_time(memory: Memory) -> None:
    write_many(memory, FILES)
    memory.index()
    shutil.rmtree(memory.data / "vectors")
    for number in range(FEW + 2 * EMBED_BATCH):
        memory.write(f"memory/z{number}.md", f"A letter n{number}n.\n")
    with capture_logs() as events, memory.running():
        texts = memory.embedded_by(memory.settle)
    assert sorted(texts) == sorted(f"A letter n{number}n." for number in range(FEW + 2 * EMBED_BATCH))
    assert all(batch["jobs"] <= EMBED_BATCH for batch in done(events, "embed") if batch["computed"] > FEW)
    with memory.running() as engine:
        memory.settle()
        assert ledger_of(engine)["lance"] == [(passage,) for passage, _ in ledger_of(engine)["vectors"]]


# -- changes that hide --------------------------------------------------------------------------------------


def hide_change(memory: Memory, path: str, text: str) -> None:
    """Change a file as if its stat were the one that the ledger knows."""
    file = memory.write(path, text)
    memory.live.documents.touch("notes", path, signature_of(file.stat()))


def read_again(memory: Memory) -> dict[str, int]:
    """One turn of the scheduled reading; returns what it says of itself."""
    with capture_logs() as events:
        memory.live.queue.enqueue("reread")
        eventually(lambda: done(events, "reread"), what="files were read again")
        memory.settle()
    (turn,) = done(events, "reread")
    return {"files": turn["files"], "changed": turn["changed"]}


def test_change_that_the_disk_does_not_tell_of_is_found_by_reading_again(memory: Memory) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    memory.write("memory/b.md", "A meadow.\n")
    with memory.running():
        memory.settle()
        hide_change(memory, "memory/a.md", "The violin player.\n")
        memory.look()
        assert memory.found("violin") == []  # else there is nothing hidden
        assert read_again(memory) == {"files": 2, "changed": 1}
        assert memory.found("violin") == ["memory/a.md"]
        assert memory.found("lighthouse") == []
        assert memory.live.verifier.verify().in_sync


def test_rounds_of_reading_again_go_through_all_files_and_on_after_a_restart(memory: Memory) -> None:
    write_many(memory, 150)
    with memory.running():
        memory.settle()
        assert read_again(memory) == {"files": 100, "changed": 0}
        for number in range(150):
            hide_change(memory, f"memory/{number}.md", f"Letter n{number}n came.\n")
    with memory.running():  # the start looks at the disk, and sees nothing
        memory.settle()
        assert read_again(memory) == {"files": 50, "changed": 50}
        assert read_again(memory) == {"files": 0, "changed": 0}  # the end of the round
        assert read_again(memory) == {"files": 100, "changed": 100}
        assert len(memory.found("letter")) == 100  # as many as can be asked for


def test_what_cannot_be_read_again_is_left_as_it_is(memory: Memory) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    with memory.running():
        memory.settle()
        (memory.root / "memory/a.md").rename(memory.root / "a.txt")
        assert read_again(memory) == {"files": 0, "changed": 0}
        assert memory.found("lighthouse") == ["memory/a.md"]  # until somebody looks at the disk


def test_vectors_that_a_burst_has_scattered_are_compacted_when_it_is_over(tmp_path: Path) -> None:
    memory = Memory(tmp_path, DenseEmbedder())
    with memory.running() as engine:
        for number in range(SCATTERED_COMMITS + 1):  # one by one: a commit for each
            memory.write(f"memory/{number}.md", f"Parcel n{number}n came.\n")
            engine.index_files("notes", [f"memory/{number}.md"])
            memory.settle()
        eventually(lambda: not engine.queue.depths(), what="no job is left")
        assert engine.semantics.index().stats().fragments < SCATTERED_COMMITS
