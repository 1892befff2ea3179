"""Which passages want a vector, and which are marked as having one: columns of ids, for there may be millions.

A row of Python's own for each would take hundreds of bytes, and everybody else's turn.
"""

from __future__ import annotations

import sqlite3
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.store.packed_ids import LAYOUT

_PORTION = 4096  # chunks that are read at a time

Column = NDArray[np.int64]


class Owned(NamedTuple):
    """Passages in ascending order, and the document of each. One that is there twice is twice in it."""

    passages: Column
    documents: Column

    def equals(self, other: Owned) -> bool:
        return all(np.array_equal(own, its) for own, its in zip(self, other, strict=True))


def in_order(passages: Column, documents: Column) -> Owned:
    order = np.argsort(passages, kind="stable")
    return Owned(passages[order], documents[order])


def lacking(ids: Column, others: Column) -> Column:
    """Those that are not among the others. Both are in ascending order, which spares sorting them: most of the time."""
    if not len(others):
        return ids
    places = np.minimum(np.searchsorted(others, ids), len(others) - 1)
    missing: Column = ids[others[places] != ids]
    return missing


def wanted_ids(sql: sqlite3.Connection) -> Owned:
    """Those that chunks name: of the passages themselves all texts would be read."""
    passages: list[Column] = [np.empty(0, np.int64)]
    documents: list[Column] = [np.empty(0, np.int64)]
    chunks = sql.execute("SELECT document_id, passages FROM chunks")
    while portion := chunks.fetchmany(_PORTION):
        owners, packed = zip(*portion, strict=True)
        ids = np.frombuffer(b"".join(packed), LAYOUT)
        sizes = [len(each) // ids.itemsize for each in packed]
        passages.append(ids[ids != 0])
        documents.append(np.repeat(np.array(owners, np.int64), sizes)[ids != 0])
    every = in_order(np.concatenate(passages), np.concatenate(documents))
    first = np.flatnonzero(np.diff(every.passages, prepend=every.passages[:1] - 1))  # chunks overlap
    return Owned(every.passages[first], every.documents[first])


def marked_ids(sql: sqlite3.Connection, generation: int) -> Owned:
    rows = sql.execute(
        "SELECT passage_id, document_id FROM vectors WHERE generation = ? ORDER BY passage_id", (generation,)
    )
    both = np.fromiter(chain.from_iterable(rows), np.int64).reshape(-1, 2)
    return Owned(both[:, 0], both[:, 1])
