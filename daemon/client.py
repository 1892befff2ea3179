"""The command line's side of the socket: one question at a time, plain blocking sockets, quick to import.

Only ``json``, ``socket`` and the errors are imported: ``memoryd status`` should cost a blink.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from typing import Any, NoReturn

from memoryd.store.errors import Busy, ConfigInvalid, MemorydError, NotRunning, TimedOut, all_errors

READ_BYTES = 64 * 1024


class Client:
    """A connection to the daemon, made at the first call and kept for the next ones.

    After any failure of the connection it is closed, so that no late answer can be taken for another's;
    the next call connects anew. Not for use by several threads at once.
    """

    def __init__(self, socket_path: str | os.PathLike[str], timeout: float | None = 30.0) -> None:
        self._path = os.fspath(socket_path)
        self._timeout = timeout  # for a whole call; None: as long as it takes
        self._socket: socket.socket | None = None
        self._unread = bytearray()
        self._last_id = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection, if there is one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._unread.clear()

    def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """The method's result. Raises the server's typed error, ``NotRunning``, ``Busy`` or ``TimedOut``."""
        self._last_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params or {}}
        # A file name that is not UTF-8 arrives from the shell as a lone surrogate: let the server refuse it.
        line = json.dumps(request, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        try:
            answer = self._exchange(line, deadline)
        except TimeoutError:
            self.close()
            raise TimedOut(
                f"The daemon did not answer {method} within {self._timeout:g} s.",
                hint="It may be busy: see 'memoryd status'.",
            ) from None
        except BaseException:
            self.close()
            raise
        if "error" in answer:
            try:
                _raise_error(answer["error"])
            except Busy:
                self.close()  # as the server does
                raise
        return answer.get("result")

    def _exchange(self, line: bytes, deadline: float | None) -> dict[str, Any]:
        connection = self._socket = self._socket or self._connect(deadline)
        try:
            connection.settimeout(_remaining(deadline))
            connection.sendall(line)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it may have said why before it closed
        while True:
            answer = _parse_answer(self._read_line(connection, deadline))
            if "method" in answer:
                continue  # a notification is not for us
            if answer.get("id") == self._last_id:
                return answer
            if answer.get("id") is None and "error" in answer:
                _raise_error(answer["error"])  # refused before our request was understood
            raise MemorydError("The daemon answered another request than ours.", hint="Please report this as a bug.")

    def _connect(self, deadline: float | None) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_remaining(deadline))
            connection.connect(self._path)
        except BlockingIOError:
            connection.close()
            raise Busy("The daemon has too many clients waiting.", hint="Try again later.") from None
        except TimeoutError:
            connection.close()
            raise
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            raise NotRunning(
                f"No memoryd daemon is listening on {self._path}.", hint="Start it with 'memoryd run'."
            ) from None
        except OSError as exc:
            connection.close()
            raise NotRunning(
                f"The socket {self._path} cannot be used: {exc.strerror or exc}.",
                hint="Is it yours, and is the socket path in the configuration right?",
            ) from exc
        return connection

    def _read_line(self, connection: socket.socket, deadline: float | None) -> bytes:
        searched = 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            connection.settimeout(_remaining(deadline))
            try:
                data = connection.recv(READ_BYTES)
            except ConnectionResetError:
                data = b""
            if not data:
                raise NotRunning(
                    "The daemon closed the connection before it answered.",
                    hint="It may be stopping, or run as another user: see 'memoryd status'.",
                )
            self._unread += data
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line


def _remaining(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    return remaining


def _parse_answer(line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise MemorydError("What listens on the socket does not speak JSON-RPC.", hint="Is the socket path right?")
    return answer


def _raise_error(error: Any) -> NoReturn:
    """The server's error as the class that it was there."""
    error = error if isinstance(error, dict) else {}
    data = error.get("data")
    data = data if isinstance(data, dict) else {}
    message = str(error.get("message", ""))
    hint = None if data.get("hint") is None else str(data["hint"])
    for kind in all_errors():
        if kind.code == data.get("code"):
            raise ConfigInvalid((message,), hint=hint) if kind is ConfigInvalid else kind(message, hint=hint)
    raise MemorydError(message, hint=hint)
