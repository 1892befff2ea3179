"""HyDE: what an answer to the query might look like, written by the language model, to be embedded.

A note that answers a question is nearer to another answer than to the question. That it is made up does no
harm: nobody gets to read it but the embedder.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from typing import Final

from memoryd.jobs.llm.protocol import LanguageModel, Message
from memoryd.store.errors import LanguageModelUnavailable

MOST_AT_ONCE: Final = 4  # queries that wait for the model; half of the threads that answer stay free for the others
MOST_REMEMBERED: Final = 256  # hypotheses
_LONGEST_QUERY: Final = 1000  # characters that the model sees
_LONGEST_HYPOTHESIS: Final = 800  # characters; about what an embedder reads of a passage

_TASK: Final = (
    "You write one short passage as it might stand in somebody's own notes. State it as a fact, in the language of "
    "the question, with likely names, dates and details. Two sentences, no introduction, no list."
)
_THOUGHTS: Final = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE: Final = re.compile(r"^\s*```.*$", re.MULTILINE)
_LABEL: Final = re.compile(r"\A\s*(?:[*_]{0,2}(?:passage|note|answer)[*_]{0,2}\s*:)[*_]{0,2}", re.IGNORECASE)
_INTRODUCTION: Final = re.compile(r"\A[^\n]{1,200}[:：]\s*\n")
_SENTENCE: Final = re.compile(r"[^.!?。！？\n]+[.!?。！？]*\s*|[.!?。！？\n]+")
_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」", "『": "』", "`": "`"}


class Hypotheses:
    """Asks the model, remembers what it said, and turns away what would have to queue for too long."""

    def __init__(self, model: LanguageModel, *, max_tokens: int, timeout_s: float) -> None:
        self._model = model
        self._max_tokens = max_tokens
        self._timeout_s = timeout_s
        self._seats = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._lock = threading.Lock()
        self._remembered: OrderedDict[str, str] = OrderedDict()  # the last one used at the end

    def imagine(self, query: str) -> str:
        """A passage that might answer the query. Raises a ``MemorydError`` where there is none in time."""
        query = query.strip()
        with self._lock:
            if query in self._remembered:
                self._remembered.move_to_end(query)
                return self._remembered[query]
        if not self._seats.acquire(blocking=False):
            raise LanguageModelUnavailable(
                "other queries are waiting for the language model already", hint="Ask again in a moment."
            )
        try:
            answer = self._model.complete(
                build_prompt(query), max_tokens=self._max_tokens, timeout_s=self._timeout_s, temperature=0.0
            )
        finally:
            self._seats.release()
        hypothesis = clean_answer(answer)
        if not hypothesis:
            raise LanguageModelUnavailable(
                "the language model gave no answer", hint="Raise search.hyde.max_tokens if it is one that thinks aloud."
            )
        with self._lock:
            self._remembered[query] = hypothesis
            while len(self._remembered) > MOST_REMEMBERED:
                self._remembered.popitem(last=False)
        return hypothesis


def build_prompt(query: str) -> list[Message]:
    return [Message("system", _TASK), Message("user", query[:_LONGEST_QUERY])]


def clean_answer(answer: str) -> str:
    """The passage itself: without thoughts, fences, introduction, quotes and repetitions, and not too long."""
    text = _FENCE.sub("", _THOUGHTS.sub("", answer)).strip()
    text = _INTRODUCTION.sub("", text, count=1)
    text = _unquote(_LABEL.sub("", text).strip())
    said: dict[str, None] = {}  # a set that keeps its order
    for sentence in _SENTENCE.findall(text):
        said[" ".join(sentence.split())] = None
    return _cut(" ".join(filter(None, said)))


def _unquote(text: str) -> str:
    if len(text) < 2 or _QUOTES.get(text[0]) != text[-1]:
        return text
    inner = text[1:-1]
    return text if text[0] in inner or text[-1] in inner else inner.strip()  # two quotations are not one


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_HYPOTHESIS:
        return text
    head = text[:_LONGEST_HYPOTHESIS]
    return head.rpartition(" ")[0] or head
