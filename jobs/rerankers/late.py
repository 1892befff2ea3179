"""The reranker as the daemon has it: loaded when it is first wanted, asked by one query at a time.

No query waits for the loading, and none waits for another longer than its own budget allows: it is answered without.
What was read for a query is remembered, so that asking again costs nothing and gets further.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

from memoryd.jobs.background import close_result, in_background
from memoryd.store.errors import MemorydError, RerankerUnavailable
from memoryd.store.protocols import Reranker

_CLOSING_S: Final = 2.0  # for the query under way to end
_MOST_REMEMBERED: Final = 4096  # scores
_LONGEST_WAIT_S: Final = 60.0
_PATIENCE_S: Final = 60.0  # before what could not be loaded is tried again


class LateReranker:
    def __init__(self, load: Callable[[], Reranker]) -> None:
        self._load = load
        self._loading: Future[Reranker] | None = None
        self._failure: MemorydError | None = None
        self._again_at = 0.0
        self._changing = threading.Lock()  # of what is above
        self._turn = threading.Lock()  # of the model, and of what it said
        self._remembered: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._closed = False

    def reads(self, script: str) -> bool:
        """What is not known yet is hoped for: before it is loaded nothing is scored anyway."""
        try:
            return self._loaded().reads(script)
        except MemorydError:
            return True

    def score(self, query: str, passages: Sequence[str], deadline: float) -> list[float]:
        reranker = self._loaded()
        if not self._turn.acquire(timeout=min(_LONGEST_WAIT_S, max(0.0, deadline - time.monotonic()))):
            raise RerankerUnavailable("the reranker is busy with other queries", hint="Ask again in a moment.")
        try:
            self._check_open()  # it may have been closed while its turn was waited for
            return self._score(reranker, query, passages, deadline)
        finally:
            if self._closed:
                self._let_go()
            self._turn.release()

    def _score(self, reranker: Reranker, query: str, passages: Sequence[str], deadline: float) -> list[float]:
        unread = list(dict.fromkeys(passage for passage in passages if (query, passage) not in self._remembered))
        for passage, score in zip(unread, reranker.score(query, unread, deadline), strict=False):
            self._remembered[query, passage] = score
        scores: list[float] = []
        for passage in passages:
            if (query, passage) not in self._remembered:
                break
            self._remembered.move_to_end((query, passage))
            scores.append(self._remembered[query, passage])
        while len(self._remembered) > _MOST_REMEMBERED:
            self._remembered.popitem(last=False)
        return scores

    def wait(self, timeout: float) -> None:
        """Until it is loaded, for those who measure. Raises why it cannot be."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                self._loaded()
            except RerankerUnavailable:
                if time.monotonic() > deadline or self._loading is None:
                    raise
                self._loading.exception(max(0.0, deadline - time.monotonic()))
            else:
                return

    def close(self) -> None:
        """Who reads for a query closes it in the end, if that takes longer."""
        with self._changing:
            self._closed = True
        if self._turn.acquire(timeout=_CLOSING_S):
            self._let_go()
            self._turn.release()

    def _let_go(self) -> None:
        """While nobody uses it. One that is still being loaded is closed when it is there."""
        with self._changing:
            loading, self._loading = self._loading, None
        if loading is not None:
            close_result(loading)

    def _check_open(self) -> None:
        if self._closed:
            raise RerankerUnavailable("the reranker is closed", hint="Ask again once memoryd runs.")

    def _loaded(self) -> Reranker:
        """The model. Raises ``RerankerUnavailable`` while it is being loaded, and the reason if it could not be."""
        with self._changing:
            self._check_open()
            if self._loading is None:
                if self._failure and time.monotonic() < self._again_at:
                    raise self._failure
                self._loading = in_background(self._load, "reranker-loading")
            loading = self._loading
            if not loading.done():
                raise RerankerUnavailable("the reranker is still being loaded", hint="Ask again in a moment.")
            failure = loading.exception()
            if failure is None:
                return loading.result()
            self._loading, self._again_at = None, time.monotonic() + _PATIENCE_S
            self._failure = failure if isinstance(failure, MemorydError) else RerankerUnavailable(str(failure))
            raise self._failure
