"""One client: reads its requests, keeps it from asking more than it reads, and writes its answers."""

from __future__ import annotations

import asyncio
import contextlib

from memoryd.daemon.dispatch import Dispatcher
from memoryd.daemon.framing import LineFraming
from memoryd.daemon.limits import Limits
from memoryd.daemon.protocol import Refusal, Request, encode_batch, error_of, parse_message
from memoryd.store.errors import RequestTooLarge

READ_BYTES = 64 * 1024


class Connection:
    """Lives from accept to close.

    Answers go out as they are ready, in any order. A message holds one of ``max_in_flight`` places until its
    answer is handed to the kernel; when all are taken we stop reading, and the client's own writes block.
    When the client ends its side (``nc -N``), what it asked is still answered.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        dispatcher: Dispatcher,
        limits: Limits,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._transport = writer.transport
        self._transport.set_write_buffer_limits(high=limits.write_buffer_bytes)
        self._dispatcher = dispatcher
        self._limits = limits
        self._framing = LineFraming(limits.max_request_bytes)
        self._unanswered = asyncio.Semaphore(limits.max_in_flight)  # messages
        self._running = asyncio.Semaphore(limits.max_in_flight)  # requests: those of a batch count each
        self._answering: set[asyncio.Task[None]] = set()
        self._reading: asyncio.Task[None] | None = None
        self._written = 0
        self._active_at = asyncio.get_running_loop().time()

    async def run(self) -> None:
        """Serves the client until it leaves or ``stop_reading``, then finishes what was begun."""
        self._reading = asyncio.create_task(self._read_requests())
        try:
            await asyncio.wait({self._reading})
            if not self._reading.cancelled() and isinstance(exc := self._reading.exception(), Exception):
                self._dispatcher.report("<connection>", exc)
            while self._answering:
                await asyncio.wait(self._answering)
            await self._close()
        finally:
            tasks = {self._reading, *self._answering}
            for task in tasks:
                task.cancel()
            self._transport.abort()
            await asyncio.gather(*tasks, return_exceptions=True)
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    def stop_reading(self) -> None:
        """Takes no further request; those in flight go on."""
        if self._reading is not None:
            self._reading.cancel()

    async def _read_requests(self) -> None:
        try:
            while data := await self._receive():
                for message in self._framing.feed(data):
                    await self._take(message)
            for message in self._framing.end():
                await self._take(message)
        except OSError:
            self._abandon()

    async def _receive(self) -> bytes:
        """The next bytes, or none at the end of the stream or of our patience."""
        idle_s = self._limits.idle_timeout_s
        if idle_s is None:
            return await self._reader.read(READ_BYTES)
        loop = asyncio.get_running_loop()
        while True:
            if self._answering:
                self._active_at = loop.time()
            try:
                async with asyncio.timeout_at(self._active_at + idle_s):
                    return await self._reader.read(READ_BYTES)
            except TimeoutError:
                if not self._answering and loop.time() >= self._active_at + idle_s:
                    return b""

    async def _take(self, message: bytes | RequestTooLarge) -> None:
        await self._unanswered.acquire()
        if self._transport.is_closing():
            raise ConnectionAbortedError("the client is gone; what it asked last is moot")
        parsed: Request | Refusal | list[Request | Refusal]
        if isinstance(message, RequestTooLarge):
            parsed, size = Refusal(None, error_of(message)), self._limits.max_request_bytes
        else:
            parsed, size = parse_message(message, self._limits.max_batch), len(message)
        task = asyncio.create_task(self._answer(parsed, size))
        self._answering.add(task)
        task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        self._unanswered.release()
        self._active_at = asyncio.get_running_loop().time()
        if not task.cancelled() and isinstance(exc := task.exception(), Exception):
            self._dispatcher.report("<connection>", exc)
            self._abandon()

    async def _answer(self, parsed: Request | Refusal | list[Request | Refusal], size: int) -> None:
        if isinstance(parsed, list):
            share = size // len(parsed)
            parts = await asyncio.gather(*(self._run(item, share) for item in parsed))
            answers = [part for part in parts if part is not None]
            payload = encode_batch(answers) if answers else None
        else:
            payload = await self._run(parsed, size)
        if payload is not None:
            await self._send(payload)

    async def _run(self, message: Request | Refusal, size: int) -> bytes | None:
        async with self._running:
            return await self._dispatcher.answer(message, size)

    async def _send(self, payload: bytes) -> None:
        if self._transport.is_closing():
            return
        frame = self._framing.frame(payload)
        self._writer.write(frame)
        self._written += len(frame)
        while True:
            sent = self._bytes_sent()
            try:
                async with asyncio.timeout(self._limits.write_timeout_s):
                    await self._writer.drain()
            except TimeoutError:
                if self._bytes_sent() > sent:
                    continue
                self._abandon()
            except OSError:
                self._abandon()
            return

    def _bytes_sent(self) -> int:
        return self._written - self._transport.get_write_buffer_size()

    def _abandon(self) -> None:
        """The client is gone or does not read: nobody waits for the answers."""
        self._transport.abort()
        for task in self._answering:
            task.cancel()

    async def _close(self) -> None:
        """Hands the last bytes to the client, as long as it reads."""
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(self._limits.write_timeout_s):
                await self._writer.wait_closed()
