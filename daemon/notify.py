"""Talking with systemd without its library: readiness and status out, listening sockets in."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping, MutableMapping

FIRST_FD = 3  # where passed sockets start: sd_listen_fds(3)


class Notifier:
    """Tells the service manager how we are. Without one every call does nothing, and none ever fails."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):
            self._address = "\0" + self._address[1:]  # the abstract namespace
        self.watchdog_s = _watchdog_s(environ)  # WATCHDOG=1 is due at least twice in this time; None: never

    def ready(self, status: str) -> None:
        """We serve."""
        self._send(f"READY=1\nSTATUS={_one_line(status)}")

    def reloading(self) -> None:
        """We began to read the configuration again; ``ready`` ends it. The time tells systemd which request this is."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def status(self, status: str) -> None:
        """One line for people, shown by ``systemctl status``."""
        self._send(f"STATUS={_one_line(status)}")

    def stopping(self, status: str) -> None:
        """We began to stop."""
        self._send(f"STOPPING=1\nSTATUS={_one_line(status)}")

    def watchdog(self) -> None:
        """We are alive."""
        self._send("WATCHDOG=1")

    def _send(self, state: str) -> None:
        if not self._address:
            return
        # A manager that does not listen is no reason to stop serving.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(state.encode("utf-8", "replace"), self._address)


def listen_fds(environ: MutableMapping[str, str], pid: int) -> list[socket.socket]:
    """The sockets that systemd passed to this very process. Consumes the variables: no child may see them."""
    listen_pid = environ.pop("LISTEN_PID", "")
    count = environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if listen_pid != str(pid) or not count.isdecimal():
        return []
    passed = []
    for fd in range(FIRST_FD, FIRST_FD + int(count)):
        os.set_inheritable(fd, False)
        passed.append(socket.socket(fileno=fd))
    return passed


def _watchdog_s(environ: Mapping[str, str]) -> float | None:
    usec = environ.get("WATCHDOG_USEC", "")
    meant_for = environ.get("WATCHDOG_PID", str(os.getpid()))
    if not usec.isdecimal() or int(usec) == 0 or meant_for != str(os.getpid()):
        return None
    return int(usec) / 1_000_000


def _one_line(text: str) -> str:
    return " ".join(text.split())
