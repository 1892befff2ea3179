"""The local language model: a GGUF, loaded when it is first asked, one question at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Final

from memoryd.jobs.background import close_result, in_background
from memoryd.jobs.llm.brake import Brake
from memoryd.jobs.llm.llama_generator import LlamaGenerator, Stopped
from memoryd.jobs.llm.protocol import Form, Message
from memoryd.store.errors import LanguageModelUnavailable

_CLOSING_S: Final = 2.0  # for the answer under way to end


class LocalModel:
    def __init__(self, path: Path, *, threads: int = 0) -> None:
        self._path = path
        self._threads = threads
        self._turn = threading.Lock()
        self._loading: Future[LlamaGenerator] | None = None
        self._brake = Brake()  # of the answer under way, or of the last one
        self._closed = False

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
        if not self._turn.acquire(timeout=timeout_s):
            raise LanguageModelUnavailable("the language model is busy with other questions", hint="Ask again later.")
        try:
            self._check_open()
            generator = self._load(deadline)
            brake = self._brake = Brake()
            self._check_open()  # after the brake is there to be pulled: one of the two sees the end
            timer = threading.Timer(max(0.0, deadline - time.monotonic()), brake.pull)
            timer.daemon = True
            timer.start()
            try:
                return generator.generate(
                    messages,
                    max_tokens=max_tokens,
                    temperature=temperature,
                    brake=brake,
                    grammar=form.grammar if form else None,
                )
            except Stopped:
                self._check_open()
                raise LanguageModelUnavailable(
                    f"the language model took longer than {timeout_s:g} s",
                    hint="Allow it more time, or use a smaller model.",
                ) from None
            finally:
                timer.cancel()
        finally:
            if self._closed:
                self._let_go()
            self._turn.release()

    def close(self) -> None:
        """Who answers a question closes it in the end, if that takes longer."""
        self._closed = True
        self._brake.pull()
        if self._turn.acquire(timeout=_CLOSING_S):
            self._let_go()
            self._turn.release()

    def _let_go(self) -> None:
        """While nobody uses it. One that is still being loaded is closed when it is there."""
        loading, self._loading = self._loading, None
        if loading is not None:
            close_result(loading)

    def _load(self, deadline: float) -> LlamaGenerator:
        """The model, loaded in a thread of its own: a large one takes longer than a question waits."""
        if self._loading is None:
            self._loading = in_background(lambda: LlamaGenerator(self._path, threads=self._threads), "llm-loading")
        loading = self._loading
        try:
            return loading.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            raise LanguageModelUnavailable(
                "the language model is still being loaded", hint="Ask again in a moment."
            ) from None
        finally:
            if loading.done() and loading.exception() is not None:
                self._loading = None  # what was wrong may be mended by the next time

    def _check_open(self) -> None:
        if self._closed:
            raise LanguageModelUnavailable("the language model is closed", hint="Ask again once memoryd runs.")
