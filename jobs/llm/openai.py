"""A language model behind an OpenAI-compatible HTTP API: a service, or a server on this machine."""

from __future__ import annotations

from typing import Any, Final

from memoryd.jobs.http import Reply
from memoryd.jobs.keys import ReadKey
from memoryd.jobs.llm.remote import Post, Question, RemoteModel

_CHECK_URL: Final = "Check llm.base_url: it ends where /chat/completions begins, often in /v1."
_FORM_REFUSED: Final = (400, 415, 422, 501)  # what servers answer to a response_format that they do not know


class OpenAiModel(RemoteModel):
    def __init__(self, base_url: str, model: str, read_key: ReadKey | None = None) -> None:
        super().__init__(f"{base_url.rstrip('/')}/chat/completions", model, read_key, check_url=_CHECK_URL)
        self._takes_forms = True  # until it refuses one

    def _ask(self, question: Question, post: Post) -> str:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": question.written(),
            "max_tokens": question.max_tokens,
            "temperature": question.temperature,
        }
        if question.form and self._takes_forms:
            shape = {"name": "answer", "strict": True, "schema": dict(question.form.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        reply = post(body, lambda failed: _wants_later_name(failed) or _may_refuse_form(body, failed))
        if reply.status != 200 and _wants_later_name(reply):  # and no heat
            body = {name: value for name, value in body.items() if name != "temperature"}
            body["max_completion_tokens"] = body.pop("max_tokens")
            reply = post(body, lambda failed: _may_refuse_form(body, failed))
        if reply.status != 200:
            del body["response_format"]
            reply = post(body, lambda _: False)  # what is wrong may be something else: then it says so again
            self._takes_forms = False
        return self._content(reply, lambda said: said["choices"][0]["message"]["content"])


def _wants_later_name(reply: Reply) -> bool:
    """Some models want ``max_tokens`` by its later name."""
    return reply.status == 400 and b"max_completion_tokens" in reply.data


def _may_refuse_form(body: dict[str, Any], reply: Reply) -> bool:
    too_long = b"context_length_exceeded" in reply.data or b"context length" in reply.data
    return "response_format" in body and reply.status in _FORM_REFUSED and not too_long
