"""Asking the language model about a piece, once: what it answered before is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from memoryd.jobs.ingest.pieces import Piece
from memoryd.jobs.ingest.prompt import FORM, PROMPT_VERSION, build_prompt
from memoryd.jobs.llm.protocol import LanguageModel
from memoryd.jobs.tokens import estimate_tokens
from memoryd.store.answers import Answers, Asked
from memoryd.store.errors import BudgetSpent, Cancelled, LanguageModelUnavailable

MOST_TRIES: Final = 4  # of one piece, where the model cannot answer now
_FIRST_WAIT_S: Final = 1.0
_LONGEST_WAIT_S: Final = 60.0

Stopping = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class AskSettings:
    model: str  # what identifies the model that answers
    max_tokens: int
    timeout_s: float
    daily_tokens: int = 0  # 0: as many as it takes


class Asking:
    def __init__(
        self,
        model: LanguageModel,
        answers: Answers,
        settings: AskSettings,
        stopping: Stopping,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._model = model
        self._answers = answers
        self._settings = settings
        self._stopping = stopping
        self._wait = wait
        self._spent: int | None = None
        self.calls = 0  # answers that were asked for and came
        self.tokens = 0  # of those

    def kept(self, piece: Piece) -> str | None:
        """What the model answered before."""
        return self._answers.find(self._asked(piece))

    def ask(self, piece: Piece) -> str:
        """The answer, committed before it is returned. Raises ``Cancelled`` where nobody wants it any more."""
        tokens = estimate_question(piece)
        self._check_budget(tokens)
        answer = self._complete(piece)
        tokens += estimate_tokens(answer)
        self._answers.keep(self._asked(piece), answer, tokens)
        self.calls += 1
        self.tokens += tokens
        if self._spent is not None:
            self._spent += tokens
        return answer

    def _complete(self, piece: Piece) -> str:
        settings = self._settings
        for attempt in range(1, MOST_TRIES + 1):
            if self._stopping():
                raise _stopped()
            try:
                return self._model.complete(
                    build_prompt(piece), max_tokens=settings.max_tokens, timeout_s=settings.timeout_s, form=FORM
                )
            except LanguageModelUnavailable as error:
                wait = error.wait_s or _FIRST_WAIT_S * 4 ** (attempt - 1)
                if self._stopping():
                    raise _stopped() from error
                if attempt == MOST_TRIES or wait > _LONGEST_WAIT_S:
                    raise
                self._wait(wait)
        raise AssertionError("the last try returns or raises")

    def _check_budget(self, tokens: int) -> None:
        most = self._settings.daily_tokens
        if not most:
            return
        if self._spent is None:
            self._spent = self._answers.tokens_today()
        if self._spent + tokens > most:
            raise BudgetSpent(
                f"{self._spent:,} of the {most:,} tokens of ingest.daily_tokens are spent today",
                hint="It goes on tomorrow (UTC); or raise ingest.daily_tokens",
            )

    def _asked(self, piece: Piece) -> Asked:
        return Asked(self._settings.model, PROMPT_VERSION, piece.hash)


def estimate_question(piece: Piece) -> int:
    """Tokens of what is sent about a piece."""
    return sum(estimate_tokens(message.content) for message in build_prompt(piece))


def _stopped() -> Cancelled:
    return Cancelled("the ingest was stopped", hint="Run it again: it goes on where it stopped")
