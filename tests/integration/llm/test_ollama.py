"""Ollama's own API on a real port: what is sent, and what its failures are called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from memoryd.jobs.llm.ollama import OllamaModel
from memoryd.jobs.llm.protocol import Form, Message
from memoryd.store.errors import LanguageModelRefused, LanguageModelUnavailable, MemorydError
from tests.support.chat_server import ChatServer, Dictated, ollama_answer, run_chat_server

ASKED = [Message("system", "Be short."), Message("user", "Où est la clé ?")]
FORM = Form(grammar='root ::= "x"', schema={"type": "object"})


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with run_chat_server() as server:
        yield server


@pytest.fixture
def model(server: ChatServer) -> Iterator[OllamaModel]:
    with closing(OllamaModel(server.root, "small")) as model:
        yield model


def test_the_request_is_what_the_api_documents(server: ChatServer, model: OllamaModel) -> None:
    server.dictated.append(ollama_answer("Près de la porte."))
    assert model.complete(ASKED, max_tokens=40, timeout_s=60, form=FORM) == "Près de la porte."
    assert server.requests == [
        {
            "model": "small",
            "messages": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": "Où est la clé ?"},
            ],
            "stream": False,
            "options": {"num_predict": 40, "temperature": 0.0},
            "format": {"type": "object"},
        }
    ]
    assert "authorization" not in server.headers[0]


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/api", "/v1/"])
def test_address_may_be_written_as_other_programs_want_it(server: ChatServer, tail: str) -> None:
    server.dictated.append(ollama_answer("yes"))
    with closing(OllamaModel(f"{server.root}{tail}", "small")) as model:
        assert model.complete(ASKED, max_tokens=4, timeout_s=60) == "yes"
    assert "format" not in server.requests[0]


@pytest.mark.parametrize(
    ("dictated", "kind", "said"),
    [
        (Dictated(404, b'{"error": "model \\"small\\" not found, try pulling it first"}'), LanguageModelRefused, "404"),
        (Dictated(400, b'{"error": "invalid format"}'), LanguageModelRefused, "invalid format"),
        (Dictated(503, b'{"error": "server busy"}'), LanguageModelUnavailable, "server busy"),
        (Dictated(200, b'{"done": true}'), LanguageModelRefused, "as the API does"),
        (Dictated(200, b"<html>"), LanguageModelRefused, "as the API does"),
    ],
)
def test_every_failure_has_its_kind_and_its_remedy(
    server: ChatServer, model: OllamaModel, dictated: Dictated, kind: type[MemorydError], said: str
) -> None:
    server.dictated.append(dictated)
    with pytest.raises(MemorydError) as caught:
        model.complete(ASKED, max_tokens=4, timeout_s=60)
    assert type(caught.value) is kind
    assert said in caught.value.message
    assert caught.value.hint
