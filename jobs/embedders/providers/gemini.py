"""Google's Gemini API: ``POST /v1beta/models/{model}:batchEmbedContents``."""

from __future__ import annotations

import re
from typing import Any, Final

from memoryd.jobs.embedders.providers.provider import (
    Answer,
    Ask,
    Fault,
    Json,
    Limits,
    Prompts,
    Provider,
    by_status,
    words_of,
)

_TASKS: Final = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}
_TOO_LARGE: Final = ("can be in one batch", "exceeds the maximum number of tokens", "payload size exceeds")


def _takes_tasks(model: str) -> bool:
    """The second generation reads the task from the text itself, and ignores or refuses the field."""
    return not model.startswith("gemini-embedding-2")


def _prompts(model: str) -> Prompts:
    if _takes_tasks(model):
        return Prompts()
    return Prompts("task: search result | query: ", "title: none | text: ")


def _body(ask: Ask) -> Json:
    options: Json = {"outputDimensionality": ask.dimension} if ask.dimension else {}
    if _takes_tasks(ask.model):
        options["taskType"] = _TASKS[ask.purpose]
    return {
        "requests": [
            {"model": f"models/{ask.model}", "content": {"parts": [{"text": text}]}, **options} for text in ask.texts
        ]
    }


def _read(answer: Any) -> Answer:
    return Answer([embedding["values"] for embedding in answer["embeddings"]])


def _explain(status: int, body: Any) -> Fault:
    details = _details(body)
    if any(detail.get("reason") == "API_KEY_INVALID" for detail in details):  # told as 400, and is a 401
        return Fault("lasting", words_of(body), hint="Check the key.")
    fault = by_status(status, body, too_large=_TOO_LARGE)
    for detail in details:
        if fault.kind == "passing" and (delay := re.fullmatch(r"([\d.]+)s", str(detail.get("retryDelay", "")))):
            return Fault("passing", fault.words, wait=float(delay[1]))
    return fault


def _details(body: Any) -> list[Json]:
    error = body.get("error") if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    return [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []


GEMINI: Final = Provider(
    name="gemini",
    base_url="https://generativelanguage.googleapis.com/v1beta",
    model="gemini-embedding-001",
    limits=Limits(texts=100, tokens=20_000, context=2000),
    url=lambda base_url, model: f"{base_url.rstrip('/')}/models/{model}:batchEmbedContents",
    headers=lambda key: {"x-goog-api-key": key},  # never in the URL, which ends up in logs
    body=_body,
    read=_read,
    explain=_explain,
    prompts=_prompts,
    manner=lambda model: "retrieval tasks" if _takes_tasks(model) else "",
    variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
)
