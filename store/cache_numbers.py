"""The numbers of a vector as the embedding cache keeps them: the very ones that LanceDB has, in 8 bits or in 32.

8 bits are all that LanceDB was given, so a table that is made anew from them is the same to the last bit.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import numpy as np

from memoryd.store.cache_file import Row
from memoryd.store.precision import Precision, Small, restore, shrink
from memoryd.store.protocols import Vectors

Numbers: TypeAlias = tuple[bytes, int]  # a vector in the bytes that it is kept in, and whether those are int8

_WIDE: Final = np.dtype("<f4")
_LENGTH_TOLERANCE: Final = 1e-3  # of a vector of length 1, for rows without a checksum


def read(blob: bytes, is_small: int) -> Vectors | Small:
    return np.frombuffer(blob, np.int8) if is_small else np.frombuffer(blob, _WIDE)


def as_numbers(vectors: Sequence[Vectors], precision: Precision) -> list[Numbers]:
    """How vectors of one length are kept."""
    if not vectors:
        return []
    matrix = np.asarray(np.stack(vectors), _WIDE)
    is_small = int(precision == "int8")
    return [(row.tobytes(), is_small) for row in (shrink(matrix) if is_small else matrix)]


def as_matrix(kept: Sequence[Numbers]) -> Vectors:
    """Vectors of one length, each from what it is kept in."""
    if not kept:
        return np.empty((0, 0), np.float32)
    widths = {is_small for _, is_small in kept}
    if len(widths) > 1:
        return np.concatenate([restore(read(*each)[None]) for each in kept])
    joined = read(b"".join([blob for blob, _ in kept]), widths.pop())
    return restore(joined.reshape(len(kept), -1))


def serves(precision: Precision, is_small: int) -> bool:
    """Whether what is kept will do where this precision is wanted: 32 bits do for 8, but not 8 for 32."""
    return precision == "int8" or not is_small


def is_sound(blob: object, checksum: int | None, is_small: int) -> bool:
    """Whether the bytes are those of the vector that was kept."""
    if not isinstance(blob, bytes) or not blob or (len(blob) % 4 and not is_small):
        return False
    if checksum is not None:
        return zlib.crc32(blob) == checksum
    if is_small:
        return False
    length = float(np.linalg.norm(np.frombuffer(blob, _WIDE).astype(np.float64)))
    return abs(length - 1.0) <= _LENGTH_TOLERANCE  # NaN and infinity are no lengths either


def shrunk(row: Row) -> Row | None:
    """A row in 8 bits, as the same vector would be kept now; None if it is not as it was kept."""
    fingerprint, text_hash, blob, used_day, checksum, is_small = row
    if is_small:
        return row
    if not is_sound(blob, checksum, is_small):
        return None
    ((small, _),) = as_numbers([np.frombuffer(blob, _WIDE)], "int8")
    return fingerprint, text_hash, small, used_day, zlib.crc32(small), 1


def restored(kept: Iterable[tuple[bytes, Numbers]]) -> dict[bytes, Vectors]:
    """Vectors by the hash of their text."""
    pairs = list(kept)
    return dict(zip((key for key, _ in pairs), as_matrix([numbers for _, numbers in pairs]), strict=True))
