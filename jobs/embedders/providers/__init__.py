"""The embedding services: what each is asked and answers, one module a service. No network here, only shapes."""

from __future__ import annotations

from typing import Final

from memoryd.jobs.embedders.providers.compatible import COMPATIBLE
from memoryd.jobs.embedders.providers.gemini import GEMINI
from memoryd.jobs.embedders.providers.mistral import MISTRAL
from memoryd.jobs.embedders.providers.ollama import OLLAMA
from memoryd.jobs.embedders.providers.openai import OPENAI
from memoryd.jobs.embedders.providers.provider import Provider
from memoryd.jobs.embedders.providers.voyage import VOYAGE

# In the order in which `auto` looks for a key.
PROVIDERS: Final[dict[str, Provider]] = {
    provider.name: provider for provider in (OPENAI, GEMINI, VOYAGE, MISTRAL, OLLAMA, COMPATIBLE)
}
