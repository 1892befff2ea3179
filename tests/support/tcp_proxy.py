"""A door before a server: open, shut, or held open with nobody answering. It counts the HTTP requests that go in."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

_REQUEST = re.compile(rb"(GET|PUT|POST|HEAD|DELETE) \S* HTTP/1\.1\r\n")


class Door:
    def __init__(self, port: int) -> None:
        self._target = port
        self._state: Literal["open", "shut", "hanging"] = "open"
        self._loop = asyncio.new_event_loop()
        self._opened = asyncio.Event()
        self._opened.set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.tries = 0  # connections that came to a shut door, and requests that came to any other
        self.port = 0

    def open(self) -> None:
        self._call(self._set, "open")

    def shut(self) -> None:
        """Every connection is cut off, and no new one gets through."""
        self._call(self._set, "shut")

    def hang(self) -> None:
        """Whoever asks waits."""
        self._call(self._set, "hanging")

    def _set(self, state: Literal["open", "shut", "hanging"]) -> None:
        self._state = state
        if state == "hanging":
            self._opened.clear()
        else:
            self._opened.set()
        if state == "shut":
            for writer in self._writers:
                writer.transport.abort()

    def _call(self, function: object, *arguments: object) -> None:
        done = threading.Event()

        def call() -> None:
            function(*arguments)  # type: ignore[operator]
            done.set()

        self._loop.call_soon_threadsafe(call)
        assert done.wait(10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._state == "shut":
            self.tries += 1
            writer.transport.abort()
            return
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, to_writer}
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(reader, to_writer, counts=True))
                both.create_task(self._pump(to_reader, writer, counts=False))
        finally:
            self._writers -= {writer, to_writer}

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, counts: bool) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                if counts:
                    self.tries += len(_REQUEST.findall(data))
                await self._opened.wait()
                sink.write(data)
                await sink.drain()
        sink.close()

    async def _run(self, ready: threading.Event, stop: asyncio.Event) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        server.close()
        for writer in self._writers:
            writer.transport.abort()

    @contextmanager
    def running(self) -> Iterator[Door]:
        ready, stop = threading.Event(), asyncio.Event()
        thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run(ready, stop)), daemon=True)
        thread.start()
        assert ready.wait(10)
        try:
            yield self
        finally:
            self._call(self._set, "shut")
            self._loop.call_soon_threadsafe(stop.set)
            thread.join(10)
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()
