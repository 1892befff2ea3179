"""Which document each chunk is of, and where those of a document lie: filters ask for it of every chunk that has a word
of the query.

What was read is kept for as long as the chunks are the same. The word index has every chunk, so its own record of how
it lies tells that.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memoryd.store.keywords import index_state
from memoryd.store.sqlite_file import Connection

Column = NDArray[np.int64]

_INDEX = "chunk_words"
_KEPT = "owners"
_BETWEEN = 300  # chunks


@dataclass(slots=True)
class _Owners:
    structure: bytes
    documents: Column = field(default_factory=lambda: np.zeros(0, np.int64))  # by chunk; 0 = not read


def owners_of(sql: sqlite3.Connection, chunks: Column) -> Column:
    """The document of each chunk; 0 where there is no such chunk."""
    if not len(chunks):
        return np.zeros(0, np.int64)
    kept = _kept(sql)
    if (end := int(chunks.max()) + 1) > len(kept.documents):
        kept.documents = np.concatenate([kept.documents, np.zeros(end - len(kept.documents), np.int64)])
    unread = chunks[kept.documents[chunks] == 0]
    if len(unread):
        query = "SELECT c.id, c.document_id FROM json_each(?) wanted JOIN chunks c ON c.id = wanted.value"
        rows = np.array(sql.execute(query, (json.dumps(unread.tolist()),)).fetchall(), np.int64).reshape(-1, 2)
        kept.documents[rows[:, 0]] = rows[:, 1]
    owners: Column = kept.documents[chunks]
    return owners


def stretches_of(sql: sqlite3.Connection, documents: Collection[int]) -> list[tuple[int, int]]:
    """Where the chunks of these documents lie, from one id to another: those of one mostly lie together.

    A few of others may be among them: to pass over these is quicker than to look for the next stretch.
    """
    rows = sql.execute(
        "SELECT min(id), max(id) FROM chunks WHERE document_id IN (SELECT value FROM json_each(?))"
        " GROUP BY document_id ORDER BY 1",
        (json.dumps(list(documents)),),
    )
    stretches: list[tuple[int, int]] = []
    for first, last in rows.fetchall():
        if stretches and first - stretches[-1][1] <= _BETWEEN:
            first, before = stretches.pop()
            last = max(last, before)
        stretches.append((first, last))
    return stretches


def _kept(sql: sqlite3.Connection) -> _Owners:
    structure = index_state(sql, _INDEX)
    kept: _Owners | None = sql.kept.get(_KEPT) if isinstance(sql, Connection) else None
    if kept is None or kept.structure != structure:
        kept = _Owners(structure)
        if isinstance(sql, Connection):
            sql.kept[_KEPT] = kept
    return kept
