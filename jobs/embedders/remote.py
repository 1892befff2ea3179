"""An embedder behind an HTTP API: a service, or a server on this machine or in this house.

What is sent is the text of passages and queries, nothing else. A request is never repeated inside a call: what failed
is held back (``breaker``), and the queue keeps the work. A batch that is too large is split, and the smaller size kept.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import numpy as np

from memoryd.jobs.embedders.batches import fit_text, split_batches
from memoryd.jobs.embedders.breaker import Breaker
from memoryd.jobs.embedders.budget import Budget
from memoryd.jobs.embedders.providers.provider import Answer, Ask, Fault, Purpose
from memoryd.jobs.embedders.service import Service
from memoryd.jobs.embedders.shortening import read_rows
from memoryd.jobs.http import Http, Reply, Unreachable
from memoryd.jobs.keys import ReadKey
from memoryd.jobs.models.transport import parse_retry_after
from memoryd.jobs.tokens import estimate_tokens
from memoryd.store.errors import EmbedderUnavailable, MemorydError, ProviderUnavailable
from memoryd.store.interruption import Interruption
from memoryd.store.model import EmbedderIdentity
from memoryd.store.protocols import Clock, Hold, Vectors

QUERY_TIMEOUT_S: Final = 4.0  # a query goes on by words rather than wait longer
_LARGEST_ANSWER: Final = 64_000_000  # bytes: 128 vectors of 3,072 numbers are about a tenth of it
_KEPT_QUERIES: Final = 256  # a question that is asked again is not sent again
_WELL: Final = 64  # requests, after which a batch that was split may be larger again
_SHORTEST_TEXT: Final = 64  # bytes: what is refused as too large even then is refused
_AWAY: Final = "memoryd asks again by itself. Check that it runs, embedder.base_url and the proxy variables."
_LATER: Final = "memoryd asks again by itself; what is to be embedded waits in the queue."
_CHECK_KEY: Final = "Check the key (docs/models.md says where it is looked for), then 'memoryd index --force'."
_CHECK: Final = "Check embedder.model, embedder.base_url and embedder.dimension, then restart memoryd."


class RemoteEmbedder:
    """Documents by one thread, queries by any number, all at the same time."""

    concurrent = True

    def __init__(self, service: Service, read_key: ReadKey | None, budget: Budget, clock: Clock = time.time) -> None:
        self._service = service
        self._provider = service.provider
        self._read_key = read_key
        self._budget = budget
        self._clock = clock
        self._breaker = Breaker(clock)
        self._refused_key: int | None = None  # the hash of the key that was refused
        self._paused: Hold | None = None  # of documents alone, for the budget's sake
        self._asked = threading.Lock()  # of what follows
        self._queries: OrderedDict[str, Vectors] = OrderedDict()
        self.batch = self._provider.limits.texts
        self._well = 0  # requests that were answered since the last that was too large
        self._http = Http(self._provider.url(service.base_url, service.model), largest=_LARGEST_ANSWER, closed=_closed)
        self._dimension = 0
        try:  # the first answer tells the dimension, and that there is anybody
            self._dimension = self._ask([service.prompts.query + "warm up"], "query", service.timeout_s).shape[1]
        except BaseException:
            self.close()
            raise
        self.identity = EmbedderIdentity(
            model=f"{self._provider.name}:{service.model}",
            fingerprint=service.fingerprint(self._dimension),
            dimension=self._dimension,
        )

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row per text, in the order of the texts."""
        self._http.check_open()
        prefix, limits = self._service.prompts.document, self._provider.limits
        fitted = [fit_text(prefix + text, limits.context) for text in texts]
        vectors = np.empty((len(texts), self._dimension), np.float32)
        for places in split_batches(fitted, self.batch, limits.tokens, limits.bytes):
            vectors[places] = self._ask([fitted[place] for place in places], "document", self._service.timeout_s)
        return vectors

    def embed_or_yield(self, texts: Sequence[str], interruption: Interruption) -> Vectors | None:  # noqa: ARG002
        """Nobody waits for it: queries are embedded beside it."""
        return self.embed_documents(texts)

    def embed_query(self, text: str) -> Vectors:
        """The vector of one query; quickly, or not at all."""
        self._http.check_open()
        with self._asked:
            if text in self._queries:
                self._queries.move_to_end(text)
                return self._queries[text]
        fitted = fit_text(self._service.prompts.query + text, self._provider.limits.context)
        vector: Vectors = self._ask([fitted], "query", min(QUERY_TIMEOUT_S, self._service.timeout_s))[0]
        vector.flags.writeable = False
        with self._asked:
            self._queries[text] = vector
            while len(self._queries) > _KEPT_QUERIES:
                self._queries.popitem(last=False)
        return vector

    def count_tokens(self, text: str) -> int:
        """An estimate: the service has a tokenizer of its own."""
        self._http.check_open()
        return estimate_tokens(text)

    def hold(self) -> Hold | None:
        hold = self._breaker.hold()
        if hold is not None and hold.lasting and self._refused_key not in (None, self._key_hash()):
            self._breaker.release()  # there is another key
            return None
        paused = self._paused
        if hold is None and paused is not None and self._clock() >= paused.until:
            paused = self._paused = None
        return hold or paused

    def try_again(self) -> None:
        self._breaker.release()

    def close(self) -> None:
        self._http.close()

    # -- one request --------------------------------------------------------------------------------------

    def _ask(self, texts: list[str], purpose: Purpose, timeout_s: float) -> Vectors:
        """The rows of a batch. What is too large is sent in halves: first of the batch, then of the one text."""
        self.hold()  # lets another key have its try
        self._breaker.check()
        key = self._read_key() if self._read_key else ""
        self._check_budget(texts, purpose)
        asked = Ask(self._service.model, texts, purpose, self._service.dimension)
        try:
            reply = self._http.post(self._provider.body(asked), self._provider.headers(key), timeout_s)
        except Unreachable as problem:
            raise self._breaker.fail(f"{self._service.host} cannot be asked: {problem}", _AWAY) from None
        if reply.status == 200:
            return self._read(reply, texts)
        fault = self._provider.explain(reply.status, reply.json())
        if fault.kind != "too_large":
            raise self._failure(reply, fault, key)
        if len(texts) == 1:
            shorter = fit_text(texts[0], len(texts[0].encode()) // 2)
            if len(shorter.encode()) < _SHORTEST_TEXT:
                raise self._failure(reply, Fault("refused", fault.words), key)
            return self._ask([shorter], purpose, timeout_s)
        half = len(texts) // 2
        self.batch, self._well = max(1, min(self.batch, half)), 0
        return np.concatenate([self._ask(part, purpose, timeout_s) for part in (texts[:half], texts[half:])])

    def _read(self, reply: Reply, texts: list[str]) -> Vectors:
        body = reply.json()
        if body is None:  # a portal or a proxy that answers in its place
            raise self._breaker.fail(f"{self._service.host} answered with something that is no JSON", _AWAY)
        try:
            answer: Answer = self._provider.read(body)
        except (LookupError, TypeError, ValueError, AttributeError):
            said = f"{self._service.host} does not answer as {self._provider.name} does"
            raise self._breaker.refuse(said, _CHECK, these_texts=False) from None
        self._budget.spend(answer.tokens if answer.tokens is not None else sum(map(estimate_tokens, texts)))
        try:
            vectors = read_rows(answer.rows, len(texts), self._service.dimension, self._dimension)
        except ValueError as wrong:
            said = f"{self._service.host} answered with {wrong}"
            raise self._breaker.refuse(said, _CHECK, these_texts=True) from None
        self._breaker.succeed()
        self._grow()
        return vectors

    def _grow(self) -> None:
        """A batch that was once too large is not so for ever."""
        self._well += 1
        if self._well % _WELL == 0:
            self.batch = min(self._provider.limits.texts, self.batch * 2)

    def _check_budget(self, texts: list[str], purpose: Purpose) -> None:
        if not self._budget.allows(sum(map(estimate_tokens, texts)), query=purpose == "query"):
            said = "the tokens of the day (embedder.daily_tokens) are used up"
            hint = "It goes on at midnight UTC; raise embedder.daily_tokens to go on now."
            # What is too much for a query is too much for a batch; another query may be shorter.
            self._paused = Hold(said, hint, lasting=False, until=self._budget.renewed_at(), queries=False)
            raise ProviderUnavailable(said, hint=hint)

    def _failure(self, reply: Reply, fault: Fault, key: str) -> MemorydError:
        said = f"{self._service.host} answered {reply.status}"
        if reply.status in (401, 403):  # some quote the key that they refuse
            self._refused_key = hash(key)
            return self._breaker.refuse(said, fault.hint or _CHECK_KEY, these_texts=False)
        words = fault.words.replace(key, "…") if key else fault.words
        said = f"{said}: {words}" if words else said
        if fault.kind == "passing":
            wait = parse_retry_after(reply.headers.get("retry-after"), self._clock())
            return self._breaker.fail(said, _LATER, wait if wait is not None else fault.wait)
        if fault.kind == "lasting":
            self._refused_key = hash(key)
        return self._breaker.refuse(said, fault.hint or _CHECK, these_texts=fault.kind == "refused")

    def _key_hash(self) -> int | None:
        try:
            return hash(self._read_key() if self._read_key else "")
        except MemorydError:
            return self._refused_key  # none is no better


def _closed() -> EmbedderUnavailable:
    return EmbedderUnavailable("the embedder is closed", hint="Ask again once memoryd runs.")
