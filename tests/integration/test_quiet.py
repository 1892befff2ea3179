"""A daemon that keeps out of the way: its model sleeps, embedding is paused, and queries are answered all the same."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.app import embedder_loader
from memoryd.daemon.config import Embedder, Index
from memoryd.daemon.engine import Engine
from memoryd.daemon.footprint import read_footprint
from memoryd.jobs.embedders.sleeper import Sleeper
from memoryd.jobs.llama_library import default_threads
from memoryd.jobs.meaning import Progress
from memoryd.jobs.models.catalogue import DEFAULT_MODEL
from memoryd.store.errors import ModelMissing
from tests.support.engine import FakeModels, Gate, Memory
from tests.support.fake_embedder import FakeEmbedder
from tests.support.surroundings import set_battery, set_pressure
from tests.support.waiting import eventually

AT_ONCE, NEVER = 0.02, 0.0  # seconds


# -- the real model ---------------------------------------------------------------------------------------


def fall_asleep(engine: Engine) -> None:
    engine.semantics.unload_after(AT_ONCE)
    eventually(lambda: engine.semantics.nap() is not None, what="the model is asleep")
    engine.semantics.unload_after(NEVER)


def test_real_model_gives_its_memory_back_and_wakes_for_a_query_and_for_a_save(
    tmp_path: Path, default_model: Path, models_dir: Path
) -> None:
    memory = Memory(tmp_path)
    memory.write("memory/plumbing.md", "# House\n\nThe faucet in the bathroom drips; a washer must be replaced.\n")
    memory.configure(embedder=Embedder(model=DEFAULT_MODEL, idle_unload_minutes=NEVER), index=Index(nice=7))
    memory.load = embedder_loader(memory.config, models_dir)  # type: ignore[assignment]
    with memory.running() as engine:
        memory.settle()
        memory.search("leaky tap")
        awake = read_footprint().resident_bytes
        fall_asleep(engine)
        assert awake - read_footprint().resident_bytes > 0.7 * default_model.stat().st_size
        embedder = memory.status()["embedder"]
        assert embedder["state"] == "ready"
        assert embedder["asleep"]["wakes_in_ms"] > 0

        # What was asked before is still known, and wakes nobody.
        assert memory.search("leaky tap", explain=True)["embedding"] == "cached"
        assert engine.semantics.nap() is not None

        answer = memory.search("the tap is leaking", explain=True)
        assert (answer["degraded"], answer["embedding"]) == (None, "computed")
        assert answer["results"][0]["explain"]["legs"]["vector"]["rank"] == 1
        assert memory.status()["embedder"]["asleep"] is None

        fall_asleep(engine)
        vaccinated = "Our puppy was vaccinated by the veterinarian on Tuesday, and slept for the rest of the day.\n"
        memory.write("memory/animals.md", f"# Animals\n\n{vaccinated * 4}")  # more than a question has: all threads
        memory.look()
        totals = engine.documents.totals("notes", 1)
        assert totals.vectors == totals.passages
        assert memory.search("dog doctor appointment")["results"][0]["path"] == "memory/animals.md"
        assert memory.status()["health"]["state"] == "ok"

        # llama.cpp's own threads are named after the one that started them, and are as nice.
        assert len(threads_named("lane-vectors")) == default_threads()
        assert niceness_of("lane-vectors") == {max(os.getpriority(os.PRIO_PROCESS, 0), 7)}


# -- sleeping, with the fake ------------------------------------------------------------------------------


class SleepyModels(FakeModels):
    def load(self, progress: Progress) -> Any:
        return Sleeper(lambda: super(SleepyModels, self).load(progress))


class Sleepy(Memory):
    """A memory whose embedder sleeps as soon as nobody needs it."""

    @property
    def models(self) -> SleepyModels:
        return SleepyModels(self, self.recipe)


@pytest.fixture
def sleepy(tmp_path: Path) -> Sleepy:
    memory = Sleepy(tmp_path)
    memory.configure(embedder=Embedder(model="fake", idle_unload_minutes=AT_ONCE / 60))
    memory.write("memory/tea.md", "Ana prefers tea.")
    return memory


def wait_for_sleep(engine: Engine) -> None:
    eventually(lambda: engine.semantics.nap() is not None, what="the model is asleep")


def test_model_sleeps_again_after_each_use(sleepy: Sleepy) -> None:
    with sleepy.running() as engine:
        sleepy.settle()
        for number in range(3):
            wait_for_sleep(engine)
            assert sleepy.search(f"tea {number}")["degraded"] is None
        wait_for_sleep(engine)


def test_work_that_needs_no_vector_does_not_wake_the_model(sleepy: Sleepy) -> None:
    with sleepy.running() as engine:
        sleepy.settle()
        wait_for_sleep(engine)
        loads: list[object] = []
        former, sleepy.load = sleepy.load, lambda progress: loads.append(1) or former(progress)  # type: ignore[func-returns-value]
        for kind in ("maintain", "verify", "calibrate", "repair"):
            engine.queue.enqueue(kind)
        engine.retry_failures()
        (sleepy.root / "memory/tea.md").unlink()
        sleepy.look()
        eventually(lambda: engine.queue.waiting_kinds() <= {"calibrate"}, what="all that can run has run")
        sleepy.status()
        assert (loads, engine.semantics.nap() is not None) == ([], True)
        sleepy.search("wake up")
        eventually(lambda: not engine.queue.waiting_kinds(), what="what waited for the model has run")
        assert loads


def test_model_that_loads_too_slowly_is_not_waited_for(sleepy: Sleepy) -> None:
    with sleepy.running() as engine:
        sleepy.settle()
        wait_for_sleep(engine)
        shelf, former = threading.Event(), sleepy.load

        def load(progress: Progress) -> FakeEmbedder:
            assert shelf.wait(60)
            return former(progress)

        sleepy.load = load
        answer = sleepy.search("tea")
        assert [hit["path"] for hit in answer["results"]] == ["memory/tea.md"]
        assert "asleep and is being loaded" in answer["degraded"]["reason"]
        shelf.set()
        eventually(lambda: sleepy.search("tea")["degraded"] is None, what="it is awake")


def test_model_whose_file_is_gone_is_brought_up_anew(sleepy: Sleepy) -> None:
    with sleepy.running() as engine:
        sleepy.settle()
        wait_for_sleep(engine)
        failing, former = threading.Event(), sleepy.load
        failing.set()

        def load(progress: Progress) -> FakeEmbedder:
            if failing.is_set():
                failing.clear()
                raise ModelMissing("the file is gone")
            return former(progress)

        sleepy.load = load
        assert "the file is gone" in sleepy.search("tea")["degraded"]["reason"]
        eventually(lambda: sleepy.search("tea")["degraded"] is None, what="it is there again")
        assert sleepy.health() == []


# -- pauses -----------------------------------------------------------------------------------------------


class Outdoors(Memory):
    """A memory on a machine whose battery and pressure are the test's."""

    def __init__(self, folder: Path, embedder: FakeEmbedder | None = None) -> None:
        super().__init__(folder, embedder)
        self.machine = folder / "machine"
        set_battery(self.machine, plugged=True)
        set_pressure(self.machine, 0)


