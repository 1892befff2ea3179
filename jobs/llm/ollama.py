"""A language model that Ollama runs, asked by its own API, which takes the form of an answer as a schema."""

from __future__ import annotations

from typing import Any, Final

from memoryd.jobs.keys import ReadKey
from memoryd.jobs.llm.remote import Post, Question, RemoteModel

DEFAULT_URL: Final = "http://127.0.0.1:11434"
_CHECK_URL: Final = "Check that Ollama runs, and llm.base_url: it ends where /api/chat begins."


class OllamaModel(RemoteModel):
    def __init__(self, base_url: str, model: str, read_key: ReadKey | None = None) -> None:
        base = (base_url or DEFAULT_URL).rstrip("/").removesuffix("/v1").removesuffix("/api")
        super().__init__(f"{base}/api/chat", model, read_key, check_url=_CHECK_URL)

    def _ask(self, question: Question, post: Post) -> str:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": question.written(),
            "stream": False,
            "options": {"num_predict": question.max_tokens, "temperature": question.temperature},
        }
        if question.form:
            body["format"] = dict(question.form.schema)
        reply = post(body, lambda _: False)
        return self._content(reply, lambda said: said["message"]["content"])
