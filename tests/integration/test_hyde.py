"""A search by a hypothetical answer, from the engine down to real models."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.daemon.app import embedder_loader
from memoryd.daemon.config import Embedder, Hyde, Llm, Search
from memoryd.jobs.models.catalogue import DEFAULT_MODEL
from tests.support.chat_server import ChatServer, Dictated, answer, run_chat_server
from tests.support.engine import Memory

KEY_NOTE = "The spare key hangs behind the boiler.\n"


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = Memory(tmp_path)
    memory.write("memory/house.md", KEY_NOTE)
    memory.write("memory/boat.md", "The ferry leaves at nine.\n")
    return memory


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with run_chat_server() as server:
        yield server


def ask_over(memory: Memory, server: ChatServer, **hyde: object) -> None:
    memory.configure(
        llm=Llm(provider="openai-compatible", model="small", base_url=server.url),
        search=Search(hyde=Hyde(**hyde)),  # type: ignore[arg-type]
    )


def vector_rank(found: dict[str, object], path: str) -> int | None:
    for hit in found["results"]:  # type: ignore[attr-defined]
        if hit["path"] == path:
            place = hit["explain"]["legs"].get("vector")
            return place["rank"] if place else None
    return None


def test_real_models_answer_by_a_hypothesis(
    tmp_path: Path, default_model: Path, models_dir: Path, small_llm: Path
) -> None:
    memory = Memory(tmp_path)
    memory.write("memory/plumbing.md", "# House\n\nThe faucet in the bathroom drips; a washer must be replaced.\n")
    memory.write("memory/boat.md", "The ferry leaves at nine.\n")
    memory.configure(
        embedder=Embedder(model=DEFAULT_MODEL),
        llm=Llm(provider="local", model=str(small_llm)),
        search=Search(hyde=Hyde(enabled=True, timeout_s=20, max_tokens=32)),
    )
    memory.load = embedder_loader(memory.config, models_dir)  # type: ignore[assignment]
    with memory.running():
        memory.settle()
        found = memory.search("what is wrong with the tap in the bathroom?", explain=True)
        assert found["degraded"] is None
        assert found["hyde"]["used"] is True
        assert len(found["hyde"]["text"].split()) > 3
        assert found["timings_ms"]["hyde"] > 0
        assert vector_rank(found, "memory/plumbing.md") == 1
        plain = memory.search("what is wrong with the tap in the bathroom?", explain=True, hyde=False)
        assert plain["hyde"] is None
        assert "hyde" not in plain["timings_ms"]


def test_the_hypothesis_finds_what_the_query_does_not_say(memory: Memory, server: ChatServer) -> None:
    ask_over(memory, server, mode="replace")
    with memory.running():
        memory.settle()
        query = "getting in without Ana"
        plain = memory.search(query, explain=True)
        assert plain["hyde"] is None
        assert server.requests == []
        server.dictated.append(answer("The spare key hangs behind the boiler."))
        found = memory.search(query, explain=True, hyde=True)
        assert found["hyde"] == {"used": True, "text": "The spare key hangs behind the boiler."}
        assert vector_rank(found, "memory/house.md") == 1
        (hit,) = [hit for hit in found["results"] if hit["path"] == "memory/house.md"]
        assert hit["explain"]["legs"]["vector"]["score"] == pytest.approx(1.0, abs=1e-3)
        assert memory.search(query, hyde=True)["hyde"] == {"used": True}  # the text only where it is explained
        assert len(server.requests) == 1


def test_failure_gives_the_plain_query_s_answer_and_says_so(memory: Memory, server: ChatServer) -> None:
    ask_over(memory, server, enabled=True)
    with memory.running():
        memory.settle()
        plain = memory.search("spare key", hyde=False)
        server.dictated.append(Dictated(500, b"oops"))
        found = memory.search("spare key")
        assert found["results"] == plain["results"]
        assert found["degraded"] is None
        assert found["hyde"]["used"] is False
        assert "500" in found["hyde"]["reason"]
        assert found["hyde"]["hint"]


def test_without_a_language_model_the_remedy_is_told(memory: Memory) -> None:
    with memory.running():
        memory.settle()
        found = memory.search("spare key", hyde=True)
        assert found["results"][0]["path"] == "memory/house.md"
        assert found["hyde"]["used"] is False
        assert "no language model" in found["hyde"]["reason"]
        assert "llm.provider" in found["hyde"]["hint"]


def test_slow_model_holds_up_neither_other_queries_nor_writes(memory: Memory, server: ChatServer) -> None:
    ask_over(memory, server, timeout_s=20)
    server.silent.set()
    with memory.running():
        memory.settle()
        slow: list[dict[str, object]] = []
        waiting = threading.Thread(target=lambda: slow.append(memory.search("spare key", hyde=True)))
        waiting.start()
        while not server.requests:
            assert waiting.is_alive()
        assert memory.search("spare key")["results"]
        memory.write("memory/new.md", "A heron stood on the roof.\n")
        memory.look()
        assert memory.found("heron") == ["memory/new.md"]
        assert slow == []
        server.dictated.append(answer("By the boiler."))
        server.silent.clear()
        waiting.join()
        assert slow[0]["hyde"] == {"used": True}


def test_time_out_falls_back(memory: Memory, server: ChatServer) -> None:
    ask_over(memory, server, timeout_s=0.2)
    server.silent.set()
    with memory.running():
        memory.settle()
        found = memory.search("spare key", hyde=True)
        assert found["results"][0]["path"] == "memory/house.md"
        assert "longer than 0.2 s" in found["hyde"]["reason"]


def test_stopping_does_not_wait_for_the_model(memory: Memory, server: ChatServer) -> None:
    ask_over(memory, server, timeout_s=20)
    server.silent.set()
    answers: list[dict[str, object]] = []
    with memory.running() as engine:
        memory.settle()
        waiting = threading.Thread(target=lambda: answers.append(memory.search("spare key", hyde=True)))
        waiting.start()
        while not server.requests:
            assert waiting.is_alive()
        engine.llm.close()  # the first thing that stopping does to what queries use
        waiting.join()
        assert "closed" in answers[0]["hyde"]["reason"]  # type: ignore[index]
