"""Memory that a native library has reserved and does not use, given back to the system."""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Final

_DONT_NEED: Final = 4  # MADV_DONTNEED: the pages are dropped, the addresses stay valid and read as zero


def release_pages(address: int, length: int) -> None:
    """Drop the whole pages inside the range; its content is lost, and pages written later come back.

    Only for private memory of this process whose content nobody needs. Where the system has no such call the
    memory simply stays.
    """
    if sys.platform != "linux":
        return
    start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    end = (address + length) // mmap.PAGESIZE * mmap.PAGESIZE
    if end > start:
        ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _DONT_NEED)


def trim_heap() -> None:
    """Give back what was freed. glibc keeps up to twice the size of a small model that was closed for later use."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # musl and macOS have none
        trim(ctypes.c_size_t(0))
