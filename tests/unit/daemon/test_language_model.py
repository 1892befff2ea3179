"""From the [llm] section to the model that it names, and where the key comes from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.config import Config, Llm
from memoryd.daemon.config_file import load_config
from memoryd.daemon.language_model import make_language_model
from memoryd.jobs.llm.protocol import Message
from memoryd.store.errors import ConfigInvalid, LanguageModelMissing, LanguageModelRefused, ModelMissing
from tests.support.chat_server import ChatServer, answer, run_chat_server

HELLO = [Message("user", "Hello!")]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with run_chat_server() as server:
        yield server


def ask(settings: Llm, **environ: str) -> str:
    with closing(make_language_model(settings, environ)) as model:
        return model.complete(HELLO, max_tokens=4, timeout_s=60)


def remote(server: ChatServer, **options: Any) -> Llm:
    return Llm(provider="openai-compatible", model="small", base_url=server.url, **options)


def test_by_default_there_is_none_and_the_remedy_is_told() -> None:
    with pytest.raises(LanguageModelMissing) as caught:
        ask(Config().llm)
    assert "llm.provider" in (caught.value.hint or "")


def test_local_model_is_looked_for_where_it_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"small\.gguf"):
        ask(Llm(provider="local", model=str(tmp_path / "small.gguf")))


def test_key_comes_from_the_variable(server: ChatServer) -> None:
    server.dictated.append(answer("yes"))
    assert ask(remote(server, api_key_env="KEY"), KEY=" secret\n") == "yes"
    assert server.headers[0]["authorization"] == "Bearer secret"


def test_key_comes_from_the_file_and_may_change(server: ChatServer, tmp_path: Path) -> None:
    file = tmp_path / "key"
    server.dictated += [answer("one"), answer("two")]
    with closing(make_language_model(remote(server, api_key_file=str(file)), {})) as model:
        for key in ("first", "second"):
            file.write_text(f"{key}\n")
            model.complete(HELLO, max_tokens=4, timeout_s=60)
    assert [headers["authorization"] for headers in server.headers] == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("value", ["", " \n", "two words", "ключ", "line\nbreak"])
def test_what_is_no_key_is_not_sent_and_not_shown(server: ChatServer, tmp_path: Path, value: str) -> None:
    file = tmp_path / "key"
    file.write_text(value, encoding="utf-8")
    for settings in (remote(server, api_key_env="KEY"), remote(server, api_key_file=str(file))):
        with pytest.raises(LanguageModelRefused, match="holds no key") as caught:
            ask(settings, KEY=value)
        assert not value.strip() or value not in caught.value.message
    assert server.requests == []


def test_missing_file_is_told(server: ChatServer, tmp_path: Path) -> None:
    with pytest.raises(LanguageModelRefused, match="No such file") as caught:
        ask(remote(server, api_key_file=str(tmp_path / "absent")))
    assert "llm.api_key_file" in (caught.value.hint or "")


def test_key_comes_from_the_service_credential(server: ChatServer, tmp_path: Path) -> None:
    (tmp_path / "llm-key").write_text("secret\n")
    server.dictated.append(answer("yes"))
    settings = remote(server, api_key_credential="llm-key")
    assert ask(settings, CREDENTIALS_DIRECTORY=str(tmp_path)) == "yes"
    assert server.headers[0]["authorization"] == "Bearer secret"
    for environ in ({}, {"CREDENTIALS_DIRECTORY": str(tmp_path / "absent")}):
        with pytest.raises(LanguageModelRefused) as caught:
            ask(settings, **environ)
        assert "LoadCredential=llm-key:FILE" in (caught.value.hint or "")


# -- what the configuration refuses -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('provider = "local"', "a .gguf as llm.model"),
        ('provider = "local"\nmodel = "gpt-x"', "a .gguf as llm.model"),
        ('provider = "openai-compatible"\nmodel = "gpt-x"', "llm.base_url"),
        ('provider = "ollama"', "with llm.model"),
        ('provider = "ollama"\nmodel = "x"\nbase_url = "127.0.0.1:11434"', "http:// or https://"),
        ('provider = "openai-compatible"\nbase_url = "http://127.0.0.1/v1"', "with llm.model"),
        ('provider = "openai-compatible"\nmodel = "x"\nbase_url = "127.0.0.1/v1"', "http:// or https://"),
        (
            'provider = "openai-compatible"\nmodel = "x"\nbase_url = "https://me:pw@host/v1"',
            "without user and password",
        ),
        ('api_key_env = "sk-3b1c0ffee"', "the name of an environment variable"),
        ('api_key_credential = "../sk-3b1c0ffee"', "the name of a credential"),
        ('provider = "openai"', "openai-compatible"),
    ],
)
def test_section_that_cannot_work_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "config.toml").write_text(f"[llm]\n{text}\n")
    with pytest.raises(ConfigInvalid) as caught:
        load_config(tmp_path / "config.toml", {"HOME": str(tmp_path)}, tmp_path)
    (problem,) = caught.value.problems
    assert said in problem
    assert "sk-" not in problem
    assert "pw" not in problem


def test_complete_sections_are_taken(tmp_path: Path) -> None:
    for text in (
        'provider = "local"\nmodel = "models/small.gguf"',
        'provider = "ollama"\nmodel = "qwen3:4b"',
        'provider = "ollama"\nmodel = "qwen3:4b"\nbase_url = "http://box:11434"',
        'provider = "openai-compatible"\nmodel = "x"\nbase_url = "http://127.0.0.1:11434/v1"\napi_key_env = "KEY"',
    ):
        (tmp_path / "config.toml").write_text(f"[llm]\n{text}\n")
        load_config(tmp_path / "config.toml", {"HOME": str(tmp_path)}, tmp_path)
