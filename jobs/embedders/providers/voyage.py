"""Voyage AI: ``POST /v1/embeddings``."""

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

_TOO_LARGE: Final = ("max allowed tokens per submitted batch", "too_many_tokens_in_batch", "batch size")


def _body(ask: Ask) -> Json:
    body: Json = {"model": ask.model, "input": list(ask.texts), "input_type": ask.purpose, "truncation": True}
    if ask.dimension:
        body["output_dimension"] = ask.dimension
    return body


def _explain(status: int, body: Any) -> Fault:
    return by_status(status, body, too_large=_TOO_LARGE)


VOYAGE: Final = Provider(
    name="voyage",
    base_url="https://api.voyageai.com/v1",
    model="voyage-3.5",
    # Its tokenizer makes more of a text than ours does: a quarter of what the smallest of its models allows.
    limits=Limits(texts=128, tokens=30_000, context=16_000),
    url=embeddings_url,
    headers=bearer,
    body=_body,
    read=read_data,
    explain=_explain,
    manner=lambda _model: "input types",
    variables=("VOYAGE_API_KEY",),
)
