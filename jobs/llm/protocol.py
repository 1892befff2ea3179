"""What every language model promises to those that ask it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


class LanguageModel(Protocol):
    """Answers a conversation.

    Guarantees: nothing is loaded or connected before the first call; an answer has at most ``max_tokens`` tokens
    and may be empty; a call returns or raises about when ``timeout_s`` is over, whoever else is asking; with
    temperature 0 a local model always says the same. Any number of threads may ask, and ``close`` may come from
    another, any number of times: a call that is under way then ends, and later ones raise.
    Raises ``LanguageModelUnavailable`` (try again) or another ``MemorydError`` (do not). No error holds a key.
    """

    def complete(
        self, messages: Sequence[Message], *, max_tokens: int, timeout_s: float, temperature: float = 0.0
    ) -> str: ...

    def close(self) -> None: ...
