"""Mistral AI: ``POST /v1/embeddings``."""

from __future__ import annotations

from typing import Any, Final

from memoryd.jobs.embedders.providers.provider import (
    Ask,
    Fault,
    Json,
    Limits,
    Provider,
    bearer,
    by_status,
    embeddings_url,
    read_data,
)

_TOO_LARGE: Final = ("too many tokens", "too many inputs")


def _body(ask: Ask) -> Json:
    body: Json = {"model": ask.model, "input": list(ask.texts)}
    if ask.dimension and ask.model.startswith("codestral-embed"):  # others refuse it; they are cut afterwards
        body["output_dimension"] = ask.dimension
    return body


def _explain(status: int, body: Any) -> Fault:
    return by_status(status, body, too_large=_TOO_LARGE)


MISTRAL: Final = Provider(
    name="mistral",
    base_url="https://api.mistral.ai/v1",
    model="mistral-embed",
    limits=Limits(texts=128, tokens=8000, context=8000),  # 16,384 tokens a request, by a tokenizer of its own
    url=embeddings_url,
    headers=bearer,
    body=_body,
    read=read_data,
    explain=_explain,
    variables=("MISTRAL_API_KEY",),
)
