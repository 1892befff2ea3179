"""A provider that fails: what it costs, what is told, and that everything resumes. Real queue, ledger and LanceDB."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.config import Embedder as Settings
from memoryd.daemon.configured_models import ConfiguredModels
from memoryd.daemon.engine import Engine
from memoryd.store.protocols import Vectors
from tests.support.clock import SetClock
from tests.support.embedding_apis import OPENAI
from tests.support.embedding_server import KEY, Dictated, EmbeddingServer, run_embedding_server
from tests.support.engine import Memory
from tests.support.fake_embedder import DenseEmbedder
from tests.support.waiting import eventually

DOWN = Dictated(503, {"error": {"message": "The server is overloaded", "type": "server_error", "code": None}})
REFUSED = Dictated(401, {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}})
FILES, SECTIONS = 40, 250


class Outage:
    """A memory that is embedded by a provider of the test's own, at a time of the test's own."""

    def __init__(self, folder: Path, server: EmbeddingServer, **settings: Any) -> None:
        self.server = server
        self.clock = SetClock(1_800_000_000.0)
        self.key_file = folder / "key"
        self.key_file.write_text(KEY)
        self.settings = Settings(provider="openai", base_url=server.url, api_key_file=str(self.key_file), **settings)
        self.memory = Memory(folder)
        self.memory.clock = self.clock
        self.memory.configure(embedder=self.settings)
        self.memory.load = ConfiguredModels(self.settings, folder / "models", {}, self.clock)  # type: ignore[assignment]

    @contextmanager
    def running(self) -> Iterator[Engine]:
        with self.memory.running() as engine:
            yield engine

    def pass_time(self, seconds: float) -> None:
        """Let the time pass, and the lane do what is due at it."""
        self.clock.move(seconds)
        self.memory.live.queue.notify()

    def wait_until_held(self) -> None:
        eventually(lambda: self.memory.live.semantics.hold(), what="the provider is held back")

    def wait_for_texts(self) -> None:
        queue = self.memory.live.queue
        eventually(lambda: not queue.waiting_kinds() & {"index", "reconcile"}, what="all files are read")


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with run_embedding_server(OPENAI, DenseEmbedder()) as server:
        yield server


def write_notes(memory: Memory, files: int, sections: int) -> None:
    for file in range(files):
        lines = [f"## Entry {file} {n}\n\nThe gauge {file} of station {n} was read.\n" for n in range(sections)]
        memory.write(f"memory/{file}.md", "\n".join(lines))


def test_outage_of_ten_minutes_costs_few_requests_and_ten_thousand_passages_resume(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    outage = Outage(tmp_path, server)
    memory = outage.memory
    with outage.running() as engine:
        eventually(engine.semantics.ready, what="the provider is there")
        server.always = DOWN
        before = len(server.requests)
        write_notes(memory, FILES, SECTIONS)
        engine.look_at_disk()
        outage.wait_for_texts()
        outage.wait_until_held()
        for _second in range(0, 600, 5):
            outage.pass_time(5.0)
            outage.wait_until_held()  # asked again where that was due, and failed again
            answer = memory.search("station 7")
            assert answer["results"], "words are found all the same"
            assert "503" in answer["degraded"]["reason"]
        assert 2 <= len(server.requests) - before <= 20
        assert engine.queue.depths()[("embed", "queued")] == FILES
        assert engine.queue.failures() == []  # it is not the notes' fault: none is parked, none has used up a try
        assert "embedder_held" in memory.health()
        assert engine.is_current(), "who waits for the index does not wait for the provider"

        server.always = None
        server.texts.clear()
        outage.pass_time(300.0)
        eventually(engine.semantics.can_embed, what="the provider is asked again")
        memory.settle()
        totals = engine.documents.totals("notes", engine.semantics.serving().generation.id)
        assert totals.vectors == totals.passages >= 10_000
        assert len(engine.semantics.index().ids()) == totals.vectors
        documents = [text for text in server.texts if text.startswith("## Entry")]  # the others measure noise
        assert len(documents) == len(set(documents)) == totals.vectors, "each is paid for once"
        assert memory.search("station 7")["degraded"] is None
        assert "embedder_held" not in memory.health()


def test_key_that_is_refused_is_tried_once_and_again_when_it_has_changed(
    tmp_path: Path, server: EmbeddingServer, capsys: pytest.CaptureFixture[str]
) -> None:
    outage = Outage(tmp_path, server)
    memory = outage.memory
    with outage.running() as engine:
        eventually(engine.semantics.ready, what="the provider is there")
        server.key = "another-key"
        before = len(server.requests)
        write_notes(memory, 40, 2)
        engine.look_at_disk()
        outage.wait_for_texts()
        eventually(lambda: any(failure.parked for failure in engine.queue.failures()), what="work is parked")
        outage.wait_until_held()
        for _minute in range(14):
            outage.pass_time(60.0)
            answer = memory.search("station 1")
            assert "401" in answer["degraded"]["reason"]
            assert "key" in answer["degraded"]["hint"]
        assert len(server.requests) - before <= 2, "it is not asked in a loop"
        assert KEY not in str(memory.status()) + str(answer) + capsys.readouterr().err

        outage.key_file.write_text("another-key")
        engine.retry_failures()
        memory.settle()
        totals = engine.documents.totals("notes", engine.semantics.serving().generation.id)
        assert totals.vectors == totals.passages > 0
        assert memory.search("station 1")["degraded"] is None


def test_provider_that_is_down_at_the_start_is_told_and_comes_up_later(tmp_path: Path, server: EmbeddingServer) -> None:
    server.always = DOWN
    outage = Outage(tmp_path, server)
    memory = outage.memory
    memory.write("memory/a.md", "The boat is green.\n")
    with outage.running() as engine:
        eventually(lambda: engine.semantics.status().state == "failed", what="it failed")
        memory.settle()
        assert memory.found("boat") == ["memory/a.md"]
        assert "503" in memory.search("boat")["degraded"]["reason"]
        assert "embedder_failed" in memory.health()
        server.always = None
        engine.semantics.retry_now()
        eventually(engine.semantics.ready, what="it came up")
        memory.settle()
        assert memory.search("boat")["degraded"] is None


def test_budget_of_the_day_holds_notes_back_and_lets_queries_through(tmp_path: Path, server: EmbeddingServer) -> None:
    outage = Outage(tmp_path, server, daily_tokens=1000)
    memory = outage.memory
    with outage.running() as engine:
        eventually(engine.semantics.ready, what="the provider is there")
        write_notes(memory, 4, 60)
        engine.look_at_disk()
        outage.wait_for_texts()
        outage.wait_until_held()
        spent = len(server.requests)
        assert memory.search("station 1")["degraded"] is None
        (reason,) = [each for each in memory.status()["health"]["reasons"] if each["code"] == "embedder_held"]
        assert "waits to be embedded" in reason["message"]
        assert "daily_tokens" in reason["message"]
        outage.pass_time(3600.0)
        assert len(server.requests) == spent + 1, "the query alone"

    with outage.running() as engine:  # a restart does not begin the day anew
        eventually(engine.semantics.ready, what="the provider is there")
        outage.wait_until_held()
        assert engine.queue.depths().get(("embed", "queued"))


def test_one_note_that_is_refused_is_parked_and_the_others_are_embedded(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    server.forbidden = "forbidden"
    outage = Outage(tmp_path, server)
    memory = outage.memory
    for n in range(6):
        memory.write(f"memory/{n}.md", f"Note {n} is {'forbidden' if n == 3 else 'harmless'}.\n")
    with outage.running() as engine:
        memory.settle()
        (failure,) = engine.queue.failures()
        assert (failure.path, failure.parked) == ("memory/3.md", True)
        assert "not allowed" in failure.reason
        totals = engine.documents.totals("notes", engine.semantics.serving().generation.id)
        assert (totals.passages, totals.vectors) == (6, 5)
        assert engine.semantics.hold() is None


def test_provider_that_refuses_everything_is_not_asked_for_every_note(tmp_path: Path, server: EmbeddingServer) -> None:
    outage = Outage(tmp_path, server)
    memory = outage.memory
    with outage.running() as engine:
        eventually(engine.semantics.ready, what="the provider is there")
        server.always = Dictated(400, {"error": {"message": "Bad request", "type": "invalid_request_error"}})
        before = len(server.requests)
        write_notes(memory, 100, 1)
        engine.look_at_disk()
        outage.wait_for_texts()
        outage.wait_until_held()
        outage.pass_time(600.0)
        memory.settle()
        assert len(server.requests) - before <= 5


def test_lane_goes_on_by_itself_when_the_wait_is_over(tmp_path: Path, server: EmbeddingServer) -> None:
    """At the time of this machine: nobody nudges the lane."""
    outage = Outage(tmp_path, server)
    outage.memory.clock = time.time
    outage.memory.load = ConfiguredModels(outage.settings, tmp_path / "models", {})  # type: ignore[assignment]
    with outage.running() as engine:
        eventually(engine.semantics.ready, what="the provider is there")
        server.dictated.append(DOWN)
        outage.memory.write("memory/a.md", "The boat is green.\n")
        engine.look_at_disk()
        eventually(lambda: not server.dictated, what="it failed once")
        generation = engine.semantics.serving().generation.id
        eventually(lambda: engine.documents.totals("notes", generation).vectors == 1, what="the note is embedded")


def test_status_says_that_notes_leave_the_machine(
    tmp_path: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.port}")  # the way to a host that does not exist
    monkeypatch.setenv("NO_PROXY", "")
    outage = Outage(tmp_path, server)
    settings = replace(outage.settings, base_url="http://embeddings.invalid/v1")
    outage.memory.configure(embedder=settings)
    outage.memory.load = ConfiguredModels(settings, tmp_path / "models", {}, outage.clock)  # type: ignore[assignment]
    outage.memory.write("memory/a.md", "The boat is green.\n")
    with outage.running():
        outage.memory.settle()
        status = outage.memory.status()
        assert status["embedder"]["sends_to"] == "embeddings.invalid"
        assert status["notes"] == ["Notes and queries are sent to embeddings.invalid to be embedded (as configured)"]
        assert outage.memory.search("boat")["degraded"] is None
        assert "The boat is green." in server.texts


class LastWord(DenseEmbedder):
    """Answers once; then its server is down."""

    server: EmbeddingServer

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.server.always = DOWN
        return super().embed_documents(texts)


def test_outage_in_the_middle_of_a_switch_is_told_and_the_model_before_is_searched_on(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    embedder = LastWord()
    embedder.server = server
    server.embedder = embedder
    outage = Outage(tmp_path, server)
    memory = outage.memory
    remote = memory.load
    memory.load = lambda _progress: memory.embedder
    for n in range(20):
        memory.write(f"memory/{n}.md", f"The boat number {n} is green.\n")
    with outage.running() as engine:
        memory.settle()
        engine.semantics.use(remote)  # type: ignore[arg-type]
        eventually(lambda: "switch_failing" in memory.health(), what="the switch does not get on")
        assert memory.search("boat")["degraded"] is None
        (reason,) = [each for each in memory.status()["health"]["reasons"] if each["code"] == "switch_failing"]
        assert "503" in reason["message"]
        asked = len(server.requests)
        memory.look()
        assert len(server.requests) == asked

        server.embedder = DenseEmbedder()
        server.always = None
        outage.pass_time(10.0)
        eventually(
            lambda: engine.semantics.status().model == "openai:text-embedding-3-small",
            what="the service is searched by",
        )
        memory.settle()
        totals = engine.documents.totals("notes", engine.semantics.serving().generation.id)
        assert totals.vectors == totals.passages == 20
