"""How a pass of llama.cpp is ended from another thread."""

from __future__ import annotations

import ctypes
from typing import Any


class Brake:
    """A byte that llama.cpp looks at after every step of a pass, many hundred times for one token.

    What looks is libc's ``strlen``: 0, and all goes on, while the byte is zero, and 1 afterwards. A function of
    Python's in its place would wait for the interpreter's lock each time.
    """

    def __init__(self) -> None:
        self._byte = ctypes.create_string_buffer(2)  # the second ends the string

    def pull(self) -> None:
        self._byte[0] = b"\x01"

    @property
    def pulled(self) -> bool:
        return self._byte.raw[0] != 0

    def attach(self, llama: Any, context: Any) -> None:
        """For the next passes of this context. The brake must outlive them."""
        look = ctypes.cast(ctypes.CDLL(None).strlen, llama.ggml_abort_callback)
        llama.llama_set_abort_callback(context, look, ctypes.cast(self._byte, ctypes.c_void_p))
