"""The socket's life: start listening, admit clients, stop listening, let them finish, cut off the rest.

The server runs on the caller's event loop. It knows nothing of memory: methods are given by name, and what
happened is told to two callbacks.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from memoryd.daemon.any_framing import AnyFraming
from memoryd.daemon.connection import READ_BYTES, Connection
from memoryd.daemon.dispatch import Dispatcher, Method, OnError, OnRequest
from memoryd.daemon.framing import Message
from memoryd.daemon.limits import Limits
from memoryd.daemon.listener import (
    SocketIdentity,
    bind_listener,
    check_inherited,
    peer_uid,
    remove_listener,
)
from memoryd.daemon.protocol import Id, Request, WireError, encode_error, error_of, parse_message
from memoryd.store.errors import Busy

BACKLOG = 4096  # connections waiting to be accepted (the kernel may allow fewer); past it a connect fails at once
TURNED_AWAY = 64  # clients too many that we still listen to, each for a moment
FIRST_WORD_S = 0.25


class Server:
    """Answers JSON-RPC on one Unix socket."""

    def __init__(
        self,
        methods: Mapping[str, Method],
        *,
        socket_path: Path,
        listener: socket.socket | None = None,  # inherited from systemd; then the path stays untouched
        limits: Limits,
        on_request: OnRequest,
        on_error: OnError,
    ) -> None:
        self._path = socket_path
        self._listener = listener
        self._limits = limits
        self._dispatcher = Dispatcher(methods, limits, on_request, on_error)
        self._identity: SocketIdentity | None = None
        self._server: asyncio.Server | None = None
        self._connections: dict[Connection, asyncio.Task[None]] = {}
        self._turning_away = 0

    @property
    def limits(self) -> Limits:
        """What it takes on."""
        return self._limits

    @property
    def connections(self) -> int:
        """Clients connected now."""
        return len(self._connections)

    @property
    def in_flight(self) -> int:
        """Requests not answered yet."""
        return self._dispatcher.in_flight

    async def start(self) -> None:
        """Listens. Raises ``AlreadyRunning``, or ``ConfigInvalid`` where the socket cannot be made."""
        if self._listener is None:
            self._listener, self._identity = bind_listener(self._path)
        else:
            check_inherited(self._listener)
        # Not start_unix_server: from Python 3.13 on that one removes the file itself, an inherited one too.
        self._server = await asyncio.start_server(self._admit, sock=self._listener, backlog=BACKLOG, limit=READ_BYTES)

    async def stop(self, deadline_s: float) -> int:
        """Stops in order and returns how many requests were cut off at the deadline."""
        # The name goes first: while it is there, somebody listens.
        if self._identity is not None:
            remove_listener(self._path, self._identity)
        if self._server is not None:
            self._server.close()

        for connection in self._connections:
            connection.stop_reading()
        if self._connections:
            await asyncio.wait(self._connections.values(), timeout=deadline_s)

        cut_off = self._dispatcher.in_flight
        stragglers = list(self._connections.values())
        for task in stragglers:
            task.cancel()
        await asyncio.gather(*stragglers, return_exceptions=True)
        self._dispatcher.close()
        if self._server is not None:
            await self._server.wait_closed()
        return cut_off

    async def _admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        uid = peer_uid(writer.get_extra_info("socket"))
        if uid != os.geteuid():
            self._dispatcher.report("<connect>", PermissionError(f"user {uid} may not connect"))
            await self._dismiss(writer)
        elif len(self._connections) >= self._limits.max_connections:
            busy = Busy(
                f"The server has {self._limits.max_connections} connections already.",
                hint="Close some, or try again later.",
            )
            await self._turn_away(reader, writer, error_of(busy))
        else:
            await self._serve(Connection(reader, writer, self._dispatcher, self._limits))

    async def _serve(self, connection: Connection) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a connection is served by a task")
        self._connections[connection] = task
        try:
            await connection.run()
        except asyncio.CancelledError:
            pass  # only stop() cancels, and awaits us; asyncio's streams would log it as a crash
        finally:
            del self._connections[connection]

    async def _turn_away(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, error: WireError) -> None:
        """Says why, in the client's framing and to its first request, if it shows them soon and we are not flooded."""
        framing, asked = AnyFraming(self._limits.max_request_bytes), None
        if self._turning_away < TURNED_AWAY:
            self._turning_away += 1
            try:
                async with asyncio.timeout(FIRST_WORD_S):
                    messages = framing.feed(await reader.read(READ_BYTES))
                asked = _id_of(messages[0], self._limits.max_batch) if messages else None
            except (TimeoutError, OSError):
                pass  # it listens before it speaks, or is gone
            finally:
                self._turning_away -= 1
        writer.write(framing.frame(encode_error(asked, error)))
        await self._dismiss(writer)

    @staticmethod
    async def _dismiss(writer: asyncio.StreamWriter) -> None:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _id_of(message: Message, max_batch: int) -> Id:
    parsed = parse_message(message, max_batch) if isinstance(message, bytes) else None
    return parsed.id if isinstance(parsed, Request) else None
