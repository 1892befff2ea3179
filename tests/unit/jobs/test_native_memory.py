"""Memory of native libraries, given back: what stays, what goes, and that what goes comes back when it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from memoryd.jobs.native_memory import release_code, unwritten

LIBRARY = "/numpy/_core/_multiarray_umath"
SMAPS = """\
1000-3000 r--p 00000000 fe:00 1 /lib/one.so
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me
3000-9000 r-xp 00002000 fe:00 1 /lib/one.so
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
9000-a000 r--p 00008000 fe:00 1 /lib/one.so
Anonymous:             4 kB
Swap:                  0 kB
VmFlags: rd mr mw me ac
a000-b000 r--p 00009000 fe:00 1 /lib/one.so
Anonymous:             0 kB
Swap:                  4 kB
VmFlags: rd mr mw me ac
b000-c000 rw-p 0000a000 fe:00 1 /lib/one.so
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd wr mr mw me ac
c000-d000 r-xp 00000000 fe:00 2 /lib/two.so
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
d000-e000 r--p 00000000 00:00 0
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me ac
"""
# A thread frees one large block, from which glibc learns to keep the next, and then uses and frees some more.
FREED_IN_A_THREAD = """
import ctypes, sys, threading
from memoryd.jobs.native_memory import keep_heap_small
if sys.argv[1] == "small":
    keep_heap_small()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def use(count, size):
    blocks = [ctypes.c_void_p(libc.malloc(ctypes.c_size_t(size))) for _ in range(count)]
    for block in blocks:
        ctypes.memset(block, 1, size)
    for block in blocks:
        libc.free(block)
def anonymous():
    lines = open("/proc/self/smaps_rollup").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))
def work():
    use(1, 20 << 20)
    before = anonymous()
    use(3, 5 << 20)
    print(anonymous() - before)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def mapped_kb(name: str) -> int:
    """What is in memory of a library's code."""
    total, counted = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        word, *rest = line.split(maxsplit=5)
        if not word.endswith(":"):
            counted = len(rest) == 5 and name in rest[4] and rest[0] == "r-xp"
        elif counted and word == "Rss:":
            total += int(rest[0])
    return total


def test_code_that_is_given_back_leaves_memory_and_returns_when_it_runs() -> None:
    numbers = np.arange(1000.0)
    assert np.sort(numbers[::-1]).sum() == numbers.sum()
    before = mapped_kb(LIBRARY)
    release_code((LIBRARY,))
    after = mapped_kb(LIBRARY)
    assert after < before / 2, f"{before} → {after} kB"
    assert np.sort(numbers[::-1]).sum() == numbers.sum()
    assert mapped_kb(LIBRARY) > after


def test_only_what_is_as_it_is_in_its_file_is_given_back() -> None:
    """What the loader has filled in, in memory or swapped out, exists nowhere else."""
    assert list(unwritten(SMAPS.splitlines(), ("one.so",))) == [(0x1000, 0x3000), (0x3000, 0x9000)]


def test_library_that_is_being_loaded_is_left_alone() -> None:
    """Mapped whole at first, read-only, and then in parts: addresses may be written to the rest of it this moment."""
    assert list(unwritten(SMAPS.splitlines(), ("two.so",))) == []


def test_large_blocks_that_a_thread_frees_are_given_back_at_once() -> None:
    def kept_kb(how: str) -> int:
        words = [sys.executable, "-c", FREED_IN_A_THREAD, how]
        return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

    assert kept_kb("small") < 1024 < kept_kb("as it is")
