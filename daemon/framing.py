"""Where one message ends and the next begins, in bytes that arrive in any pieces.

A framing is a small state machine without I/O: ``feed`` takes what the socket gave and returns the messages
that are complete, and an error in the place of one that cannot be read; ``end`` is called at the end of the stream;
``frame`` wraps an answer. ``partial`` says that a message has begun and is not complete, ``broken`` that no further
message can be found. There are two, and ``AnyFraming`` finds out from a client's first bytes which it speaks.
"""

from __future__ import annotations

from typing import Protocol

from memoryd.store.errors import FramingInvalid, MemorydError, RequestTooLarge

Message = bytes | MemorydError

MAX_HEADER_BYTES = 4096
_BLANK = b" \t\r\n"
_FIRST_WORD = b"content-"  # what both headers begin with, and no JSON does
_UTF8 = (b"", b"utf-8", b"utf8")


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
        return [_too_large(self._max_bytes)]

    @staticmethod
    def frame(payload: bytes) -> bytes:
        """An answer as it goes on the wire."""
        return payload + b"\n"


class HeaderFraming:
    """``Content-Length: N``, a blank line, and N bytes: what editors' JSON-RPC libraries speak.

    A body over the limit is reported as soon as its header is read, and skipped without being kept. A header that
    does not say how long the body is leaves nothing to go by: that is reported, and the framing is broken.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._header = bytearray()
        self._body = bytearray()
        self._length: int | None = None  # of the body that is being read; None: a header is
        self._skipping = 0  # bytes of a body that nobody wants
        self.broken = False

    @property
    def partial(self) -> bool:
        return bool(self._header) or self._length is not None or self._skipping > 0

    def feed(self, data: bytes) -> list[Message]:
        """The messages completed by these bytes, in order."""
        messages: list[Message] = []
        at = 0
        while at < len(data) and not self.broken:
            if self._skipping:
                taken = min(self._skipping, len(data) - at)
                self._skipping -= taken
                at += taken
            elif self._length is None:
                at = self._read_header(data, at, messages)
            else:
                part = data[at : at + self._length - len(self._body)]
                self._body += part
                at += len(part)
            if self._length == len(self._body):
                messages.append(bytes(self._body))
                self._body.clear()
                self._length = None
        return messages

    def end(self) -> list[Message]:
        """The stream is over: what has begun is cut off."""
        cut_off = self.partial and not self.broken
        self.broken = True
        return [FramingInvalid("The stream ended in the middle of a message.")] if cut_off else []

    def _read_header(self, data: bytes, at: int, messages: list[Message]) -> int:
        """Takes one line of it, or what is there of one. Returns where the rest begins."""
        newline = data.find(b"\n", at)
        after = len(data) if newline < 0 else newline + 1
        line = data[at:after]
        if len(self._header) + len(line) > MAX_HEADER_BYTES:
            self._break(f"The header is longer than {MAX_HEADER_BYTES} bytes.", messages)
            return after
        self._header += line
        if newline >= 0 and not self._header[:-1].rpartition(b"\n")[2].strip():
            self._end_header(messages)
        return after

    def _end_header(self, messages: list[Message]) -> None:
        header = bytes(self._header).strip()
        self._header.clear()
        if not header:
            return  # blank lines between messages
        fields = [
            (name.strip().lower(), value.strip()) for name, _, value in (x.partition(b":") for x in header.split(b"\n"))
        ]
        lengths = [value for name, value in fields if name == b"content-length"]
        if len(lengths) != 1 or not lengths[0].isdigit() or len(lengths[0]) > 15:
            self._break("The header must say Content-Length once, as a whole number of bytes.", messages)
            return
        length = int(lengths[0])
        if length > self._max_bytes:
            self._skipping = length
            messages.append(_too_large(self._max_bytes))
        elif any(_charset(value) not in _UTF8 for name, value in fields if name == b"content-type"):
            self._skipping = length
            messages.append(FramingInvalid("A message must be UTF-8.", hint="Leave Content-Type out."))
        else:
            self._length = length

    def _break(self, message: str, messages: list[Message]) -> None:
        self.broken = True
        messages.append(FramingInvalid(message, hint="Send 'Content-Length: N', a blank line, then N bytes of JSON."))

    @staticmethod
    def frame(payload: bytes) -> bytes:
        """An answer as it goes on the wire."""
        return b"Content-Length: %d\r\n\r\n%b" % (len(payload), payload)


class AnyFraming:
    """Whichever of the two a client's first bytes show; lines until they show anything."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._first = b""
        self._chosen: Framing | None = None

    @property
    def partial(self) -> bool:
        return bool(self._first) if self._chosen is None else self._chosen.partial

    @property
    def broken(self) -> bool:
        return self._chosen is not None and self._chosen.broken

    def feed(self, data: bytes) -> list[Message]:
        """The messages completed by these bytes, in order."""
        if self._chosen is None:
            data = (self._first + data).lstrip(_BLANK)
            word = data[: len(_FIRST_WORD)].lower()
            if len(word) < len(_FIRST_WORD) and _FIRST_WORD.startswith(word) and b"\n" not in data:
                self._first = data
                return []
            self._first = b""
            self._chosen = (HeaderFraming if word == _FIRST_WORD else LineFraming)(self._max_bytes)
        return self._chosen.feed(data)

    def end(self) -> list[Message]:
        """What is left at the end of the stream."""
        if self._chosen is None:
            self._chosen = LineFraming(self._max_bytes)
            return [*self._chosen.feed(self._first), *self._chosen.end()]
        return self._chosen.end()

    def frame(self, payload: bytes) -> bytes:
        """An answer as it goes on the wire."""
        return LineFraming.frame(payload) if self._chosen is None else self._chosen.frame(payload)


def _charset(content_type: bytes) -> bytes:
    for parameter in content_type.lower().split(b";")[1:]:
        name, _, value = parameter.partition(b"=")
        if name.strip() == b"charset":
            return value.strip().strip(b'"')
    return b""


def _too_large(max_bytes: int) -> RequestTooLarge:
    return RequestTooLarge(
        f"The request is longer than {max_bytes} bytes.",
        hint="Send less in one request, or raise the server's limit in the configuration.",
    )
