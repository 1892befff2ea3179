"""Asking the daemon from asyncio: any number of questions at a time on one connection.

from memoryd.daemon.async_client import AsyncClient

async with AsyncClient() as memory:
    goats, boats = await asyncio.gather(memory.search("goats"), memory.search("boats"))
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Unpack

from memoryd.daemon.client_results import (
    Document,
    Event,
    GetOptions,
    SearchOptions,
    SearchResult,
    Status,
    get_params,
    read_document,
    read_search,
    read_status,
)
from memoryd.daemon.client_wire import (
    IDEMPOTENT,
    READ_BYTES,
    TIMEOUT_S,
    answered_another,
    closed_early,
    encode_notification,
    encode_request,
    find_socket,
    not_connected,
    parse_answer,
    raise_error,
    result_of,
    too_slow,
)
from memoryd.store.errors import MemorydError, NotRunning

Answer = dict[str, Any]

EVENTS = 256  # that wait for whoever iterates over them


class AsyncClient:
    """A connection to the daemon, made at the first call and made anew where it was lost.

    Calls run side by side and are answered in any order. One that was lost with its connection is asked again, once,
    if that is safe. One that is cancelled or over its time is cancelled in the daemon too.
    """

    def __init__(self, socket_path: str | os.PathLike[str] | None = None, timeout: float | None = TIMEOUT_S) -> None:
        self._path = None if socket_path is None else os.fspath(socket_path)  # None: this user's daemon
        self._timeout = timeout  # for a whole call; None: as long as it takes
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection, if there is one; calls on it fail."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def search(self, query: str, **options: Unpack[SearchOptions]) -> SearchResult:
        """The chunks that answer a query, best first."""
        return read_search(await self.call("search", {"query": query, **options}))

    async def get(self, path: str, **options: Unpack[GetOptions]) -> Document:
        """A document or some of its lines as they are on disk now; ``path`` may be a hit's citation."""
        return read_document(await self.call("get", get_params(path, options)))

    async def status(self) -> Status:
        """How the daemon is, and what it serves."""
        return read_status(await self.call("status"))

    async def events(self, *kinds: str, workspace: Sequence[str] = ()) -> AsyncIterator[Event]:
        """What happens from now on (document, progress, health; all unless said), on a connection of its own.

        Ends with ``NotRunning`` when the daemon stops.
        """
        params = {name: list(value) for name, value in (("events", kinds), ("workspace", workspace)) if value}
        connection = self._connect(keeps_events=True)
        try:
            result_of(await connection.ask("events.subscribe", params))
            while True:
                yield await connection.next_event()
        finally:
            await connection.close()

    async def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Any method's result, as JSON has it. Raises the server's error, ``NotRunning``, ``Busy`` or ``TimedOut``."""
        try:
            async with asyncio.timeout(self._timeout):
                return result_of(await self._ask(method, params))
        except TimeoutError:
            raise too_slow(method, self._timeout) from None

    async def _ask(self, method: str, params: Mapping[str, Any] | None) -> Answer:
        connection = await self._connected()
        try:
            return await connection.ask(method, params)
        except NotRunning:
            if method not in IDEMPOTENT:
                raise
        return await (await self._connected()).ask(method, params)

    async def _connected(self) -> _Connection:
        async with self._connecting:
            if self._connection is None or self._connection.lost:
                await self.close()
                self._connection = self._connect()
            return self._connection

    def _connect(self, *, keeps_events: bool = False) -> _Connection:
        path = self._path = self._path or find_socket()
        # A Unix socket connects at once or not at all.
        raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        raw.setblocking(False)
        try:
            raw.connect(path)
        except OSError as error:
            raw.close()
            raise not_connected(path, error) from error
        return _Connection(raw, keeps_events=keeps_events)


class _Connection:
    """One connection, the calls that wait for an answer on it, and the task that hands the answers out.

    On the bare socket: asyncio's streams drop what the daemon said last when a write meets its closed end, and a daemon
    that is full says so and closes.
    """

    def __init__(self, raw: socket.socket, *, keeps_events: bool) -> None:
        self._socket = raw
        self._keeps_events = keeps_events
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._last_id = 0
        self.lost = False
        # What nobody takes stays in the daemon, which drops the oldest and says so. None: there will be no more.
        self._events: asyncio.Queue[Event | None] = asyncio.Queue(EVENTS)
        self._sending = asyncio.Lock()
        self._tasks = {asyncio.create_task(self._read_answers())}

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Answer:
        if self.lost:
            raise closed_early()
        self._last_id += 1
        id_ = self._last_id
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting[id_] = answer
        self._post(encode_request(id_, method, params))
        try:
            return await answer
        except asyncio.CancelledError:
            self._post(encode_notification("$/cancelRequest", {"id": id_}))
            raise
        finally:
            del self._waiting[id_]

    async def next_event(self) -> Event:
        event = None if self.lost and self._events.empty() else await self._events.get()
        if event is None:
            raise closed_early()
        return event

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._socket.close()

    def _post(self, line: bytes) -> None:
        """Sends in the background: a call that is cancelled must not leave half a line behind."""
        task = asyncio.create_task(self._send(line))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, line: bytes) -> None:
        async with self._sending:
            with contextlib.suppress(OSError):  # the reader finds the end, and what was said before it
                await self._loop.sock_sendall(self._socket, line)

    async def _read_answers(self) -> None:
        failure: MemorydError = closed_early()
        unread = bytearray()
        try:
            while data := await self._loop.sock_recv(self._socket, READ_BYTES):
                *lines, rest = (unread + data if b"\n" in data else data).split(b"\n")
                if lines:
                    unread = bytearray(rest)
                else:
                    unread += rest
                for line in lines:
                    answer = parse_answer(bytes(line))
                    if "method" not in answer:
                        self._hand_out(answer)
                    elif self._keeps_events and (event := Event.read(answer)):
                        await self._events.put(event)
        except OSError:
            pass  # the same as closed
        except MemorydError as error:
            failure = error
        finally:
            self.lost = True
            if not self._events.full():  # else nobody waits for the next
                self._events.put_nowait(None)
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(failure)

    def _hand_out(self, answer: Answer) -> None:
        if answer.get("id") is None and "error" in answer:
            raise_error(answer["error"])  # refused before a request was understood: whose is not known
        id_ = answer.get("id")
        if not isinstance(id_, int) or id_ > self._last_id:
            raise answered_another()
        waiting = self._waiting.get(id_)
        if waiting is not None and not waiting.done():  # else: nobody waits any more
            waiting.set_result(answer)
