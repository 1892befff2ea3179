"""An engine that goes on by another configuration: nothing is left of the old one, or all of it is."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.daemon.config import Config, Index, Llm, Schedule, Search, Workspace
from memoryd.daemon.engine import Engine
from memoryd.daemon.paths import find_paths
from memoryd.daemon.watcher import Watcher
from memoryd.daemon.watchers import Watchers
from memoryd.jobs.llm.absent import AbsentModel
from memoryd.jobs.llm.openai import OpenAiModel
from memoryd.store.errors import ConfigInvalid, MemorydError
from tests.support.engine import Memory
from tests.support.waiting import eventually

LONG = "# Long\n\n" + "\n\n".join(f"Words of paragraph {number}. " * 20 for number in range(20))


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path)


def go_on(memory: Memory, config: Config) -> None:
    memory.live.reconfigure(config)
    memory.look()


def test_files_are_split_anew_by_the_new_settings_and_as_a_fresh_index_would(memory: Memory, tmp_path: Path) -> None:
    memory.write("memory/long.md", LONG)
    small = replace(memory.config, index=Index(chunk_tokens=128, overlap_tokens=0))
    with memory.running() as engine:
        memory.settle()
        before = len(memory.search("paragraph", limit=100)["results"])
        embedded = memory.embedded_by(lambda: go_on(memory, small))
        assert embedded == []  # the passages are the same, so are their vectors
        chunks = engine.documents.totals("notes", None).chunks
    (tmp_path / "fresh").mkdir()
    fresh = Memory(tmp_path / "fresh")
    fresh.write("memory/long.md", LONG)
    fresh.configure(index=small.index)
    with fresh.running() as engine:
        fresh.settle()
        assert engine.documents.totals("notes", None).chunks == chunks > before


def test_change_in_the_middle_of_a_file_leaves_nothing_split_the_old_way(memory: Memory) -> None:
    """The text lane is held where a file has been split, and not yet written down."""
    hold, split, go = threading.Event(), threading.Event(), threading.Event()

    def clock() -> float:
        if hold.is_set() and sys._getframe(1).f_code.co_name == "index_texts":
            split.set()
            assert go.wait(60)
        return time.time()

    engine = memory.engine = Engine(memory.config, find_paths(memory.config, {"HOME": "/x"}), memory.models, clock)
    engine.start()
    try:
        memory.settle()
        hold.set()
        memory.write("memory/long.md", LONG)
        engine.look_at_disk()
        assert split.wait(60)
        small = replace(memory.config, index=Index(chunk_tokens=128, overlap_tokens=0))
        change = threading.Thread(target=engine.reconfigure, args=(small,))
        change.start()
        change.join(1)  # it must wait for the lane; had it not, it would be through by now
        hold.clear()
        go.set()
        change.join(60)
        memory.look()
        chunks = engine.documents.totals("notes", None).chunks
        engine.documents.expire("notes")
        memory.look()
        assert engine.documents.totals("notes", None).chunks == chunks > 10
    finally:
        go.set()
        assert engine.stop(10) == []


def test_unserved_workspace_is_forgotten_and_its_late_jobs_do_no_harm(memory: Memory, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "memory").mkdir(parents=True)
    (other / "memory/b.md").write_text("A lighthouse.\n")
    memory.write("memory/a.md", "A puppy.\n")
    with memory.running() as engine:
        memory.settle()
        engine.reconfigure(replace(memory.config, workspaces=(Workspace(other, "other"),)))
        engine.index_files("notes", ["memory/a.md"])  # an event that was on its way
        engine.queue.enqueue("reconcile", "notes")
        memory.look()
        assert memory.found("puppy") == []
        assert memory.found("lighthouse") == ["memory/b.md"]
        assert list(engine.worker.mishaps) == []
        assert engine.queue.failures() == []
        eventually(lambda: engine.semantics.index().stats().rows == 1, what="its vectors are gone")


def test_folder_of_a_workspace_can_change_under_its_name(memory: Memory, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    (moved / "memory").mkdir(parents=True)
    (moved / "memory/b.md").write_text("A lighthouse.\n")
    memory.write("memory/a.md", "A puppy.\n")
    with memory.running() as engine:
        memory.settle()
        engine.reconfigure(replace(memory.config, workspaces=(Workspace(moved, "notes"),)))
        memory.look()
        assert (memory.found("puppy"), memory.found("lighthouse")) == ([], ["memory/b.md"])


def test_what_cannot_be_taken_on_changes_nothing(memory: Memory) -> None:
    memory.write("memory/a.md", "A puppy.\n")
    with memory.running() as engine:
        memory.settle()
        config, workspaces = engine.config, engine.workspaces
        with pytest.raises(ConfigInvalid):
            engine.reconfigure(replace(memory.config, workspaces=()))
        wanted = replace(memory.config, index=Index(chunk_tokens=128, overlap_tokens=0))
        with engine.database.write() as sql:
            sql.execute("CREATE TEMP TRIGGER full BEFORE UPDATE ON documents BEGIN SELECT RAISE(FAIL, 'full'); END")
        with pytest.raises(MemorydError):
            engine.reconfigure(wanted)
        with engine.database.write() as sql:
            sql.execute("DROP TRIGGER full")
        assert engine.config is config
        assert engine.workspaces is workspaces
        engine.reconfigure(wanted)
        memory.look()
        assert memory.found("puppy") == ["memory/a.md"]


def test_schedule_attempts_and_language_model_follow(memory: Memory) -> None:
    with memory.running() as engine:
        assert isinstance(engine.llm, AbsentModel)
        before = engine.schedule.next_runs()
        engine.reconfigure(
            replace(
                memory.config,
                schedule=Schedule(reconcile_minutes=1000),
                index=Index(max_attempts=2),
                llm=Llm(provider="openai-compatible", model="m", base_url="http://127.0.0.1:9/v1"),
                search=Search(),
            )
        )
        assert engine.schedule.next_runs()["reconcile"] > before["reconcile"]
        assert engine.worker.max_attempts == 2
        assert isinstance(engine.llm, OpenAiModel)


def test_watchers_follow_the_configuration(memory: Memory, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    watchers = Watchers()
    with memory.running() as engine:
        try:
            watchers.follow(engine)
            first = watchers["notes"]
            watchers.follow(engine)
            assert watchers["notes"] is first  # nothing changed: nothing is lost by starting anew
            both = (*memory.config.workspaces, Workspace(other, "other"))
            engine.reconfigure(replace(memory.config, workspaces=both))
            watchers.follow(engine)
            assert watchers["notes"] is first
            assert set(watchers) == {"notes", "other"}
            engine.reconfigure(replace(memory.config, index=Index(settle_ms=50), workspaces=both[1:]))
            watchers.follow(engine)
            assert set(watchers) == {"other"}
            assert not first.alive()
            assert watchers["other"].settle_s == 0.05
        finally:
            watchers.stop()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("watcher-")]


def test_watchers_that_stop_wait_for_one_that_is_being_started_and_let_none_follow(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    both = (*memory.config.workspaces, Workspace(tmp_path / "other", "other"))
    starting, go_on_now = threading.Event(), threading.Event()
    watchers, start = Watchers(), Watcher.start

    def start_slowly(watcher: Watcher) -> None:
        starting.set()
        assert go_on_now.wait(30)
        start(watcher)

    with memory.running() as engine:
        watchers.follow(engine)
        engine.reconfigure(replace(memory.config, workspaces=both))
        monkeypatch.setattr(Watcher, "start", start_slowly)
        follower = threading.Thread(target=watchers.follow, args=(engine,))
        stopper = threading.Thread(target=watchers.stop)
        follower.start()
        assert starting.wait(30)
        stopper.start()
        stopper.join(0.3)  # long enough for one that does not wait
        go_on_now.set()
        follower.join(30)
        stopper.join(30)
        assert not any(watcher.alive() for watcher in watchers.values())
        engine.reconfigure(replace(memory.config, index=Index(settle_ms=50), workspaces=both))
        watchers.follow(engine)
        assert not any(watcher.alive() for watcher in watchers.values())
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("watcher-")]
