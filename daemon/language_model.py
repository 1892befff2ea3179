"""The configured language model. Nothing is loaded or asked before somebody needs an answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from memoryd.daemon.config import Llm
from memoryd.jobs.keys import KeyPlace, ReadKey
from memoryd.jobs.llm.absent import AbsentModel
from memoryd.jobs.llm.local import LocalModel
from memoryd.jobs.llm.ollama import OllamaModel
from memoryd.jobs.llm.openai import OpenAiModel
from memoryd.jobs.llm.protocol import LanguageModel
from memoryd.store.errors import LanguageModelRefused


def make_language_model(settings: Llm, environ: Mapping[str, str]) -> LanguageModel:
    match settings.provider:
        case "local":
            return LocalModel(Path(settings.model), threads=settings.threads)
        case "openai-compatible":
            return OpenAiModel(settings.base_url, settings.model, _read_key(settings, environ))
        case "ollama":
            return OllamaModel(settings.base_url, settings.model, _read_key(settings, environ))
        case _:
            return AbsentModel()


def model_name(settings: Llm) -> str:
    """What a model's answers are kept by: another one is asked again."""
    if settings.provider != "local":
        return f"{settings.provider}:{settings.model}"
    file = Path(settings.model)
    try:
        return f"local:{file.name}:{file.stat().st_size}"
    except OSError:  # asking will say so
        return f"local:{file.name}"


def _read_key(settings: Llm, environ: Mapping[str, str]) -> ReadKey | None:
    place = KeyPlace(
        "llm",
        "the language model",
        variable=settings.api_key_env,
        file=settings.api_key_file,
        credential=settings.api_key_credential,
    )
    return place.reader(environ, LanguageModelRefused)
