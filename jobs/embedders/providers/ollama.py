"""Ollama: ``POST /api/embed``, usually on this machine."""

from __future__ import annotations

from typing import Any, Final

from memoryd.jobs.embedders.providers.known_prompts import known_prompts
from memoryd.jobs.embedders.providers.provider import (
    Answer,
    Ask,
    Fault,
    Json,
    Limits,
    Provider,
    bearer,
    by_status,
)

_TOO_LARGE: Final = ("input length exceeds",)
_PULL: Final = "Run 'ollama pull' for the model, or correct embedder.model."


def _body(ask: Ask) -> Json:
    body: Json = {"model": ask.model, "input": list(ask.texts), "truncate": True}
    if ask.dimension:
        body["dimensions"] = ask.dimension
    return body


def _read(answer: Any) -> Answer:
    tokens = answer.get("prompt_eval_count")
    return Answer(list(answer["embeddings"]), tokens if isinstance(tokens, int) else None)


def _explain(status: int, body: Any) -> Fault:
    return by_status(status, body, too_large=_TOO_LARGE, hint=_PULL if status == 404 else "")


OLLAMA: Final = Provider(
    name="ollama",
    base_url="http://127.0.0.1:11434",
    model="nomic-embed-text",
    limits=Limits(texts=32, tokens=8000, context=8000),
    url=lambda base_url, _model: f"{base_url.rstrip('/')}/api/embed",
    headers=bearer,
    body=_body,
    read=_read,
    explain=_explain,
    prompts=known_prompts,
    needs_key=False,
)
