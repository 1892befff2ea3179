"""Asking about a piece over a real port: when it is tried again, when not, and what is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memoryd.jobs.ingest.asking import MOST_TRIES, Asking, AskSettings
from memoryd.jobs.ingest.pieces import split_pieces
from memoryd.jobs.llm.openai import OpenAiModel
from memoryd.store.answers import Answers
from memoryd.store.errors import BudgetSpent, Cancelled, LanguageModelRefused, LanguageModelUnavailable
from tests.support.chat_server import ChatServer, Dictated, answer, run_chat_server
from tests.support.clock import SetClock

(PIECE,) = split_pieces("The lamp is lit at dusk.")
BUSY = Dictated(503, b"busy")

Make = Callable[..., Asking]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with run_chat_server() as server:
        yield server


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def make(server: ChatServer, tmp_path: Path, waits: list[float]) -> Iterator[Make]:
    with (
        closing(Answers(tmp_path / "ingest.db", SetClock())) as answers,
        closing(OpenAiModel(server.url, "m")) as model,
    ):

        def make(name: str = "m", daily_tokens: int = 0, stopping: Callable[[], bool] = lambda: False) -> Asking:
            return Asking(model, answers, AskSettings(name, 100, 60, daily_tokens), stopping, waits.append)

        yield make


def test_answer_is_kept_for_the_same_model_and_no_other(server: ChatServer, make: Make) -> None:
    server.dictated.append(answer("{}"))
    assert make().kept(PIECE) is None
    assert make().ask(PIECE) == "{}"
    assert make().kept(PIECE) == "{}"
    assert make("another").kept(PIECE) is None
    assert len(server.requests) == 1


def test_model_that_cannot_answer_now_is_tried_again_with_growing_pauses_and_then_no_more(
    server: ChatServer, make: Make, waits: list[float]
) -> None:
    server.dictated += [BUSY] * 2 + [answer("{}")]
    assert make().ask(PIECE) == "{}"
    assert waits == [1, 4]
    waits.clear()
    server.requests.clear()
    server.dictated += [BUSY] * 9
    with pytest.raises(LanguageModelUnavailable):
        make("another").ask(PIECE)
    assert len(server.requests) == MOST_TRIES
    assert waits == [1, 4, 16]


def test_pause_that_the_server_asks_for_is_made_unless_it_is_too_long(
    server: ChatServer, make: Make, waits: list[float]
) -> None:
    server.dictated += [Dictated(429, b"", {"Retry-After": "7"}), answer("{}")]
    make().ask(PIECE)
    assert waits == [7]
    server.dictated.append(Dictated(429, b"", {"Retry-After": "3600"}))
    with pytest.raises(LanguageModelUnavailable, match="429"):
        make("another").ask(PIECE)
    assert waits == [7]


def test_refusal_is_not_tried_again(server: ChatServer, make: Make, waits: list[float]) -> None:
    server.dictated.append(Dictated(401, b""))
    with pytest.raises(LanguageModelRefused):
        make().ask(PIECE)
    assert (len(server.requests), waits) == (1, [])


def test_nothing_is_asked_once_it_is_to_stop(server: ChatServer, make: Make) -> None:
    with pytest.raises(Cancelled):
        make(stopping=lambda: True).ask(PIECE)
    assert server.requests == []


def test_tokens_of_a_day_are_counted_over_runs(server: ChatServer, make: Make) -> None:
    server.dictated += [answer("{}")] * 2
    first = make()
    first.ask(PIECE)
    make("second", daily_tokens=2 * first.tokens).ask(PIECE)
    with pytest.raises(BudgetSpent) as caught:
        make("third", daily_tokens=2 * first.tokens).ask(PIECE)
    assert "ingest.daily_tokens" in (caught.value.hint or "")
    assert len(server.requests) == 2
