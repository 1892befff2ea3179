"""A document as rows: what it writes to, and takes out of, the ledger's tables and the keyword index.

Every function works inside the caller's transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memoryd.store.model import (
    Chunk,
    Document,
    Passage,
    document_id,
    embedding_hash,
    embedding_text,
    stable_id,
)
from memoryd.store.naming import indexed_heading
from memoryd.store.packed_ids import pack_ids
from memoryd.store.scope import UNKNOWN

Row = tuple[Any, ...]  # in the order of the table's columns


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk as the ledger and the keyword index hold it."""

    key: str
    chunk: Chunk
    text: str
    passages: bytes  # their ids; 0 = nothing to embed


def entries_of(identity: int, document: Document, passages: Sequence[Row]) -> list[Entry]:
    """``passages``: the rows of the document's."""
    entries: list[Entry] = []
    seen: Counter[str] = Counter()  # the same words twice in one document are two chunks
    for chunk in document.chunks:
        rows = passages[chunk.first_passage : chunk.last_passage + 1]
        text = "".join(text for _, _, _, text, *_ in rows)
        seen[text] += 1
        key = f"{stable_id('chunk', identity, text, seen[text]):016x}"
        ids = pack_ids(passage if digest else 0 for _, _, passage, _, digest, *_ in rows)
        entries.append(Entry(key, chunk, text, ids))
    return entries


def clear_document(sql: sqlite3.Connection, identity: int) -> None:
    forget_chunks(sql, identity, keep=set())
    sql.execute("DELETE FROM passages WHERE document_id = ?", (identity,))
    sql.execute("DELETE FROM documents WHERE id = ?", (identity,))


def forget_chunks(sql: sqlite3.Connection, identity: int, keep: Container[tuple[str, str]]) -> dict[str, int]:
    """Remove the chunks that are not to be kept, by (key, heading); returns those that are, as key -> id.

    Most of a file survives an edit, and the keyword index is by far the dearest thing to write: rows that would
    come back as they are stay. To be called before the passages change, for FTS5 forgets a row of an
    external-content table only when told the very text that it was given.
    """
    kept: dict[str, int] = {}
    gone: list[int] = []
    for chunk_id, key, heading in sql.execute("SELECT id, key, heading FROM chunks WHERE document_id = ?", (identity,)):
        if (key, heading) in keep:
            kept[key] = chunk_id
        else:
            gone.append(chunk_id)
    for chunk_id in gone:
        # VALUES, not INSERT ... SELECT for each: that takes twice as long (a savepoint each, at which FTS5 flushes).
        heading, text = sql.execute("SELECT heading, text FROM chunk_texts WHERE id = ?", (chunk_id,)).fetchone()
        place = (chunk_id, heading, text)
        sql.execute(
            "INSERT INTO chunks_fts (chunks_fts, rowid, heading, text) VALUES ('delete', ?, fold(?), fold(?))", place
        )
        sql.execute(
            "INSERT INTO chunk_words (chunk_words, rowid, heading, text) VALUES ('delete', ?, words(?), words(?))",
            place,
        )
        sql.execute("DELETE FROM chunks WHERE id = ?", (chunk_id,))
    return kept


def write_document(
    sql: sqlite3.Connection, identity: int, document: Document, *, skipped: str | None, now: float
) -> None:
    # An upsert, not INSERT OR REPLACE: that would delete the row first, and its chunks with it.
    sql.execute(
        """
        INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET
            source = excluded.source, signature = excluded.signature, content_hash = excluded.content_hash,
            size = excluded.size, date = excluded.date, evergreen = excluded.evergreen, title = excluded.title,
            front_matter = excluded.front_matter, notices = excluded.notices, skipped = excluded.skipped,
            indexed_at = excluded.indexed_at, scope = excluded.scope
        """,
        document_row(identity, document, skipped=skipped, now=now),
    )
    sql.execute("DELETE FROM superseding WHERE document_id = ?", (identity,))
    sql.executemany("INSERT INTO superseding VALUES (?, ?, ?, ?, ?)", superseding_rows(identity, document))


def document_row(identity: int, document: Document, *, skipped: str | None, now: float) -> Row:
    return (
        identity,
        document.workspace,
        document.path,
        document.source,
        document.signature,
        document.content_hash,
        document.size,
        document.date.isoformat() if document.date else None,
        document.evergreen,
        document.title.encode(errors="replace").decode(),  # YAML can spell half a surrogate pair
        json.dumps(document.front_matter),
        json.dumps(document.notices),
        skipped,
        now,
        document.scope,
    )


def superseding_rows(identity: int, document: Document) -> list[Row]:
    return [
        (
            identity,
            ordinal,
            choice,
            statement.is_newer,
            None if place is None else document_id(document.workspace, place),
        )
        for ordinal, statement in enumerate(document.superseding)
        for choice, place in enumerate(statement.places or (None,))
    ]


def distrust_scopes(sql: sqlite3.Connection, workspace: str) -> None:
    """The rules by which a workspace's scopes were told are others now: until they are told anew, trust none."""
    sql.execute("UPDATE documents SET scope = ? WHERE workspace = ?", (UNKNOWN, workspace))


def write_passages(sql: sqlite3.Connection, identity: int, rows: Iterable[Row]) -> None:
    sql.execute("DELETE FROM passages WHERE document_id = ?", (identity,))
    sql.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


def passage_rows(identity: int, passages: Iterable[Passage]) -> list[Row]:
    seen: Counter[bytes] = Counter()  # the same words twice in one document are two passages
    rows: list[Row] = []
    for passage in passages:
        embedded = embedding_text(passage)
        digest = embedding_hash(embedded or passage.text)
        seen[digest] += 1
        rows.append(
            (
                identity,
                passage.ordinal,
                stable_id("passage", identity, digest.hex(), seen[digest]),
                passage.text,
                digest if embedded else None,
                passage.start_line,
                passage.end_line,
            )
        )
    return rows


def write_chunks(
    sql: sqlite3.Connection, identity: int, document: Document, entries: Iterable[Entry], kept: Mapping[str, int]
) -> None:
    """Put the chunks in their places: a kept one may have moved, a new one is added to the keyword index."""
    sql.execute("UPDATE chunks SET ordinal = -1 - ordinal WHERE document_id = ?", (identity,))  # makes room
    for entry in entries:
        chunk = entry.chunk
        lines = (chunk.start_line, chunk.end_line)
        place = (chunk.ordinal, chunk.first_passage, chunk.last_passage, entry.passages, *lines)
        if entry.key in kept:
            sql.execute(
                "UPDATE chunks SET ordinal = ?, first_passage = ?, last_passage = ?, passages = ?, start_line = ?,"
                " end_line = ? WHERE id = ?",
                (*place, kept[entry.key]),
            )
            continue
        cursor = sql.execute(
            "INSERT INTO chunks (ordinal, first_passage, last_passage, passages, start_line, end_line,"
            " key, document_id, heading) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*place, entry.key, identity, chunk.heading),
        )
        row = (cursor.lastrowid, indexed_heading(chunk.heading, document.path, document.source), entry.text)
        sql.execute("INSERT INTO chunks_fts (rowid, heading, text) VALUES (?, fold(?), fold(?))", row)
        sql.execute("INSERT INTO chunk_words (rowid, heading, text) VALUES (?, words(?), words(?))", row)