@pytest.fixture
def outdoors(tmp_path: Path) -> Outdoors:
    return Outdoors(tmp_path)


def go_on_by(engine: Engine, index: Index) -> None:
    engine.reconfigure(replace(engine.config, index=index))


def test_on_battery_new_notes_are_found_by_their_words_and_embedded_when_plugged_in(outdoors: Outdoors) -> None:
    outdoors.write("memory/tea.md", "Ana prefers tea.")
    with outdoors.running() as engine:
        outdoors.settle()
        set_battery(outdoors.machine, plugged=False)
        go_on_by(engine, Index(pause_on_battery=True))
        outdoors.write("memory/coffee.md", "Ben prefers coffee.")
        assert outdoors.embedded_by(outdoors.look) == []
        answer = outdoors.search("coffee", explain=True)
        assert answer["results"][0]["path"] == "memory/coffee.md"
        assert (answer["degraded"], answer["paused"]) == (None, "embedding paused: on battery")
        assert answer["embedding"] == "computed"  # queries are never paused
        status = outdoors.status()
        assert (status["health"]["state"], status["embedder"]["paused"]["reason"]) == ("ok", "on battery")
        assert status["workspaces"][0]["pending"] == 1

        set_battery(outdoors.machine, plugged=True)
        eventually(lambda: outdoors.embedder.texts[-1] == "Ben prefers coffee.", what="the note is embedded")
        outdoors.settle()
        assert (outdoors.search("coffee")["paused"], outdoors.status()["embedder"]["paused"]) == (None, None)


def test_batch_in_hand_is_given_back_when_a_pause_begins_and_nothing_is_embedded_twice(tmp_path: Path) -> None:
    gate = Gate()
    outdoors = Outdoors(tmp_path, gate)
    for number in range(12):
        outdoors.write(f"memory/{number}.md", "\n\n".join(f"Note {number}, line {line}. " * 12 for line in range(4)))
    with outdoors.running() as engine:
        assert gate.entered.acquire(timeout=60)
        set_pressure(outdoors.machine, 99)
        go_on_by(engine, Index(pause_on_pressure=50))
        gate.open()
        outdoors.settle()
        assert 0 < len(gate.texts) < 48
        assert outdoors.search("note")["paused"] == "embedding paused: the machine is busy"
        assert outdoors.status()["embedder"]["paused"]["until"] is not None
        assert outdoors.health() == []
        set_pressure(outdoors.machine, 3)
        eventually(lambda: engine.generations.pending(("notes",)) == [], what="everything is embedded")
        assert len(set(gate.texts)) == len(gate.texts)


def test_pause_that_is_configured_no_more_ends_at_once(outdoors: Outdoors) -> None:
    set_battery(outdoors.machine, plugged=False)
    outdoors.configure(index=Index(pause_on_battery=True))
    outdoors.write("memory/tea.md", "Ana prefers tea.")
    with outdoors.running() as engine:
        outdoors.settle()
        assert engine.generations.pending(("notes",)) != []
        go_on_by(engine, Index())
        outdoors.settle()
        assert engine.generations.pending(("notes",)) == []


# -- giving way -------------------------------------------------------------------------------------------


def test_lane_that_embeds_is_nice_and_what_answers_queries_is_not(outdoors: Outdoors) -> None:
    outdoors.configure(index=Index(nice=7))
    with outdoors.running():
        outdoors.settle()
        outdoors.search("tea")
        own = os.getpriority(os.PRIO_PROCESS, 0)
        assert niceness_of("lane-vectors") == {max(own, 7)}
        assert niceness_of("lane-text") == niceness_of("semantics") == {own}


def niceness_of(name: str) -> set[int]:
    """Of the threads of this process that have the name."""
    return {int((task / "stat").read_text().rpartition(")")[2].split()[16]) for task in threads_named(name)}


def threads_named(name: str) -> list[Path]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # one that has ended meanwhile
            found += [task] if (task / "comm").read_text().strip() == name else []
    return found
