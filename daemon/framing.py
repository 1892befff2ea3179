"""Where one message ends and the next begins, in bytes that arrive in any pieces.

A framing is a small state machine without I/O: ``feed`` takes what the socket gave and returns the messages
that are complete, and an error in the place of one that cannot be read; ``end`` is called at the end of the stream;
``frame`` wraps an answer. ``partial`` says that a message has begun and is not complete, ``broken`` that no further
message can be found. There are lines, here, and headers (``header_framing``); ``any_framing`` finds out which of them a
client speaks.
"""

from __future__ import annotations

from typing import Protocol

from memoryd.store.errors import MemorydError, RequestTooLarge

Message = bytes | MemorydError


class Framing(Protocol):
    """What a connection needs of a framing."""

    @property
    def partial(self) -> bool: ...
    @property
    def broken(self) -> bool: ...
    def feed(self, data: bytes) -> list[Message]: ...
    def end(self) -> list[Message]: ...
    def frame(self, payload: bytes) -> bytes: ...


class LineFraming:
    """One message per line; blank lines are nothing, and the last line need not end.

    A line over the limit is reported once, as soon as it is known to be too long, and the rest of it is
    discarded up to its newline without being kept. The connection lives on: closing it instead would throw
    away the requests pipelined before and after, and often the error itself.
    """

    broken = False  # the next newline always begins a new message

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._line = bytearray()
        self._discarding = False

    @property
    def partial(self) -> bool:
        return self._discarding or bool(self._line)

    def feed(self, data: bytes) -> list[Message]:
        """The messages completed by these bytes, in order."""
        messages: list[Message] = []
        *ends, rest = data.split(b"\n")
        for part in ends:
            messages += self._extend(part)
            messages += self.end()
        messages += self._extend(rest)
        return messages

    def end(self) -> list[Message]:
        """The line so far as a message: its newline was met, or the stream is over."""
        line = bytes(self._line)
        self._line.clear()
        self._discarding = False
        return [line] if line.strip() else []

    def _extend(self, part: bytes) -> list[Message]:
        if self._discarding:
            return []
        if len(self._line) + len(part) <= self._max_bytes:
            self._line += part
            return []
        self._line.clear()
        self._discarding = True
        return [too_large(self._max_bytes)]

    @staticmethod
    def frame(payload: bytes) -> bytes:
        """An answer as it goes on the wire."""
        return payload + b"\n"


def too_large(max_bytes: int) -> RequestTooLarge:
    """The error of a message that is not read."""
    return RequestTooLarge(
        f"The request is longer than {max_bytes} bytes.",
        hint="Send less in one request, or raise the server's limit in the configuration.",
    )
