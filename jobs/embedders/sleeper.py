"""A local model that gives its memory back while nobody needs it, and is loaded again by the next who does.

Its name, its vectors and everything that refers to it stay as they are meanwhile: only the weights are gone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import structlog

from memoryd.jobs.background import in_background
from memoryd.jobs.embedders.in_process import InProcess
from memoryd.jobs.retry import unforeseen
from memoryd.store.errors import EmbedderUnavailable, MemorydError, ModelCorrupt
from memoryd.store.interruption import Interruption
from memoryd.store.protocols import Clock, Embedder, Vectors

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Nap:
    since: float  # unix time
    wakes_in_s: float  # what loading took the last time


class Sleeper(InProcess):
    """One caller at a time, like the model inside it; ``wake``, ``nap`` and ``idle_s`` may be called by any thread."""

    def __init__(self, load: Callable[[], Embedder], clock: Clock = time.time) -> None:
        self._load = load
        self._clock = clock
        self._lock = threading.Lock()  # of what follows
        self._waking: Future[None] | None = None
        self._slept_at: float | None = None
        self._closed = False
        self._used_at = time.monotonic()
        self.on_woken: Callable[[], object] = lambda: None
        self.on_lost: Callable[[MemorydError], object] = lambda _error: None  # it cannot be loaded any more
        began = time.perf_counter()
        first = load()
        self._took_s = time.perf_counter() - began
        self._model: Embedder | None = first
        self.identity = first.identity
        self.batch = first.batch

    # -- as an embedder -----------------------------------------------------------------------------------

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._awake().embed_documents(texts)

    def embed_or_yield(self, texts: Sequence[str], interruption: Interruption) -> Vectors | None:
        return self._awake().embed_or_yield(texts, interruption)

    def embed_query(self, text: str) -> Vectors:
        return self._awake().embed_query(text)

    def count_tokens(self, text: str) -> int:
        return self._awake().count_tokens(text)

    def close(self) -> None:
        with self._lock:
            model, self._model, self._closed = self._model, None, True
        if model is not None:
            model.close()

    # -- sleeping and waking ------------------------------------------------------------------------------

    def nap(self) -> Nap | None:
        """Since when the model is asleep; None: it is in memory."""
        with self._lock:
            return None if self._slept_at is None else Nap(self._slept_at, self._took_s)

    def idle_s(self) -> float | None:
        """For how long nobody has needed the model; None: it is not in memory."""
        with self._lock:
            return None if self._model is None else time.monotonic() - self._used_at

    def sleep(self, after_s: float) -> bool:
        """Give the model's memory back if nobody has needed it for so long. Nobody else may be at it."""
        with self._lock:
            if self._model is None or time.monotonic() - self._used_at < after_s:
                return False
            model, self._model = self._model, None
        model.close()
        with self._lock:
            if self._model is None:  # else somebody needed it meanwhile
                self._slept_at = self._clock()
        log.info("model_asleep", model=self.identity.model)
        return True

    def wake(self, within_s: float | None = None) -> None:
        """Have the model in memory. Raises ``EmbedderUnavailable`` where that fails, or takes longer."""
        with self._lock:
            self._used_at = time.monotonic()
            if self._closed or self._model is not None:
                return
            if self._waking is None:
                self._waking = in_background(self._bring_back, "wake")
            waking = self._waking
        try:
            waking.result(within_s)
        except TimeoutError:
            raise EmbedderUnavailable(
                "the model was asleep and is being loaded", hint="Ask again in a moment"
            ) from None

    def _awake(self) -> Embedder:
        while True:
            self.wake()
            with self._lock:
                if self._closed:
                    raise EmbedderUnavailable("the embedder is closed", hint="Ask again once memoryd runs.")
                if self._model is not None:
                    return self._model

    def _bring_back(self) -> None:
        """On a thread of its own: whoever waits may stop waiting, and the model comes all the same."""
        began = time.perf_counter()
        try:
            model = self._load_the_same()
        except Exception as failure:
            error = failure if isinstance(failure, MemorydError) else unforeseen(failure)
            self.on_lost(error)  # before those who wait go on
            with self._lock:
                self._waking = None
            reason = f"the model could not be loaded again: {error.message}"
            raise EmbedderUnavailable(reason, hint=error.hint) from failure
        took_s = time.perf_counter() - began
        with self._lock:
            self._waking = None
            closed = self._closed
            if not closed:
                self._model, self._took_s, self._slept_at = model, took_s, None
                self._used_at = time.monotonic()
        if closed:
            model.close()
            return
        log.info("model_awake", model=self.identity.model, took_ms=round(took_s * 1000, 1))
        self.on_woken()

    def _load_the_same(self) -> Embedder:
        """A file that was replaced meanwhile is another model: its vectors mean nothing beside those that are kept."""
        model = self._load()
        if model.identity != self.identity:
            model.close()
            raise ModelCorrupt(f"The file of {self.identity.model} is not the one that its vectors were made with")
        return model
