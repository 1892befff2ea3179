"""One digest over all that is indexed: a hash of each document, and one over those.

Pure, and about what two indexes of the same files have in common: no absolute paths, no times, no row numbers, no
order of insertion, no rounding of vectors. So two daemons with the same files and the same model have the same
root, and a row that is missing, stale, doubled or left over makes it another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

FORMAT = "memoryd root 2"  # of what is hashed and how: raised when that changes, and not with the schema
_BYTES = 20
_UNREAD = "unread:"  # begins the hash of a file that is too large; the rest is its stat, which no two machines share


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """What the ledger says of a document, as far as it follows from the file, the settings and nothing else."""

    workspace: str
    path: str
    content_hash: str
    about: tuple[Any, ...]  # source, size, date, scope and the like, in a fixed order
    superseding: tuple[tuple[Any, ...], ...]
    passages: tuple[tuple[Any, ...], ...]  # (ordinal, id, embedded or not, first line, last line)
    chunks: tuple[tuple[Any, ...], ...]  # (ordinal, key, first and last passage, ids of all, heading, lines)


def digest_ledger(facts: LedgerFacts) -> str:
    content = _UNREAD if facts.content_hash.startswith(_UNREAD) else facts.content_hash
    rows = {name: sorted(map(_encode, getattr(facts, name))) for name in ("superseding", "passages", "chunks")}
    return _digest({**asdict(facts), **rows, "content_hash": content})


def digest_facts(facts: Iterable[tuple[object, ...]]) -> str:
    """Rows that are no document's."""
    return _digest([list(row) for row in facts])


def digest_document(ledger: str, keyword_faults: Iterable[str], vectors: Iterable[int]) -> str:
    """A document over all stores: its rows, which of them the keyword indexes hold otherwise, its vectors."""
    return _digest([ledger, sorted(keyword_faults), sorted(vectors)])


def digest_root(documents: Mapping[tuple[str, str], str], fingerprint: str, strays: Iterable[str]) -> str:
    """The root over documents by (workspace, path); ``strays`` names the rows that belong to none of them."""
    leaves = sorted([workspace, path, digest] for (workspace, path), digest in documents.items())
    return _digest([FORMAT, fingerprint, sorted(strays), leaves])


def _digest(value: object) -> str:
    return blake2b(_encode(value).encode(), digest_size=_BYTES).hexdigest()


def _encode(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
