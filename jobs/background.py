"""Work whose caller may stop waiting for it, and that never keeps the process from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Protocol, TypeVar

Result = TypeVar("Result")
Closing = TypeVar("Closing", bound="Closable")


def in_background(work: Callable[[], Result], name: str) -> Future[Result]:
    """Begin the work in a thread of its own. Cancelling lets the waiting caller go; the result is then dropped."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  raised again where the result is asked for
            with suppress(InvalidStateError):
                future.set_exception(error)
        else:
            with suppress(InvalidStateError):
                future.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


class Closable(Protocol):
    def close(self) -> None: ...


def close_result(future: Future[Closing]) -> None:
    """Close what comes of it, be it now or later, if anything does."""

    def close(ended: Future[Closing]) -> None:
        if not ended.cancelled() and ended.exception() is None:
            ended.result().close()

    future.add_done_callback(close)
