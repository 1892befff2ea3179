"""An OpenAI-compatible endpoint on a real port: what is sent, and what its failures are called."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterator
from contextlib import closing

import pytest

from memoryd.jobs.http import is_loopback
from memoryd.jobs.llm.openai import OpenAiModel
from memoryd.jobs.llm.protocol import Form, Message
from memoryd.store.errors import LanguageModelRefused, LanguageModelUnavailable, MemorydError, PromptTooLong
from tests.support.chat_server import ChatServer, Dictated, answer, run_chat_server

KEY = "sk-3b1c0ffee"
ASKED = [Message("system", "Be short."), Message("user", "Où est la clé ?")]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with run_chat_server() as server:
        yield server


@pytest.fixture
def model(server: ChatServer) -> Iterator[OpenAiModel]:
    with closing(OpenAiModel(server.url, "small", lambda: KEY)) as model:
        yield model


def ask(model: OpenAiModel, timeout_s: float = 60.0) -> str:
    return model.complete(ASKED, max_tokens=40, timeout_s=timeout_s)


def error(code: str | None, message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}}).encode()


def test_the_request_is_what_the_api_documents(server: ChatServer, model: OpenAiModel) -> None:
    server.dictated.append(answer("Près de la porte."))
    assert ask(model) == "Près de la porte."
    assert server.requests == [
        {
            "model": "small",
            "messages": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": "Où est la clé ?"},
            ],
            "max_tokens": 40,
            "temperature": 0.0,
        }
    ]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_without_a_key_none_is_sent_and_a_slash_too_many_does_not_matter(server: ChatServer) -> None:
    server.dictated.append(answer("yes"))
    with closing(OpenAiModel(f"{server.url}/", "small")) as model:
        assert ask(model) == "yes"
    assert "authorization" not in server.headers[0]


def test_model_that_only_thought_said_nothing(server: ChatServer, model: OpenAiModel) -> None:
    server.dictated.append(answer(None))
    assert ask(model) == ""


def test_model_that_wants_the_later_name_of_max_tokens_gets_it(server: ChatServer, model: OpenAiModel) -> None:
    refusal = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    server.dictated += [Dictated(400, error("unsupported_parameter", refusal)), answer("yes")]
    assert ask(model) == "yes"
    assert server.requests[1]["max_completion_tokens"] == 40
    assert not server.requests[1].keys() & {"max_tokens", "temperature"}


FORM = Form(grammar='root ::= "x"', schema={"type": "object", "properties": {"facts": {"type": "array"}}})


def test_form_is_sent_as_a_schema(server: ChatServer, model: OpenAiModel) -> None:
    server.dictated.append(answer("{}"))
    assert model.complete(ASKED, max_tokens=40, timeout_s=60, form=FORM) == "{}"
    wanted = server.requests[0]["response_format"]
    assert wanted["type"] == "json_schema"
    assert wanted["json_schema"]["schema"] == FORM.schema


def test_server_that_does_not_know_forms_is_asked_without_and_not_bothered_again(
    server: ChatServer, model: OpenAiModel
) -> None:
    refusal = Dictated(400, error(None, "response_format.type must be json_object"))
    server.dictated += [refusal, answer("first"), answer("second")]
    assert model.complete(ASKED, max_tokens=40, timeout_s=60, form=FORM) == "first"
    assert model.complete(ASKED, max_tokens=40, timeout_s=60, form=FORM) == "second"
    assert ["response_format" in request for request in server.requests] == [True, False, False]


def test_request_that_is_refused_with_its_form_and_without_is_an_error(server: ChatServer, model: OpenAiModel) -> None:
    server.dictated += [Dictated(400, error(None, "no such thing"))] * 2
    with pytest.raises(LanguageModelRefused, match="no such thing"):
        model.complete(ASKED, max_tokens=40, timeout_s=60, form=FORM)
    server.dictated.append(answer("{}"))
    model.complete(ASKED, max_tokens=40, timeout_s=60, form=FORM)
    assert "response_format" in server.requests[2]  # it was not the form's fault


@pytest.mark.parametrize(
    ("dictated", "kind", "said", "remedy"),
    [
        (
            Dictated(401, error("invalid_api_key", f"Incorrect API key provided: {KEY}.")),
            LanguageModelRefused,
            "answered 401",
            "llm.api_key_env",
        ),
        (Dictated(403, b"forbidden"), LanguageModelRefused, "answered 403", "llm.api_key_env"),
        (
            Dictated(404, error("model_not_found", "The model 'small' does not exist")),
            LanguageModelRefused,
            "The model 'small' does not exist",
            "llm.model",
        ),
        (
            Dictated(400, error(None, "This model's maximum context length is 2048 tokens.")),
            PromptTooLong,
            "maximum context length",
            "less at a time",
        ),
        (
            Dictated(429, error("rate_limit_exceeded", "Rate limit reached"), {"Retry-After": "20"}),
            LanguageModelUnavailable,
            "Rate limit reached",
            "in 20 s",
        ),
        (
            Dictated(429, error("insufficient_quota", "You exceeded your current quota")),
            LanguageModelRefused,
            "quota",
            "quota",
        ),
        (Dictated(500, b"<html>oops</html>"), LanguageModelUnavailable, "answered 500", "later"),
        (Dictated(503, error(None, f"busy with {KEY}")), LanguageModelUnavailable, "busy with …", "later"),
        (Dictated(302, b"", {"Location": "http://127.0.0.1:1/"}), LanguageModelRefused, "answered 302", "llm.base_url"),
        (Dictated(200, b'{"choices": [{"mess'), LanguageModelRefused, "as the API does", "llm.base_url"),
        (Dictated(200, b"<html>hello</html>"), LanguageModelRefused, "as the API does", "llm.base_url"),
        (Dictated(200, b'{"choices": []}'), LanguageModelRefused, "as the API does", "llm.base_url"),
        (Dictated(200, b"[" * 100_000), LanguageModelRefused, "as the API does", "llm.base_url"),
        (
            Dictated(200, b'{"choices": [{"message": {"content": ["a"]}}]}'),
            LanguageModelRefused,
            "as the API does",
            "llm.base_url",
        ),
        (Dictated(200, b"x" * 3_000_000), LanguageModelRefused, "as the API does", "llm.base_url"),
        (
            Dictated(200, answer("cut off").body, hang_up_after=20),
            LanguageModelUnavailable,
            "cannot be asked",
            "llm.base_url",
        ),
    ],
)
def test_every_failure_has_its_kind_and_its_remedy_and_hides_the_key(
    server: ChatServer, model: OpenAiModel, dictated: Dictated, kind: type[MemorydError], said: str, remedy: str
) -> None:
    server.dictated.append(dictated)
    with pytest.raises(MemorydError) as caught:
        ask(model)
    assert type(caught.value) is kind
    assert said in caught.value.message
    assert remedy in (caught.value.hint or "")
    assert KEY not in "".join(traceback.format_exception(caught.value)) + (caught.value.hint or "")
    server.dictated.append(answer("better"))
    assert ask(model) == "better"


def test_server_that_is_not_there_may_come_back() -> None:
    with run_chat_server() as gone:
        url = gone.url
    with closing(OpenAiModel(url, "small")) as model, pytest.raises(LanguageModelUnavailable) as caught:
        ask(model)
    assert url in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("slow", ["silent", "dripping"])
def test_slow_answer_is_given_up_in_time(server: ChatServer, model: OpenAiModel, slow: str) -> None:
    if slow == "silent":
        server.silent.set()
    else:
        server.dictated.append(Dictated(200, answer("at last").body, drip_s=0.05))
    whole = 0.05 * len(answer("at last").body)
    began = time.monotonic()
    with pytest.raises(LanguageModelUnavailable, match=r"longer than 0\.5 s"):
        ask(model, timeout_s=0.5)
    assert time.monotonic() - began < whole


def test_proxy_is_not_used_for_this_machine(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch, model: OpenAiModel
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    server.dictated.append(answer("direct"))
    assert ask(model) == "direct"


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("http://localhost:11434/v1", True),
        ("http://127.0.0.1/v1", True),
        ("http://[::1]:8080", True),
        ("http://127.8.8.8", True),
        ("https://api.example.com/v1", False),
        ("http://192.168.1.2/v1", False),
        ("http://localhost.example.com", False),
    ],
)
def test_which_addresses_are_this_machine_s_own(url: str, own: bool) -> None:
    assert is_loopback(url) is own
