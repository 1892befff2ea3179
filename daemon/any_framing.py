"""Lines or headers: a client's first bytes show which."""

from __future__ import annotations

from memoryd.daemon.framing import Framing, LineFraming, Message
from memoryd.daemon.header_framing import HeaderFraming

_BLANK = b" \t\r\n"
_FIRST_WORD = b"content-"  # what both headers begin with, and no JSON does


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
