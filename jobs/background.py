"""Work whose caller may stop waiting for it, and that never keeps the process from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TypeVar

Result = TypeVar("Result")


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
