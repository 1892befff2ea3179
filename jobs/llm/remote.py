"""A language model behind HTTP, whichever API it speaks: time limits, keys, and what its failures are called.

``OpenAiModel`` and ``OllamaModel`` know the two APIs; what they have in common is here.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memoryd.jobs.http import Http, Reply, TooLarge, TooLate, Unreachable
from memoryd.jobs.keys import ReadKey
from memoryd.jobs.llm.protocol import Form, Message
from memoryd.jobs.models.transport import parse_retry_after
from memoryd.store.errors import LanguageModelRefused, LanguageModelUnavailable, PromptTooLong

_LARGEST_ANSWER: Final = 1_000_000  # bytes
_LONGEST_DETAIL: Final = 300  # characters of a server's own words
_CHECK_KEY: Final = "Check the key that llm.api_key_env or llm.api_key_file names."

Accept = Callable[[Reply], bool]  # whether a failure is one that who asks has an answer to
Post = Callable[[dict[str, Any], Accept], Reply]


@dataclass(frozen=True, slots=True)
class Question:
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float
    form: Form | None

    def written(self) -> list[dict[str, str]]:
        """The messages as both APIs take them."""
        return [{"role": message.role, "content": _encodable(message.content)} for message in self.messages]


class RemoteModel(ABC):
    """Asks over HTTP, each question in a thread of its own; what is said and understood is for who derives from it."""

    def __init__(self, url: str, model: str, read_key: ReadKey | None = None, *, check_url: str) -> None:
        self._url = url
        self._model = model
        self._read_key = read_key
        self._check_url = check_url
        self._http = Http(url, largest=_LARGEST_ANSWER, closed=_closed)

    @abstractmethod
    def _ask(self, question: Question, post: Post) -> str:
        """Ask as the API has it."""

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        timeout_s: float,
        temperature: float = 0.0,
        form: Form | None = None,
    ) -> str:
        deadline = time.monotonic() + timeout_s
        question = Question(tuple(messages), max_tokens, temperature, form)

        self._http.check_open()
        key = self._read_key() if self._read_key else ""
        try:
            return self._ask(question, lambda body, accept: self._post(body, accept, key, deadline))
        except TooLate:
            raise LanguageModelUnavailable(
                f"{self._url} took longer than {timeout_s:g} s", hint="Allow it more time, or use a quicker model."
            ) from None
        except TooLarge:
            raise self._not_the_api() from None
        except Unreachable as problem:
            raise LanguageModelUnavailable(
                f"{self._url} cannot be asked: {problem}",
                hint="Check that it runs, llm.base_url, the proxy variables and SSL_CERT_FILE.",
            ) from None

    def close(self) -> None:
        self._http.close()

    def _post(self, body: dict[str, Any], accept: Accept, key: str, deadline: float) -> Reply:
        """The answer to a request: a good one, or a failure that ``accept`` wants to see; else it is raised."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        reply = self._http.post(body, headers, max(0.001, deadline - time.monotonic()))
        if reply.status != 200 and not accept(reply):
            raise self._failure(reply, key)
        return reply

    def _content(self, reply: Reply, find: Callable[[Any], Any]) -> str:
        """The text in an answer; ``find`` knows where it is. None is no text: the model only thought."""
        try:
            content = find(json.loads(reply.data)) or ""
        except (ValueError, LookupError, TypeError, RecursionError):
            content = None
        if not isinstance(content, str):
            raise self._not_the_api()
        return content

    def _not_the_api(self) -> LanguageModelRefused:
        return LanguageModelRefused(f"{self._url} does not answer as the API does", hint=self._check_url)

    def _failure(self, reply: Reply, key: str) -> LanguageModelRefused | LanguageModelUnavailable:
        status = reply.status
        kind, detail = _error_of(reply.data)
        if key:
            detail = detail.replace(key, "…")
        said = f"{self._url} answered {status}" + (f": {detail}" if detail else "")
        if status in (401, 403):  # some quote the key that they refuse
            return LanguageModelRefused(f"{self._url} answered {status}", hint=_CHECK_KEY)
        if kind == "insufficient_quota":
            return LanguageModelRefused(said, hint="See to the account's quota.")
        if status in (408, 429) or status >= 500:
            wait = parse_retry_after(reply.headers.get("retry-after"), time.time())
            hint = f"Ask again in {wait:g} s." if wait else "Ask again later."
            return LanguageModelUnavailable(said, hint=hint, wait_s=wait)
        if status == 413 or kind == "context_length_exceeded" or "context length" in detail:
            return PromptTooLong(said, hint="Ask for less at a time.")
        if status == 404:
            return LanguageModelRefused(said, hint=f"Check llm.model. {self._check_url}")
        return LanguageModelRefused(said, hint=self._check_url)


def _encodable(text: str) -> str:
    """Without the lone halves of characters that a file name or a client can bring in."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _error_of(data: bytes) -> tuple[str, str]:
    """The code and the words of an error as such servers write it; the words alone of any other short text."""
    try:
        error = json.loads(data)
        error = error.get("error", error) if isinstance(error, dict) else error
        if isinstance(error, dict):
            return str(error.get("code") or ""), str(error.get("message") or "")[:_LONGEST_DETAIL]
        return "", str(error)[:_LONGEST_DETAIL]
    except (ValueError, RecursionError):
        return "", ""


def _closed() -> LanguageModelUnavailable:
    return LanguageModelUnavailable("the language model is closed", hint="Ask again once memoryd runs.")
