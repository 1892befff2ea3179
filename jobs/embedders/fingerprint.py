"""The short name of everything that makes two vectors comparable."""

from __future__ import annotations

import hashlib


def fingerprint(*parts: str) -> str:
    """Sixteen hex digits that change with any of the parts, and with where one ends and the next begins."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part.encode("utf-8")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()
