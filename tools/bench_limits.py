"""What a search's parts cost by themselves, on the very stores that a daemon searches.

FTS5 alone: one MATCH of the rarest terms joined by OR, of words in the order of BM25. numpy alone: the product of a
query with every vector in float32, and the best of them. Neither knows of scopes, dates, shares or duplicates.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from bench_spread import spread

from memoryd.store.lance import stored_rows
from memoryd.store.precision import restore
from memoryd.store.protocols import Vectors
from memoryd.store.search.query import build_query

PLACES = {"chunk_words": 4000, "chunks_fts": 2000}  # that the legs look at, as the search has it
CANDIDATES = 100
ASKED = 400  # passages
QUERIES = 60


def measure_limits(data: Path, queries: Sequence[str]) -> dict[str, Any]:
    some = queries[:QUERIES]
    with closing(sqlite3.connect(f"file:{data / 'ledger.db'}?mode=ro", uri=True)) as sql:
        vectors = read_vectors(sql, data / "vectors")
        return {
            "fts5_words_ms": spread([_match(sql, "chunk_words", build_query(text).word_phrases) for text in some]),
            "fts5_trigrams_ms": spread([_match(sql, "chunks_fts", build_query(text).phrases) for text in some]),
            "numpy_ms": spread([_nearest(vectors, place) for place in range(min(len(some), len(vectors)))]),
            "vectors": len(vectors),
        }


def _match(sql: sqlite3.Connection, index: str, phrases: Sequence[str]) -> float:
    """Milliseconds; finding out which terms are the rarest is not counted."""
    terms = rarest(sql, index, phrases)
    if not terms:
        return 0.0
    best = "ORDER BY rank LIMIT ?2" if index == "chunk_words" else "LIMIT ?2"
    began = time.perf_counter()
    sql.execute(
        f"SELECT rowid FROM {index} WHERE {index} MATCH ?1 {best}",
        (" OR ".join(terms), CANDIDATES if index == "chunk_words" else -1),
    ).fetchall()
    return (time.perf_counter() - began) * 1000


def rarest(sql: sqlite3.Connection, index: str, phrases: Sequence[str]) -> list[str]:
    """As many of them, the rarest first, as the legs would look at; one at least."""
    most = PLACES[index]
    count = f"SELECT count(*) FROM (SELECT 1 FROM {index} WHERE {index} MATCH ? LIMIT ?)"
    having = sorted((sql.execute(count, (phrase, most + 1)).fetchone()[0], phrase) for phrase in phrases)
    taken: list[str] = []
    places = 0
    for times, phrase in having:
        places += times
        if taken and places > most:
            break
        if times:
            taken.append(phrase)
    return taken


def read_vectors(sql: sqlite3.Connection, folder: Path) -> Vectors:
    """Those that are searched, into memory."""
    generation, fingerprint, dimension = sql.execute(
        "SELECT id, fingerprint, dimension FROM generations WHERE active"
    ).fetchone()
    (count,) = sql.execute("SELECT count(*) FROM vectors WHERE generation = ?", (generation,)).fetchone()
    vectors: Vectors = np.empty((count, dimension), np.float32)
    first = 0
    for _, _, portion in stored_rows(folder, fingerprint, dimension):
        some = restore(portion)[: count - first]
        vectors[first : first + len(some)] = some
        first += len(some)
    return vectors[:first]


def _nearest(vectors: Vectors, place: int) -> float:
    """Milliseconds to find what is nearest to one of them; which one makes no difference."""
    query = vectors[place].copy()
    began = time.perf_counter()
    cosines = vectors @ query
    top = np.argpartition(-cosines, min(ASKED, len(cosines) - 1))[:ASKED]
    top[np.argsort(-cosines[top])]
    return (time.perf_counter() - began) * 1000
