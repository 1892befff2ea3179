"""Numbers of 64 bits as bytes, one behind the other: how the ledger keeps which passages a chunk has."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

LAYOUT: Final = "<i8"  # of each, as numpy calls it


def pack_ids(ids: Iterable[int]) -> bytes:
    listed = list(ids)
    return struct.pack(f"<{len(listed)}q", *listed)


class PackedIds:
    """The same as an aggregate of SQLite."""

    def __init__(self) -> None:
        self._ids: list[int] = []

    def step(self, identity: int) -> None:
        self._ids.append(identity)

    def finalize(self) -> bytes:
        return pack_ids(self._ids)
