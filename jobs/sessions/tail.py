"""The whole lines of a growing file, from where they were read to: nothing before that is read again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

LONGEST = 16 * 2**20  # bytes of a line that is looked into: images and whole files are no speech
_BLOCK = 1 << 20
_ANCHOR = 4096  # bytes before the place that was read to: if they changed, the file is another one


@dataclass(frozen=True, slots=True)
class RawLine:
    data: bytes | None  # without its end; None = longer than LONGEST
    length: int  # with its end
    digest: bytes  # of all of it
    anchor: str  # of the file up to here


class Tail:
    """Lines from ``offset`` to where the file ended when it was opened. A line without its end waits."""

    def __init__(self, descriptor: int, offset: int, size: int, *, longest: int = LONGEST, block: int = _BLOCK) -> None:
        self._longest = longest
        self._block = block
        self._descriptor = descriptor
        self._offset = offset
        self._size = size
        self.bytes_read = 0

    def __iter__(self) -> Iterator[RawLine]:
        line, length, digest = bytearray(), 0, _new_digest()
        at = self._offset
        while block := self._read(at, min(self._block, self._size - at)):
            at += len(block)
            start = 0
            while (end := block.find(b"\n", start) + 1) > 0:
                self._extend(line, block[start:end])
                length += end - start
                digest.update(block[start:end])
                data = bytes(line[:-1]) if length <= self._longest else None
                yield RawLine(data, length, digest.digest(), _anchor(line))
                line, length, digest = bytearray(), 0, _new_digest()
                start = end
            self._extend(line, block[start:])
            length += len(block) - start
            digest.update(block[start:])

    def holds(self, anchor: str) -> bool:
        """Whether the file up to the offset ends as it did."""
        count = int(anchor.partition(":")[0] or 0)
        return bool(count) and _anchor(self._read(self._offset - count, count)) == anchor

    def _extend(self, line: bytearray, more: bytes) -> None:
        """Of a line that is too long only the end is kept."""
        line += more
        if len(line) > self._longest:
            del line[:-_ANCHOR]

    def _read(self, at: int, count: int) -> bytes:
        data = os.pread(self._descriptor, count, at) if count > 0 else b""
        self.bytes_read += len(data)
        return data


def _new_digest() -> blake2b:
    return blake2b(digest_size=16)


def _anchor(line: bytes | bytearray) -> str:
    """So many bytes before a place, and their hash."""
    last = bytes(line[-_ANCHOR:])
    return f"{len(last)}:{blake2b(last, digest_size=16).hexdigest()}"
