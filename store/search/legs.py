"""The legs: each brings chunks in its own order, best first, from the documents that the query may see."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Container, Iterable, Sequence
from heapq import nsmallest

from memoryd.store.folding import fold
from memoryd.store.protocols import Match, VectorIndex, Vectors
from memoryd.store.search.answer import LegRank
from memoryd.store.search.query import KeywordQuery
from memoryd.store.search.visibility import Visible

Ranking = dict[int, LegRank]  # chunk id -> place, best first

_PASSAGES_PER_CHUNK = 4  # of a pool of chunks, how many passages must be asked for

_VISIBLE = """(:documents IS NULL OR c.document_id IN (SELECT value FROM json_each(:documents)))
           AND c.id NOT IN (SELECT value FROM json_each(:hidden))"""


def words_leg(sql: sqlite3.Connection, query: KeywordQuery, limit: int, visible: Visible) -> Ranking:
    """BM25 over the word index."""
    if not query.words:
        return {}
    return _ranked(_match(sql, "chunk_words", query.word_expression, limit, visible))


def trigram_leg(sql: sqlite3.Connection, query: KeywordQuery, limit: int, visible: Visible) -> Ranking:
    """BM25 over the trigram index; a scan where every term is too short for it."""
    if query.terms:
        return _ranked(_match(sql, "chunks_fts", query.expression, limit, visible))
    return _ranked(_scan(sql, query, limit, visible))


def _ranked(found: Iterable[tuple[int, float]]) -> Ranking:
    return {chunk: LegRank(rank, score) for rank, (chunk, score) in enumerate(found, start=1)}


def _bounds(visible: Visible) -> dict[str, str | None]:
    documents = None if visible.documents is None else json.dumps(list(visible.documents))
    return {"documents": documents, "hidden": json.dumps(list(visible.hidden_chunks))}


def _match(
    sql: sqlite3.Connection, index: str, expression: str, limit: int, visible: Visible
) -> Iterable[tuple[int, float]]:
    return sql.execute(
        f"""
        SELECT c.id, -bm25({index}) AS score FROM {index}
          JOIN chunks c ON c.id = {index}.rowid
         WHERE {index} MATCH :expression AND {_VISIBLE}
         ORDER BY score DESC, c.key LIMIT :limit
        """,  # noqa: S608 - what is put in are constants
        {"expression": expression, "limit": limit, **_bounds(visible)},
    )


def _scan(sql: sqlite3.Connection, query: KeywordQuery, limit: int, visible: Visible) -> Iterable[tuple[int, float]]:
    """How often the terms occur in how much text: enough to rank by, and every chunk that has one is found."""
    if not query.short:
        return []
    rows = sql.execute(
        f"""
        SELECT c.id, c.key, t.heading, t.text FROM chunk_texts t JOIN chunks c ON c.id = t.id
         WHERE {_VISIBLE}
        """,  # noqa: S608 - the only thing put in is a constant
        _bounds(visible),
    )
    found: list[tuple[float, str, int]] = []
    for chunk, key, heading, text in rows:
        folded = fold(f"{heading}\n{text}")
        if times := sum(map(folded.count, query.short)):
            found.append((-times * 100.0 / (100 + len(folded)), key, chunk))
    return [(chunk, -score) for score, _, chunk in nsmallest(limit, found)]


def vector_leg(sql: sqlite3.Connection, index: VectorIndex, vector: Vectors, limit: int, visible: Visible) -> Ranking:
    """The nearest passages, the best one standing for its chunk."""
    wanted = (limit + len(visible.hidden_chunks)) * _PASSAGES_PER_CHUNK
    return _chunks_of(sql, index.search(vector, wanted, visible.documents), limit, visible.hidden_chunks)


def _chunks_of(sql: sqlite3.Connection, matches: Sequence[Match], limit: int, hidden: Container[int]) -> Ranking:
    """A passage in the overlap of two chunks counts for the first. Vectors that the ledger lost are ignored."""
    ranking: Ranking = {}
    for match in matches:
        row = sql.execute(
            """
            SELECT (SELECT c.id FROM chunks c WHERE c.document_id = p.document_id AND c.last_passage >= p.ordinal
                     ORDER BY c.last_passage LIMIT 1), p.ordinal
              FROM passages p WHERE p.id = ?
            """,
            (match.passage_id,),
        ).fetchone()
        if row is None or row[0] in ranking or row[0] in hidden:
            continue
        ranking[row[0]] = LegRank(len(ranking) + 1, match.cosine, passage=row[1])
        if len(ranking) == limit:
            break
    return ranking


def chunks_without_vectors(sql: sqlite3.Connection, chunks: Collection[int]) -> set[int]:
    """Of these chunks, those of which the active generation lacks a vector: the vector leg cannot judge them yet."""
    rows = sql.execute(
        """
        SELECT DISTINCT c.id FROM json_each(?) wanted JOIN chunks c ON c.id = wanted.value
          JOIN passages p ON p.document_id = c.document_id AND p.ordinal BETWEEN c.first_passage AND c.last_passage
         WHERE p.text_hash IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM vectors v
                            WHERE v.generation = (SELECT id FROM generations WHERE active) AND v.passage_id = p.id)
        """,
        (json.dumps(list(chunks)),),
    )
    return {row[0] for row in rows}
