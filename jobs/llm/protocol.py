"""What every language model promises to those that ask it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Form:
    """What an answer is to look like, said twice: each model is held to it by what it understands, or not at all."""

    grammar: str  # GBNF, for a local model, whose answer is then nothing else
    schema: Mapping[str, Any]  # JSON Schema of one object, for an API that takes one; others answer as they like


class LanguageModel(Protocol):
    """Answers a conversation.

    Guarantees: nothing is loaded or connected before the first call; an answer has at most ``max_tokens`` tokens
    and may be empty; a call returns or raises about when ``timeout_s`` is over, whoever else is asking; with
    temperature 0 a local model always says the same; a ``form`` holds it to a grammar, and an API as far as that
    takes part. Any number of threads may ask, and ``close`` may come from
    another, any number of times: a call that is under way then ends, and later ones raise.
    Raises ``LanguageModelUnavailable`` (try again), ``PromptTooLong`` (ask for less) or another ``MemorydError``
    (do not). No error holds a key.
    """

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        timeout_s: float,
        temperature: float = 0.0,
        form: Form | None = None,
    ) -> str: ...

    def close(self) -> None: ...
