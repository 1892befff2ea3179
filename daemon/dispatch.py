"""From a request to its answer: finds the method, runs it where it may block, and turns errors into words."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from memoryd.daemon.limits import Limits
from memoryd.daemon.protocol import (
    INTERNAL,
    Refusal,
    Request,
    WireError,
    encode_error,
    encode_result,
    error_of,
    named_params,
)
from memoryd.daemon.session import Call
from memoryd.store.cancellation import Cancellation, carry
from memoryd.store.errors import MemorydError, TimedOut

Handler = Callable[..., object]  # takes the params, and the client's session if the method says so


class OnRequest(Protocol):
    """Told once about every request, on the loop's thread, after its answer was handed over."""

    def __call__(self, method: str, took_ms: float, error_code: str | None, bytes_in: int, bytes_out: int) -> None: ...


class OnError(Protocol):
    """Told about every exception that nobody foresaw, on the loop's thread."""

    def __call__(self, method: str, exc: Exception) -> None: ...


@dataclass(frozen=True, slots=True)
class Method:
    """What a name on the wire does.

    A plain function runs on a thread and may block. An ``async def`` runs on the loop: it must not block,
    and holds no thread while it waits.
    """

    handler: Handler
    timeout_s: float | None = None  # None: the server's limit; math.inf: as long as it takes
    session: bool = False  # whether it is about the client, whose session it is then given too


class Dispatcher:
    """Runs requests, a bounded number at a time."""

    def __init__(self, methods: Mapping[str, Method], limits: Limits, on_request: OnRequest, on_error: OnError) -> None:
        self._methods = methods
        self._timeout_s = limits.request_timeout_s
        self._threads = ThreadPoolExecutor(limits.threads, thread_name_prefix="memoryd-request")
        self._on_request = on_request
        self._on_error = on_error
        self.in_flight = 0  # requests whose answer is not ready

    def set_limits(self, limits: Limits) -> None:
        """Another time limit; the number of threads stays."""
        self._timeout_s = limits.request_timeout_s

    async def answer(self, message: Request | Refusal, bytes_in: int, call: Call | None = None) -> bytes | None:
        """The encoded answer, or None to a notification. Nothing a client or a method does raises."""
        started = time.perf_counter()
        self.in_flight += 1
        try:
            name, error, payload = await self._outcome(message, call)
        finally:
            self.in_flight -= 1
        answer = None if isinstance(message, Request) and message.is_notification else payload
        took_ms = (time.perf_counter() - started) * 1000
        code = None if error is None else error.code
        # Once the answer is written: until then the client waits.
        asyncio.get_running_loop().call_soon(self._note, name, took_ms, code, bytes_in, len(answer or b""))
        return answer

    def _note(self, method: str, took_ms: float, code: str | None, bytes_in: int, bytes_out: int) -> None:
        # A log that cannot be written (a closed terminal) is nobody's error.
        with contextlib.suppress(OSError, ValueError):
            self._on_request(method, took_ms, code, bytes_in, bytes_out)

    def report(self, method: str, exc: Exception) -> None:
        """Passes on an exception that has no client to go to."""
        with contextlib.suppress(OSError, ValueError):
            self._on_error(method, exc)

    def close(self) -> None:
        """Takes no more work. A handler that is still running cannot be stopped; its result is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _outcome(self, message: Request | Refusal, call: Call | None) -> tuple[str, WireError | None, bytes]:
        if isinstance(message, Refusal):
            return (
                message.method if message.method in self._methods else "<invalid>",
                message.error,
                encode_error(message.id, message.error),
            )
        method = self._methods.get(message.method)
        if method is None:
            # The client's own word stays out of the log: it could be anything, of any length.
            known = ", ".join(sorted(self._methods))
            error = WireError("method_not_found", "There is no such method.", f"The methods are: {known}.")
            return "<unknown>", error, encode_error(message.id, error)
        try:
            return message.method, None, await self._run(method, message, call)
        except MemorydError as exc:
            error = error_of(exc)
        except Exception as exc:  # noqa: BLE001  policy lives here: a method's bug is an answer, not a crash
            self.report(message.method, exc)
            error = INTERNAL
        return message.method, error, encode_error(message.id, error)

    async def _run(self, method: Method, request: Request, call: Call | None) -> bytes:
        limit = self._timeout_s if method.timeout_s is None else method.timeout_s
        wanted = call.cancellation if call else Cancellation()
        carry(wanted)
        given: tuple[object, ...] = (named_params(request.params),)
        if method.session:
            given += (call.session if call else None,)
        try:
            async with asyncio.timeout(None if math.isinf(limit) else limit) as scope:
                if inspect.iscoroutinefunction(method.handler):
                    return encode_result(request.id, await method.handler(*given))
                work = partial(copy_context().run, _run_blocking, method.handler, given, request)
                outcome = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except TimeoutError:
            if not scope.expired():
                raise
            raise TimedOut(
                f"{request.method} took longer than {limit:g} s.", hint="Try again, or ask for less."
            ) from None
        finally:
            wanted.cancel()  # a thread that still works on it works for nobody
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def _run_blocking(handler: Handler, given: tuple[object, ...], request: Request) -> bytes | Exception:
    """The handler's encoded answer, or what it raised: a future cannot carry a StopIteration."""
    try:
        return encode_result(request.id, handler(*given))
    except Exception as exc:  # noqa: BLE001  raised again on the loop
        return exc
