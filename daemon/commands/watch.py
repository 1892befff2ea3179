"""``memoryd status --watch``: the terminal's side of it. Asks, draws, and waits for a key or a change of size."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.live import Live

from memoryd.daemon.commands.dashboard import compose
from memoryd.store.errors import MemorydError, NotRunning

_REFRESH_S = 1.0
_SHARE = 0.1  # of the time, at most, that the daemon spends on our questions: a look at a large disk takes a while
_QUIT = frozenset(b"qQ\x03\x04")  # q, Ctrl-C where the terminal passes it on, Ctrl-D; Escape begins an arrow key
_END = b"\x04"

Ask = Callable[[], dict[str, Any]]
Wait = Callable[[float], bytes]


def watch(out: Console, status: dict[str, Any], ask: Ask) -> dict[str, Any]:
    """Draw until the person has seen enough; returns the last status, or raises why there is none any more."""
    cpu_share = status["measures"]["process"]["cpu_s"] / max(status["uptime_s"], 0.1)
    failure: MemorydError | None = None
    trouble: str | None = None
    pause, due = _REFRESH_S, time.monotonic() + _REFRESH_S

    with suppress(KeyboardInterrupt), _keys() as wait, Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            live.update(compose(status, cpu_share, out.width, out.height, trouble), refresh=True)
            if not _QUIT.isdisjoint(wait(max(0.0, due - time.monotonic()))):
                break
            if time.monotonic() < due:
                continue  # the size changed, or a key that means nothing: draw again what is known
            began = time.monotonic()
            try:
                before, status = status, ask()
                cpu_share = _cpu_share(before, status, cpu_share)
                failure = trouble = None
                pause = max(_REFRESH_S, (time.monotonic() - began) / _SHARE)
            except MemorydError as error:
                failure, trouble = error, trouble or _describe(error)
            due = time.monotonic() + pause
    if failure is not None:
        raise failure
    return status


def _describe(error: MemorydError) -> str:
    since = datetime.now().astimezone().strftime("%H:%M:%S")
    if isinstance(error, NotRunning):
        return f"not running since {since}: 'memoryd run' starts it"
    return f"no answer since {since}: {error.message}"


def _cpu_share(before: dict[str, Any], now: dict[str, Any], known: float) -> float:
    """Of one core, between two answers of the same process."""
    passed = now["uptime_s"] - before["uptime_s"]
    spent = now["measures"]["process"]["cpu_s"] - before["measures"]["process"]["cpu_s"]
    return spent / passed if before["pid"] == now["pid"] and passed > 0.2 else known


@contextmanager
def _keys() -> Iterator[Wait]:
    """A wait that ends early at keys, which it returns, or at a change of the terminal's size."""
    awake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    typed = sys.stdin.fileno() if sys.stdin.isatty() else None
    before = termios.tcgetattr(typed) if typed is not None else None
    resized = signal.signal(signal.SIGWINCH, lambda *_: None)  # without a handler the signal would wake nobody
    waker = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def wait(seconds: float) -> bytes:
        sources = [awake, *([typed] if typed is not None else [])]
        ready, _, _ = select.select(sources, [], [], seconds)
        if awake in ready:
            os.read(awake, 1024)
        if typed is None or typed not in ready:
            return b""
        try:
            return os.read(typed, 64) or _END
        except OSError:  # the terminal is gone
            return _END

    try:
        if typed is not None:
            tty.setcbreak(typed)  # keys come at once and unseen; Ctrl-C stays what it is
        yield wait
    finally:
        if typed is not None and before is not None:
            termios.tcsetattr(typed, termios.TCSADRAIN, before)
        signal.set_wakeup_fd(waker)
        signal.signal(signal.SIGWINCH, resized)
        os.close(awake)
        os.close(wake)
