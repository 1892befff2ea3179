"""The configured language model. Nothing is loaded or asked before somebody needs an answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from memoryd.daemon.config import Llm
from memoryd.jobs.keys import KeyPlace
from memoryd.jobs.llm.absent import AbsentModel
from memoryd.jobs.llm.local import LocalModel
from memoryd.jobs.llm.openai import OpenAiModel
from memoryd.jobs.llm.protocol import LanguageModel
from memoryd.store.errors import LanguageModelRefused


def make_language_model(settings: Llm, environ: Mapping[str, str]) -> LanguageModel:
    match settings.provider:
        case "local":
            return LocalModel(Path(settings.model), threads=settings.threads)
        case "openai-compatible":
            read_key = _key_place(settings).reader(environ, LanguageModelRefused)
            return OpenAiModel(settings.base_url, settings.model, read_key)
        case _:
            return AbsentModel()


def _key_place(settings: Llm) -> KeyPlace:
    return KeyPlace(
        "llm",
        "the language model",
        variable=settings.api_key_env,
        file=settings.api_key_file,
        credential=settings.api_key_credential,
    )
