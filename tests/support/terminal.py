"""A program on a real terminal: what is typed to it, and all that it shows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import PATIENCE_S

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")


class Terminal:
    def __init__(self, descriptor: int, pid: int) -> None:
        self._descriptor = descriptor
        self._pid = pid
        self.raw = ""  # all that was written to it, control sequences too

    @property
    def shown(self) -> str:
        return _CONTROL.sub("", self.raw)

    def write(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        """As a window manager does: the size, and the signal that the kernel sends for it."""
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read_until(self, pattern: str, *, after: int = 0) -> re.Match[str]:
        """What matches, in what is shown from some place on."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := re.search(pattern, self.shown[after:])):
            assert self._read(deadline), f"{pattern} is not shown, but {self.shown[after:]!r}"
        return found

    def wait(self) -> int:
        """The program's exit code; everything that it shows until then is read."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(deadline):
            pass
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return os.waitstatus_to_exitcode(status)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # how a terminal tells that nobody is on it any more
            return False
        self.raw += data.decode(errors="replace")
        return bool(data)

    def end(self) -> None:
        os.close(self._descriptor)
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


@contextmanager
def terminal(
    command: Sequence[str | Path], env: Mapping[str, str], cwd: Path, size: tuple[int, int] = (80, 24)
) -> Iterator[Terminal]:
    pid, descriptor = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        os.chdir(cwd)
        os.execvpe(command[0], [os.fspath(word) for word in command], dict(env))
    shown = Terminal(descriptor, pid)
    try:
        yield shown
    finally:
        shown.end()
