"""Where one message ends and the next begins, in bytes that arrive in any pieces.

A framing is a small state machine without I/O: ``feed`` takes what the socket gave and returns the messages
that are complete; ``end`` is called at the end of the stream; ``frame`` wraps an answer. Another framing
(``Content-Length`` headers) is another class with these three.
"""

from __future__ import annotations

from memoryd.store.errors import RequestTooLarge


class LineFraming:
    """One message per line; blank lines are nothing, and the last line need not end.

    A line over the limit is reported once, as soon as it is known to be too long, and the rest of it is
    discarded up to its newline without being kept. The connection lives on: closing it instead would throw
    away the requests pipelined before and after, and often the error itself.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._line = bytearray()
        self._discarding = False

    def feed(self, data: bytes) -> list[bytes | RequestTooLarge]:
        """The messages completed by these bytes, in order."""
        messages: list[bytes | RequestTooLarge] = []
        *ends, rest = data.split(b"\n")
        for part in ends:
            messages += self._extend(part)
            messages += self.end()
        messages += self._extend(rest)
        return messages

    def end(self) -> list[bytes | RequestTooLarge]:
        """The line so far as a message: its newline was met, or the stream is over."""
        line = bytes(self._line)
        self._line.clear()
        self._discarding = False
        return [line] if line.strip() else []

    def _extend(self, part: bytes) -> list[bytes | RequestTooLarge]:
        if self._discarding:
            return []
        if len(self._line) + len(part) <= self._max_bytes:
            self._line += part
            return []
        self._line.clear()
        self._discarding = True
        return [
            RequestTooLarge(
                f"The request is longer than {self._max_bytes} bytes.",
                hint="Send less in one request, or raise the server's limit in the configuration.",
            )
        ]

    @staticmethod
    def frame(payload: bytes) -> bytes:
        """An answer as it goes on the wire."""
        return payload + b"\n"
