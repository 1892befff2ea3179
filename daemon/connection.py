"""One client: reads its requests, keeps it from asking more than it reads, and has them answered."""

from __future__ import annotations

import asyncio
import contextlib

from memoryd.daemon.any_framing import AnyFraming
from memoryd.daemon.dispatch import Dispatcher
from memoryd.daemon.framing import Message
from memoryd.daemon.limits import Limits
from memoryd.daemon.listener import has_left
from memoryd.daemon.outbox import Batch, Outbox
from memoryd.daemon.params import parse_params
from memoryd.daemon.protocol import Refusal, Request, encode_batch, error_of, parse_message
from memoryd.daemon.requests import CancelRequest
from memoryd.daemon.session import CANCEL, Call, Session
from memoryd.store.errors import AnswerTooLarge, Cancelled, InvalidParams, MemorydError, TimedOut

READ_BYTES = 64 * 1024

Item = tuple[Request, Call] | Refusal  # of a batch, or by itself


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
        self._dispatcher = dispatcher
        self._limits = limits
        self._framing = AnyFraming(limits.max_request_bytes)
        self._outbox = Outbox(writer, self._framing, limits, self._abandon)
        self._transport = writer.transport
        self._session = Session(self._outbox.tell)
        self._unanswered = asyncio.Semaphore(limits.max_in_flight)  # messages
        self._running = asyncio.Semaphore(limits.max_in_flight)  # requests: those of a batch count each
        self._answering: set[asyncio.Task[None]] = set()
        self._reading: asyncio.Task[None] | None = None
        self._active_at = asyncio.get_running_loop().time()
        self._begun_at: float | None = None  # when we began to wait for the rest of a message

    async def run(self) -> None:
        """Serves the client until it leaves or ``stop_reading``, then finishes what was begun."""
        self._reading = asyncio.create_task(self._read_requests())
        try:
            await asyncio.wait({self._reading})
            if not self._reading.cancelled() and isinstance(exc := self._reading.exception(), Exception):
                self._dispatcher.report("<connection>", exc)
            while self._answering:
                await asyncio.wait(self._answering)
            self._session.unfollow()
            await self._outbox.close()
        finally:
            self._session.unfollow()
            tasks = {self._reading, *self._answering}
            for task in tasks:
                task.cancel()
            await asyncio.gather(self._outbox.abort(), *tasks, return_exceptions=True)

    def stop_reading(self) -> None:
        """Takes no further request; those in flight go on."""
        if self._reading is not None:
            self._reading.cancel()

    # -- reading ------------------------------------------------------------------------------------------

    async def _read_requests(self) -> None:
        try:
            while data := await self._receive():
                messages = self._framing.feed(data)
                if messages or not self._framing.partial:
                    self._begun_at = None
                for message in messages:
                    await self._take(message)
                if self._framing.broken:
                    return
            for message in self._framing.end():
                await self._take(message)
            if has_left(self._transport.get_extra_info("socket")):
                self._session.forsake()
        except TimedOut as late:
            await self._take(late)
        except OSError:
            self._abandon()

    async def _receive(self) -> bytes:
        """The next bytes, or none at the end of the stream or of our patience with a silent client."""
        loop = asyncio.get_running_loop()
        if self._framing.partial and self._begun_at is None:
            self._begun_at = loop.time()
        while True:
            now = loop.time()
            if self._answering or self._session.subscription:
                self._active_at = now
            idle_at = None if self._limits.idle_timeout_s is None else self._active_at + self._limits.idle_timeout_s
            late_at = None if self._begun_at is None else self._begun_at + self._limits.arrival_timeout_s
            try:
                async with asyncio.timeout_at(min((at for at in (idle_at, late_at) if at is not None), default=None)):
                    return await self._reader.read(READ_BYTES)
            except TimeoutError:
                now = loop.time()
                if late_at is not None and now >= late_at:
                    raise TimedOut(
                        f"The request did not arrive whole within {self._limits.arrival_timeout_s:g} s.",
                        hint="Connect again, and send it in one go.",
                    ) from None
                busy = self._answering or self._session.subscription
                if idle_at is not None and now >= idle_at and not busy:
                    return b""

    async def _take(self, message: Message) -> None:
        parsed, size = self._parse(message)
        if isinstance(parsed, tuple) and parsed[0].method == CANCEL and parsed[0].is_notification:
            self._cancel(parsed[0])  # at once: what it is about may hold the last place
            return
        await self._unanswered.acquire()
        if self._transport.is_closing():
            raise ConnectionAbortedError("the client is gone; what it asked last is moot")
        task = asyncio.create_task(self._answer(parsed, size))
        self._answering.add(task)
        task.add_done_callback(self._finish)

    def _parse(self, message: Message) -> tuple[Item | list[Item], int]:
        """What is asked, each request with its call, and the size."""
        if isinstance(message, MemorydError):
            return Refusal(None, error_of(message)), 0
        parsed = parse_message(message, self._limits.max_batch)
        if isinstance(parsed, list):
            return [self._open(item) for item in parsed], len(message)
        return self._open(parsed), len(message)

    def _open(self, message: Request | Refusal) -> Item:
        return message if isinstance(message, Refusal) else (message, self._session.open_call(message))

    def _cancel(self, request: Request) -> None:
        with contextlib.suppress(InvalidParams):  # a notification is never answered, whatever it says
            self._session.cancel(parse_params(CancelRequest, request.params).id)

    # -- answering ----------------------------------------------------------------------------------------

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        self._unanswered.release()
        self._active_at = asyncio.get_running_loop().time()
        if not task.cancelled() and isinstance(exc := task.exception(), Exception):
            self._dispatcher.report("<connection>", exc)
            self._abandon()

    async def _answer(self, parsed: Item | list[Item], size: int) -> None:
        if not isinstance(parsed, list):
            await self._send(await self._run(parsed, size))
            return
        with self._outbox.batch() as batch:
            share = size // len(parsed)
            parts = await asyncio.gather(*(self._run(item, share, batch) for item in parsed))
            answers = [part for part in parts if part is not None]
            await self._send(encode_batch(answers) if answers else None)

    async def _send(self, payload: bytes | None) -> None:
        if payload is not None:
            await self._outbox.answer(payload)

    async def _run(self, item: Item, size: int, batch: Batch | None = None) -> bytes | None:
        if isinstance(item, Refusal):
            return await self._dispatcher.answer(item, size)
        request, call = item
        task = call.task = asyncio.current_task()
        error: MemorydError = Cancelled("The request was cancelled, as the client asked.")
        try:
            if not call.revoked:
                async with self._running:
                    if batch is None:
                        return await self._dispatcher.answer(request, size, call)
                    refused = batch.is_full and not request.is_notification  # what cannot be answered is not begun
                    payload = None if refused else await self._dispatcher.answer(request, size, call)
                if request.is_notification or (payload is not None and self._outbox.keep(payload, batch)):
                    return payload
                error = self._too_much()
        except asyncio.CancelledError:
            # Only if it is the client's wish alone: a connection that ends cancels its tasks too.
            if task is None or not call.revoked or task.uncancel():
                raise
        finally:
            self._session.close_call(request, call)
        return await self._dispatcher.answer(Refusal(request.id, error_of(error), request.method), size)

    def _too_much(self) -> MemorydError:
        return AnswerTooLarge(
            f"The answers of the batch are more than {self._limits.max_answer_bytes} bytes together.",
            hint="Ask for this one by itself, or put fewer requests into a batch.",
        )

    def _abandon(self) -> None:
        """The client is gone or does not read: nobody waits for the answers."""
        self._transport.abort()
        for task in self._answering:
            task.cancel()
