"""Messages behind ``Content-Length`` headers."""

from __future__ import annotations

from memoryd.daemon.framing import Message, too_large
from memoryd.store.errors import FramingInvalid

MAX_HEADER_BYTES = 4096
_UTF8 = (b"", b"utf-8", b"utf8")


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
            messages.append(too_large(self._max_bytes))
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


def _charset(content_type: bytes) -> bytes:
    for parameter in content_type.lower().split(b";")[1:]:
        name, _, value = parameter.partition(b"=")
        if name.strip() == b"charset":
            return value.strip().strip(b'"')
    return b""
