"""The language model of a configuration that names none."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.jobs.llm.protocol import Form, Message
from memoryd.store.errors import LanguageModelMissing


class AbsentModel:
    """Says how one is configured."""

    def complete(
        self,
        messages: Sequence[Message],  # noqa: ARG002
        *,
        max_tokens: int,  # noqa: ARG002
        timeout_s: float,  # noqa: ARG002
        temperature: float = 0.0,  # noqa: ARG002
        form: Form | None = None,  # noqa: ARG002
    ) -> str:
        raise LanguageModelMissing(
            "no language model is configured",
            hint='Set llm.provider to "local" with a .gguf as llm.model, or to "ollama" or "openai-compatible".',
        )

    def close(self) -> None:
        """Nothing was opened."""
