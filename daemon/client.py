"""Asking the daemon from Python: one question at a time, plain blocking sockets, quick to import.

    from memoryd.daemon.client import Client

    with Client() as memory:
        for hit in memory.search("why did we leave cron", limit=3).results:
            print(hit.citation, hit.score, hit.snippet)

The command line asks by this client too, so it imports no more than ``json``, ``socket`` and the errors:
``memoryd status`` should cost a blink. ``async_client`` has the same methods for asyncio; the errors are those of
``memoryd.store.errors``, each with its ``code`` and ``hint``.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from memoryd.daemon.client_wire import (
    IDEMPOTENT,
    READ_BYTES,
    TIMEOUT_S,
    answered_another,
    closed_early,
    encode_request,
    find_socket,
    not_connected,
    parse_answer,
    raise_error,
    result_of,
    too_slow,
)
from memoryd.store.errors import Busy, NotRunning

TYPE_CHECKING = False  # importing typing would take longer than a search
if TYPE_CHECKING:
    from typing import Any, Unpack

    from memoryd.daemon.client_results import Document, Event, GetOptions, SearchOptions, SearchResult, Status


class Client:
    """A connection to the daemon, made at the first call and kept for the next ones.

    Where the daemon was restarted since the last call, the connection is made anew and the call goes through. A
    connection that is lost during a call is made anew once if the call can be repeated safely. After any other failure
    it is closed, so that no late answer can be taken for another's. Not for use by several threads at once.
    """

    def __init__(self, socket_path: str | os.PathLike[str] | None = None, timeout: float | None = TIMEOUT_S) -> None:
        self._path = None if socket_path is None else os.fspath(socket_path)  # None: this user's daemon
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

    def search(self, query: str, **options: Unpack[SearchOptions]) -> SearchResult:
        """The chunks that answer a query, best first."""
        from memoryd.daemon.client_results import read_search

        return read_search(self.call("search", {"query": query, **options}))

    def get(self, path: str, **options: Unpack[GetOptions]) -> Document:
        """A document or some of its lines as they are on disk now; ``path`` may be a hit's citation."""
        from memoryd.daemon.client_results import get_params, read_document

        return read_document(self.call("get", get_params(path, options)))

    def status(self) -> Status:
        """How the daemon is, and what it serves."""
        from memoryd.daemon.client_results import read_status

        return read_status(self.call("status"))

    def events(self, *kinds: str, workspace: Sequence[str] = ()) -> Iterator[Event]:
        """What happens from now on (document, progress, health; all unless said), on a connection of its own.

        Ends with ``NotRunning`` when the daemon stops.
        """
        from memoryd.daemon.client_results import Event

        params = {name: list(value) for name, value in (("events", kinds), ("workspace", workspace)) if value}
        with Client(self._path, timeout=None) as client:
            connection = client._connect(None)
            client._socket = connection
            with suppress(BrokenPipeError, ConnectionResetError):  # it may have said why before it closed
                connection.sendall(encode_request(0, "events.subscribe", params))
            for message in client._messages(connection, None):
                if event := Event.read(message):
                    yield event
                else:
                    result_of(message)  # of the subscription itself

    def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meanwhile: Callable[[], object] | None = None,
    ) -> Any:
        """Any method's result, as JSON has it. Raises the server's error, ``NotRunning``, ``Busy`` or ``TimedOut``.

        ``meanwhile`` is called once the daemon was asked, while it works on the answer.
        """
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        try:
            answer = self._ask(method, params, deadline, meanwhile)
        except TimeoutError:
            self.close()
            raise too_slow(method, self._timeout) from None
        except BaseException:
            self.close()
            raise
        try:
            return result_of(answer)
        except Busy:
            self.close()  # as the server does
            raise

    def _ask(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        deadline: float | None,
        meanwhile: Callable[[], object] | None,
    ) -> dict[str, Any]:
        if self._socket is not None and _was_closed(self._socket):
            self.close()  # the daemon went while nothing was asked: nothing is lost
        try:
            return self._exchange(method, params, deadline, meanwhile)
        except NotRunning:
            if self._socket is None or method not in IDEMPOTENT:  # None: nobody listens
                raise
        self.close()
        return self._exchange(method, params, deadline)

    def _exchange(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        deadline: float | None,
        meanwhile: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        self._last_id += 1
        connection = self._socket = self._socket or self._connect(deadline)
        with suppress(BrokenPipeError, ConnectionResetError):  # it may have said why before it closed
            connection.settimeout(_remaining(deadline))
            connection.sendall(encode_request(self._last_id, method, params))
        if meanwhile:
            meanwhile()
        for answer in self._messages(connection, deadline):
            if "method" in answer:
                continue  # a notification is not for us
            if answer.get("id") == self._last_id:
                return answer
            if answer.get("id") is None and "error" in answer:
                raise_error(answer["error"])  # refused before our request was understood
            break
        raise answered_another()

    def _connect(self, deadline: float | None) -> socket.socket:
        path = self._path = self._path or find_socket()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_remaining(deadline))
            connection.connect(path)
        except TimeoutError:
            connection.close()
            raise
        except OSError as error:
            connection.close()
            raise not_connected(path, error) from error
        return connection

    def _messages(self, connection: socket.socket, deadline: float | None) -> Iterator[dict[str, Any]]:
        while True:
            yield parse_answer(self._read_line(connection, deadline))

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
                raise closed_early()
            self._unread += data
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line


def _was_closed(connection: socket.socket) -> bool:
    """Whether the other side has ended the connection, as far as is known without waiting."""
    try:
        connection.setblocking(False)
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _remaining(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    return remaining
