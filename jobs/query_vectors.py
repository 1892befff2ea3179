"""The vectors of the last queries, so that one which is asked again costs no embedding. In memory alone."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from typing import Final

from memoryd.store.protocols import Vectors

MOST: Final = 256  # queries; 400 KB of a small model's vectors, 4 MB of a large one's

Key = tuple[str, bytes]


class QueryVectors:
    """By generation and text, the least recently asked forgotten first. Of the text only its hash is kept."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, Vectors] = OrderedDict()

    def find(self, fingerprint: str, text: str) -> Vectors | None:
        key = _key(fingerprint, text)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, fingerprint: str, text: str, vector: Vectors) -> None:
        kept = vector.copy()  # not a view of a whole batch
        kept.flags.writeable = False  # whoever is handed it shares it
        with self._lock:
            self._kept[_key(fingerprint, text)] = kept
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)


def _key(fingerprint: str, text: str) -> Key:
    return fingerprint, hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
