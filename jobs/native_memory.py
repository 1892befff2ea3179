"""Memory that a native library has reserved or mapped and does not use, given back to the system."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_DONT_NEED: Final = 4  # MADV_DONTNEED: the pages are dropped, the addresses stay valid
_LARGE_BYTES: Final = 2 * 2**20  # from here on a block of its own, given back the moment it is freed
_TRIM_THRESHOLD: Final = -1  # mallopt's M_TRIM_THRESHOLD …
_MMAP_THRESHOLD: Final = -3  # … and M_MMAP_THRESHOLD


def release_pages(address: int, length: int) -> None:
    """Drop the whole pages inside the range; pages that are used later come back.

    Only for private memory of this process whose content nobody needs, or that is as it is in its file. Where the
    system has no such call the memory simply stays.
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


def keep_heap_small() -> None:
    """Have large blocks given back when they are freed, in every thread; to be called before there are any.

    By itself glibc learns from the first large block that is freed to keep the next ones, up to 64 MB in each of
    sixteen heaps, and no trimming reaches the end of a thread's heap. Writing 20,000 vectors left 110 MB there.
    """
    if set_option := getattr(ctypes.CDLL(None), "mallopt", None):  # only glibc heeds these
        set_option(_MMAP_THRESHOLD, _LARGE_BYTES)
        set_option(_TRIM_THRESHOLD, _LARGE_BYTES)


def release_code(names: Collection[str]) -> None:
    """Unmap what is mapped of these libraries and is as it is in their files: code and constants.

    The kernel maps whole stretches around each instruction that runs: of LanceDB's code most, once it has written.
    They stay in the page cache, and a page that is used again is there again. ``names``: a part of a library's path.
    """
    with suppress(OSError), Path("/proc/self/smaps").open(encoding="utf-8", errors="replace") as mappings:
        for start, end in list(unwritten(mappings, names)):
            release_pages(start, end - start)


def unwritten(mappings: Iterable[str], names: Collection[str]) -> Iterator[tuple[int, int]]:
    """Where files with such names are mapped, as /proc/self/smaps tells it, read-only and with nothing written since.

    Addresses that the loader has filled in lie in pages of the process's own, which dropping would lose; a mapping
    that has any, in memory or swapped out, is passed over. So is the last one of each file: the loader maps a library
    whole before it puts its parts into place, and where another part follows, this one is there to stay.
    """
    place: tuple[int, int] | None = None
    path = ""
    for line in mappings:
        word, *rest = line.split(maxsplit=5)
        if not word.endswith(":"):
            before, path = path, rest[4].strip() if len(rest) == 5 else ""
            if place is not None and path == before:
                yield place
            start, end = (int(address, 16) for address in word.split("-"))
            wanted = rest[0] in ("r-xp", "r--p") and any(name in path for name in names)
            place = (start, end) if wanted else None
        elif word in ("Anonymous:", "Swap:") and rest[0] != "0":
            place = None
