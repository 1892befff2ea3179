"""The configured language model. Nothing is loaded or asked before somebody needs an answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from memoryd.daemon.config import Llm
from memoryd.jobs.llm.absent import AbsentModel
from memoryd.jobs.llm.local import LocalModel
from memoryd.jobs.llm.ollama import OllamaModel
from memoryd.jobs.llm.openai import OpenAiModel, ReadKey
from memoryd.jobs.llm.protocol import LanguageModel
from memoryd.store.errors import LanguageModelRefused


def make_language_model(settings: Llm, environ: Mapping[str, str]) -> LanguageModel:
    match settings.provider:
        case "local":
            return LocalModel(Path(settings.model), threads=settings.threads)
        case "openai-compatible":
            return OpenAiModel(settings.base_url, settings.model, _key_reader(settings, environ))
        case "ollama":
            return OllamaModel(settings.base_url, settings.model, _key_reader(settings, environ))
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


def _key_reader(settings: Llm, environ: Mapping[str, str]) -> ReadKey | None:
    """How the key is come by, each time anew: it is kept nowhere."""
    if settings.api_key_env:
        return lambda: _checked(environ.get(settings.api_key_env, ""), f"the variable {settings.api_key_env}")
    if settings.api_key_file:
        return lambda: _checked(_read(Path(settings.api_key_file), "Correct llm.api_key_file."), settings.api_key_file)
    if settings.api_key_credential:
        return lambda: _read_credential(settings.api_key_credential, environ)
    return None


def _read_credential(name: str, environ: Mapping[str, str]) -> str:
    hint = f"Give the service LoadCredential={name}:FILE ('systemctl --user edit memoryd'), or use llm.api_key_file."
    folder = environ.get("CREDENTIALS_DIRECTORY", "")
    if not folder:
        raise LanguageModelRefused(f"memoryd was started without credentials, so there is no {name}", hint=hint)
    return _checked(_read(Path(folder) / name, hint), f"the credential {name}")


def _read(file: Path, hint: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise LanguageModelRefused(
            f"the key of the language model cannot be read from {file}: {reason}", hint=hint
        ) from None


def _checked(text: str, place: str) -> str:
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise LanguageModelRefused(
            f"{place} holds no key for the language model", hint="Set it where memoryd is started, or name another."
        )
    return key
