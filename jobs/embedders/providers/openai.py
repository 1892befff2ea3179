"""OpenAI: ``POST /v1/embeddings``."""

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
    words_of,
)

_TOO_LARGE: Final = ("max_tokens_per_request", "maximum context length", "maximum input length")
_QUOTA: Final = "See to the account's plan and billing."


def _body(ask: Ask) -> Json:
    body: Json = {"model": ask.model, "input": list(ask.texts), "encoding_format": "float"}
    if ask.dimension and ask.model != "text-embedding-ada-002":  # which knows no other; it is cut afterwards
        body["dimensions"] = ask.dimension
    return body


def _explain(status: int, body: Any) -> Fault:
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict) and error.get("code") == "insufficient_quota":  # a 429 that no waiting cures
        return Fault("lasting", words_of(body), hint=_QUOTA)
    return by_status(status, body, too_large=_TOO_LARGE)


OPENAI: Final = Provider(
    name="openai",
    base_url="https://api.openai.com/v1",
    model="text-embedding-3-small",
    limits=Limits(texts=128, tokens=100_000, context=8000),
    url=embeddings_url,
    headers=bearer,
    body=_body,
    read=read_data,
    explain=_explain,
    variables=("OPENAI_API_KEY",),
)
