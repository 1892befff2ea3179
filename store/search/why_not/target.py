"""The lines that a person asks about: their document, their chunks, and what can be told of them.

Nothing here says what a note says but ``telling_words``: whoever calls that has made sure that the asker may see it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from memoryd.store.folding import split_words
from memoryd.store.model import document_id
from memoryd.store.search.common import chance_words
from memoryd.store.search.function_words import FUNCTION_WORDS
from memoryd.store.search.query import build_query

_WORDS_LOOKED_UP = 60
_SHORTEST = 4  # letters of a spaced word that is worth suggesting


@dataclass(frozen=True, slots=True)
class TargetChunk:
    id: int
    key: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Target:
    """A line of an indexed document. Several chunks have it where they overlap, none if it is past the end."""

    workspace: str
    path: str
    line: int
    document: int
    source: str
    scope: str
    date: date | None
    lines: int  # of the document
    chunks: tuple[TargetChunk, ...]

    def chunk(self, identity: int) -> TargetChunk | None:
        return next((chunk for chunk in self.chunks if chunk.id == identity), None)


def read_target(sql: sqlite3.Connection, workspace: str, path: str, line: int) -> Target | None:
    """None: no such document is indexed."""
    identity = document_id(workspace, path)
    row = sql.execute(
        "SELECT source, scope, date FROM documents WHERE id = ? AND skipped IS NULL", (identity,)
    ).fetchone()
    if row is None:
        return None
    source, scope, written = row
    chunks = sql.execute(
        "SELECT id, key, start_line, end_line FROM chunks WHERE document_id = ? ORDER BY ordinal", (identity,)
    ).fetchall()
    return Target(
        workspace,
        path,
        line,
        identity,
        source,
        scope,
        date.fromisoformat(written) if written else None,
        max((end for *_, end in chunks), default=0),
        tuple(TargetChunk(*chunk) for chunk in chunks if chunk[2] <= line <= chunk[3]),
    )


def count_missing_vectors(sql: sqlite3.Connection, chunks: Sequence[int]) -> int:
    """Passages of these chunks that should have a vector in the active generation and have none."""
    return sum(
        sql.execute(
            """
            SELECT count(*) FROM chunks c
              JOIN passages p ON p.document_id = c.document_id AND p.ordinal BETWEEN c.first_passage AND c.last_passage
             WHERE c.id = ? AND p.text_hash IS NOT NULL AND p.id NOT IN (
                   SELECT passage_id FROM vectors WHERE generation = (SELECT id FROM generations WHERE active))
            """,
            (chunk,),
        ).fetchone()[0]
        for chunk in chunks
    )


@dataclass(frozen=True, slots=True)
class SharedWords:
    """The query's words, as the word index knows them, by whether a chunk has them."""

    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()  # function words that count for nothing in a small memory


def share_words(sql: sqlite3.Connection, chunks: Sequence[int], text: str) -> SharedWords:
    """A word counts as had if one of the chunks has it, in English with whatever ending."""
    whole = build_query(text)
    ignored = chance_words(sql, whole.words)
    asked = whole.without(ignored)
    found: dict[str, bool] = {}
    for word, phrase in zip(asked.words, asked.word_phrases, strict=True):
        found[word] = any(
            sql.execute("SELECT 1 FROM chunk_words WHERE chunk_words MATCH ? AND rowid = ?", (phrase, chunk)).fetchone()
            for chunk in chunks
        )
    return SharedWords(
        tuple(word for word, has in found.items() if has),
        tuple(word for word, has in found.items() if not has),
        tuple(word for word in whole.words if word in ignored),
    )


def telling_words(sql: sqlite3.Connection, target: Target, count: int) -> list[str]:
    """The rarest words of the target's line, or of its passage where the line has none: what it can be found by."""
    rows = sql.execute(
        "SELECT text, start_line FROM passages WHERE document_id = ? AND ? BETWEEN start_line AND end_line"
        " ORDER BY ordinal",
        (target.document, target.line),
    ).fetchall()
    for text in (*(_line_of(text, target.line - start) for text, start in rows), *(text for text, _ in rows)):
        words = list(dict.fromkeys(word for word in split_words(text) if _is_telling(word)))[:_WORDS_LOOKED_UP]
        if words:
            having = {word: _count(sql, word) for word in words}
            return sorted(words, key=lambda word: having[word])[:count]
    return []


def _line_of(text: str, offset: int) -> str:
    lines = text.split("\n")
    return lines[offset] if offset < len(lines) else ""


def _is_telling(word: str) -> bool:
    return word not in FUNCTION_WORDS and not word.isnumeric() and (len(word) >= _SHORTEST or not word.isascii())


def _count(sql: sqlite3.Connection, word: str) -> int:
    (phrase, *_) = build_query(word).word_phrases or ('""',)
    return int(sql.execute("SELECT count(*) FROM chunk_words WHERE chunk_words MATCH ?", (phrase,)).fetchone()[0])
