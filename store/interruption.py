"""A wish from another thread that work be let go of, for somebody else waits."""

from __future__ import annotations

import ctypes


class Interruption:
    """Made for one piece of work; set once, by any thread, and never taken back."""

    def __init__(self) -> None:
        self._flag = ctypes.create_string_buffer(2)  # an empty text, until it is wished for

    def wish(self) -> None:
        self._flag[0] = b"\x01"

    def is_wished(self) -> bool:
        return bool(self._flag.value)

    @property
    def address(self) -> int:
        """Of a text that is empty until it is wished for: so native code can look, which may not wait for Python."""
        return ctypes.addressof(self._flag)
