"""Any server that speaks OpenAI's embeddings API: llama.cpp, vLLM, text-embeddings-inference, LM Studio, a gateway."""

from __future__ import annotations

from typing import Any, Final

from memoryd.jobs.embedders.providers.known_prompts import known_prompts
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

_TOO_LARGE: Final = (
    "too large to process",  # llama.cpp's server, as a 500
    "exceed_context_size_error",  # the same, later
    "maximum context length",  # vLLM
    "maximum allowed batch size",  # text-embeddings-inference
    "must have less than",  # the same
    "batch size",
    "max_tokens_per_request",
)
_START: Final = "Start the server with embeddings: 'llama-server --embeddings', for instance."


def _body(ask: Ask) -> Json:
    body: Json = {"model": ask.model, "input": list(ask.texts)}
    if ask.dimension:
        body["dimensions"] = ask.dimension
    return body


def _explain(status: int, body: Any) -> Fault:
    words = words_of(body)
    if status in (500, 501) and "does not support embeddings" in words:
        return Fault("lasting", words, hint=_START)
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict) and error.get("code") == "insufficient_quota":
        return Fault("lasting", words, hint="See to the account's plan and billing.")
    return by_status(status, body, too_large=_TOO_LARGE)


COMPATIBLE: Final = Provider(
    name="openai-compatible",
    base_url="",
    model="",
    limits=Limits(texts=32, tokens=8000, context=8000),
    url=embeddings_url,
    headers=bearer,
    body=_body,
    read=read_data,
    explain=_explain,
    prompts=known_prompts,
    needs_key=False,
    has_own_address=True,
)
