"""The hypothetical answer: what the model is asked, what is left of what it says, and who may wait for it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.hyde import MOST_AT_ONCE, MOST_REMEMBERED, Hypotheses, build_prompt, clean_answer
from memoryd.jobs.llm.protocol import Message
from memoryd.store.errors import LanguageModelUnavailable, MemorydError


class Parrot:
    """A model that says what it is told to, and counts; it waits at a gate while that is shut."""

    def __init__(self, says: str = "{query}") -> None:
        self.says = says
        self.asked: list[str] = []
        self.limits: list[tuple[int, float]] = []
        self.failure: MemorydError | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.inside = threading.Semaphore(0)

    def complete(
        self, messages: Sequence[Message], *, max_tokens: int, timeout_s: float, temperature: float = 0.0
    ) -> str:
        self.asked.append(messages[-1].content)
        self.limits.append((max_tokens, timeout_s))
        self.inside.release()
        assert self.gate.wait(60)
        if self.failure:
            raise self.failure
        return self.says.format(query=messages[-1].content)

    def close(self) -> None:
        """Nothing to close."""


def hypotheses(model: Parrot) -> Hypotheses:
    return Hypotheses(model, max_tokens=50, timeout_s=3.0)


# -- the prompt ---------------------------------------------------------------------------------------------


def test_the_query_stands_alone_in_the_user_s_message() -> None:
    task, question = build_prompt('Wo ist "der Schlüssel"?\nIgnore this')
    assert (task.role, question.role) == ("system", "user")
    assert question.content == 'Wo ist "der Schlüssel"?\nIgnore this'
    assert "language of the question" in task.content


def test_a_pasted_page_is_cut() -> None:
    assert len(build_prompt("x" * 1_000_000)[1].content) == 1000


# -- the answer ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("  The key hangs by the door.\n", "The key hangs by the door."),
        ("<think>The user wants\na note.</think>\n\nThe key hangs there.", "The key hangs there."),
        ("<THINKING>hm</THINKING>It hangs there.", "It hangs there."),
        ("<think>I never came to an end", ""),
        ('"The key hangs by the door."', "The key hangs by the door."),
        ("“The key.”", "The key."),
        ("「鍵はドアの横にある。」", "鍵はドアの横にある。"),
        ('"One" and "two"', '"One" and "two"'),
        ("Here is a short passage:\n\nThe key hangs there.", "The key hangs there."),
        ("Passage: The key hangs there.", "The key hangs there."),
        ("**Note:** The key hangs there.", "The key hangs there."),
        ("```markdown\nThe key hangs there.\n```", "The key hangs there."),
        ("It is so. It is so. It is so. Or not. It is so", "It is so. Or not. It is so"),
        ("我去了。我去了。我去了。", "我去了。"),
        ("Door code:\n", "Door code:"),
        ("", ""),
        (" \n\t ", ""),
    ],
)
def test_only_the_passage_is_left(said: str, kept: str) -> None:
    assert clean_answer(said) == kept


def test_long_answer_is_cut_between_words() -> None:
    words = " ".join(f"word{number}" for number in range(1000))
    kept = clean_answer(words)
    assert 700 < len(kept) <= 800
    assert words.startswith(kept + " ")
    assert len(clean_answer("字" * 5000)) == 800


@given(st.text())
def test_no_answer_breaks_the_cleaning(said: str) -> None:
    kept = clean_answer(said)
    assert kept == kept.strip()
    assert len(kept) <= 800
    assert "<think>" not in kept


# -- asking -------------------------------------------------------------------------------------------------


def test_the_model_is_asked_once_for_a_query_and_within_its_limits() -> None:
    model = Parrot("It is about {query}.")
    asked = hypotheses(model)
    assert asked.imagine("the key") == asked.imagine(" the key\n") == "It is about the key."
    assert model.asked == ["the key"]
    assert model.limits == [(50, 3.0)]


def test_the_least_used_hypotheses_are_forgotten() -> None:
    model = Parrot()
    asked = hypotheses(model)
    for number in range(MOST_REMEMBERED):
        asked.imagine(f"query {number}")
    asked.imagine("query 0")
    asked.imagine("one more")
    asked.imagine("query 0")
    assert model.asked.count("query 0") == 1
    asked.imagine("query 1")
    assert model.asked.count("query 1") == 2


def test_failure_is_passed_on_and_not_remembered() -> None:
    model = Parrot()
    asked = hypotheses(model)
    model.failure = LanguageModelUnavailable("it is off", hint="turn it on")
    with pytest.raises(LanguageModelUnavailable, match="it is off"):
        asked.imagine("the key")
    model.failure = None
    assert asked.imagine("the key") == "the key"


def test_empty_answer_is_a_failure_with_its_remedy() -> None:
    with pytest.raises(LanguageModelUnavailable, match="no answer") as caught:
        hypotheses(Parrot("<think>and so on")).imagine("the key")
    assert "max_tokens" in (caught.value.hint or "")


def test_more_queries_than_may_wait_are_let_go_at_once() -> None:
    model = Parrot()
    asked = hypotheses(model)
    model.gate.clear()
    waiting = [threading.Thread(target=asked.imagine, args=(f"query {n}",)) for n in range(MOST_AT_ONCE)]
    for thread in waiting:
        thread.start()
    for _ in waiting:
        assert model.inside.acquire(timeout=60)
    with pytest.raises(LanguageModelUnavailable, match="waiting"):
        asked.imagine("one too many")
    model.gate.set()
    for thread in waiting:
        thread.join()
    assert asked.imagine("one too many") == "one too many"
