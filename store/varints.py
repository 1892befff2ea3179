"""Numbers as FTS5 writes them down in its own tables: seven bits a byte, the last byte below 128."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray


def read_varints(coded: bytes) -> Iterator[int]:
    number = 0
    for byte in coded:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            yield number
            number = 0


def add_varints(records: Sequence[bytes]) -> NDArray[np.float64]:
    """The sum of the numbers of each record, all of which have as many."""
    coded = np.frombuffer(b"".join(records), np.uint8)
    last = np.flatnonzero(coded < 0x80)
    number = np.repeat(np.arange(len(last)), np.diff(last, prepend=-1))  # that each byte is of
    digits = (coded & 0x7F) * 128.0 ** (last[number] - np.arange(len(coded)))
    numbers: NDArray[np.float64] = np.bincount(number, digits, len(last)).astype(np.float64, copy=False)
    return numbers.reshape(len(records), -1).sum(axis=1) if records else np.zeros(0)
