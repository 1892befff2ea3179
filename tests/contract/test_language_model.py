"""What every language model guarantees: a GGUF inside this process, and one behind each HTTP API."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from memoryd.jobs.llm.local import LocalModel
from memoryd.jobs.llm.ollama import OllamaModel
from memoryd.jobs.llm.openai import OpenAiModel
from memoryd.jobs.llm.protocol import LanguageModel, Message
from memoryd.store.errors import LanguageModelUnavailable, MemorydError
from tests.support.chat_server import ChatServer, run_chat_server
from tests.support.waiting import eventually

PATIENT = 100.0  # seconds: a busy machine is no reason to fail
LONG = [Message("user", "Tell a very long story about a river, a mill and the people who live there.")]


@pytest.fixture(scope="module")
def local(small_llm: Path) -> Iterator[LocalModel]:
    model = LocalModel(small_llm)
    yield model
    model.close()


@pytest.fixture(params=["local", "openai-compatible", "ollama"])
def model(request: pytest.FixtureRequest, local: LocalModel) -> Iterator[LanguageModel]:
    if request.param == "local":
        yield local
        return
    with run_chat_server(local) as server:
        remote = make_remote(request.param, server)
        yield remote
        remote.close()


def make_remote(provider: str, server: ChatServer) -> LanguageModel:
    if provider == "ollama":
        return OllamaModel(server.root, "smollm2")
    return OpenAiModel(server.url, "smollm2")


@dataclass
class Own:
    """A model that the test may close."""

    model: LanguageModel
    is_asked: Callable[[], bool]


@pytest.fixture(params=["local", "openai-compatible", "ollama"])
def own(request: pytest.FixtureRequest, local: LocalModel, small_llm: Path) -> Iterator[Own]:
    if request.param == "local":
        made = LocalModel(small_llm)
        made.complete([Message("user", "Hello!")], max_tokens=1, timeout_s=PATIENT)  # loaded
        yield Own(made, made._turn.locked)
        made.close()
        return
    with run_chat_server(local) as server:
        server.silent.set()
        yield Own(make_remote(request.param, server), lambda: bool(server.requests))


def test_question_is_answered(model: LanguageModel) -> None:
    messages = [Message("system", "You are a helpful AI assistant."), Message("user", "What is the capital of France?")]
    assert "Paris" in model.complete(messages, max_tokens=24, timeout_s=PATIENT)


def test_earlier_turns_count(model: LanguageModel) -> None:
    messages = [
        Message("user", "My name is Ottilie. What is my name?"),
        Message("assistant", "Your name is Ottilie."),
        Message("user", "Say my name once more."),
    ]
    assert "Ottilie" in model.complete(messages, max_tokens=24, timeout_s=PATIENT)


def test_answer_ends_with_max_tokens(model: LanguageModel) -> None:
    short = model.complete(LONG, max_tokens=3, timeout_s=PATIENT)
    longer = model.complete(LONG, max_tokens=12, timeout_s=PATIENT)
    assert 0 < len(short) < len(longer)
    assert longer.startswith(short)


def test_same_question_gets_the_same_answer(model: LanguageModel) -> None:
    first = model.complete(LONG, max_tokens=8, timeout_s=PATIENT)
    model.complete([Message("user", "Something else.")], max_tokens=5, timeout_s=PATIENT)
    assert model.complete(LONG, max_tokens=8, timeout_s=PATIENT) == first


def test_temperature_changes_what_is_said(model: LanguageModel) -> None:
    cold = model.complete(LONG, max_tokens=12, timeout_s=PATIENT)
    assert model.complete(LONG, max_tokens=12, timeout_s=PATIENT, temperature=2.0) != cold


@pytest.mark.parametrize("text", ["", "记忆在哪里？", "😀 👩‍💻", "<|im_end|>", "\x00", "\ud800"])
def test_strange_text_is_survived(model: LanguageModel, text: str) -> None:
    assert isinstance(model.complete([Message("user", text)], max_tokens=4, timeout_s=PATIENT), str)


def test_answer_that_takes_too_long_is_given_up_and_the_next_one_is_whole(model: LanguageModel) -> None:
    began = time.monotonic()
    whole = model.complete(LONG, max_tokens=60, timeout_s=PATIENT)
    took = time.monotonic() - began
    began = time.monotonic()
    with pytest.raises(LanguageModelUnavailable, match="longer than") as caught:
        model.complete(LONG, max_tokens=60, timeout_s=took / 4)
    assert time.monotonic() - began < took
    assert caught.value.hint
    assert model.complete(LONG, max_tokens=60, timeout_s=PATIENT) == whole


def test_several_threads_may_ask_at_once(model: LanguageModel) -> None:
    alone = model.complete(LONG, max_tokens=10, timeout_s=PATIENT)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: model.complete(LONG, max_tokens=10, timeout_s=PATIENT), range(4)))
    assert answers == [alone] * 4


def test_closing_ends_an_answer_that_is_under_way(own: Own) -> None:
    outcome: list[MemorydError] = []

    def ask() -> None:
        with pytest.raises(LanguageModelUnavailable, match="closed") as caught:
            own.model.complete(LONG, max_tokens=1500, timeout_s=PATIENT)
        outcome.append(caught.value)

    thread = threading.Thread(target=ask)
    thread.start()
    eventually(own.is_asked, what="the model is asked")
    own.model.close()
    eventually(lambda: outcome, what="the question is let go")
    thread.join()
    assert outcome[0].hint


def test_closed_model_says_so_and_can_be_closed_again(own: Own) -> None:
    own.model.close()
    own.model.close()
    with pytest.raises(LanguageModelUnavailable, match="closed"):
        own.model.complete(LONG, max_tokens=4, timeout_s=PATIENT)
