"""A remote embedder on a server of a test's own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from memoryd.jobs.embedders.budget import Budget
from memoryd.jobs.embedders.providers import PROVIDERS
from memoryd.jobs.embedders.remote import RemoteEmbedder
from memoryd.jobs.embedders.service import Service
from memoryd.store.protocols import Clock
from tests.support.embedding_server import KEY

MODELS = {"openai-compatible": "some-model"}  # that a provider has no default for


def connect(
    provider: str,
    url: str,
    *,
    model: str = "",
    key: str = KEY,
    clock: Clock = time.time,
    budget: Budget | None = None,
    **options: Any,
) -> RemoteEmbedder:
    chosen = PROVIDERS[provider]
    service = Service(chosen, url, model or chosen.model or MODELS[provider], **options)
    return RemoteEmbedder(service, lambda: key, budget or Budget(0, Path("unused"), clock), clock)
