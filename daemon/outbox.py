"""What goes out to one client: answers, which it has to read in time, and events, which can wait."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from memoryd.daemon.framing import Framing
from memoryd.daemon.limits import Limits

SMALL_BYTES = 4096  # an answer that is never refused: what was done is told


@dataclass(slots=True)
class Batch:
    """What is kept of one batch's answers."""

    held: int = 0  # bytes
    is_full: bool = False  # one of them was too much


class Outbox:
    """Writes whole frames; what the client does not read is bounded by the transport's buffer."""

    def __init__(
        self, writer: asyncio.StreamWriter, framing: Framing, limits: Limits, on_dead: Callable[[], None]
    ) -> None:
        self._writer = writer
        self._transport = writer.transport
        self._transport.set_write_buffer_limits(high=limits.write_buffer_bytes)
        self._framing = framing
        self._timeout_s = limits.write_timeout_s
        self._on_dead = on_dead
        self._written = 0
        self._most = limits.max_answer_bytes
        self._held = 0  # bytes of answers that wait for the rest of their batch, or to be sent with it

    @contextlib.contextmanager
    def batch(self) -> Iterator[Batch]:
        """Counts what one batch keeps here, until it is sent."""
        batch = Batch()
        try:
            yield batch
        finally:
            self._held -= batch.held

    def keep(self, payload: bytes, batch: Batch) -> bool:
        """Whether there is room for one more answer of the batch; for a small one there always is."""
        if len(payload) > SMALL_BYTES and self._held + len(payload) > self._most:
            batch.is_full = True
            return False
        batch.held += len(payload)
        self._held += len(payload)
        return True

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    async def answer(self, payload: bytes) -> None:
        """Sends an answer. A client that reads nothing for too long is given up."""
        if not self._write(payload):
            return
        while self._transport.get_write_buffer_size():  # mostly the kernel has taken all of it at once
            sent = self._bytes_sent()
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._writer.drain()
            except TimeoutError:
                if self._bytes_sent() > sent:
                    continue
                self._on_dead()
            except OSError:
                self._on_dead()
            return

    async def tell(self, payload: bytes) -> None:
        """Sends an event, as soon as the client has read enough of what came before."""
        try:
            await self._writer.drain()
            self._write(payload)
        except OSError:
            self._on_dead()

    async def close(self) -> None:
        """Hands the last bytes to the client, as long as it reads."""
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(self._timeout_s):
                await self._writer.wait_closed()

    async def abort(self) -> None:
        self._transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def _write(self, payload: bytes) -> bool:
        if self._transport.is_closing():
            return False
        frame = self._framing.frame(payload)
        self._writer.write(frame)
        self._written += len(frame)
        return True

    def _bytes_sent(self) -> int:
        return self._written - self._transport.get_write_buffer_size()
