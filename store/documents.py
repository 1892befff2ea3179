"""Documents in the ledger: replaced and forgotten whole, in one transaction, with their keyword rows."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from memoryd.store.database import Database
from memoryd.store.model import Document, Passage, document_id, embedding_text, stable_id
from memoryd.store.queue import add_job


@dataclass(frozen=True, slots=True)
class Known:
    """What the ledger remembers of a file: enough to tell whether it must be read again."""

    signature: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A file that was skipped or read with difficulty, as status names it."""

    workspace: str
    path: str
    reason: str
    skipped: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """What is indexed of one workspace."""

    documents: int
    skipped: int
    chunks: int
    passages: int  # with something to embed
    vectors: int  # of those, how many the active generation holds


class Documents:
    def __init__(self, database: Database) -> None:
        self._database = database

    # -- writing ------------------------------------------------------------------------------------------

    def replace(self, document: Document, now: float) -> None:
        """Make the ledger say exactly what this document says; queue the embedding of what is new in it."""
        identity = document_id(document.workspace, document.path)
        with self._database.write() as sql:
            _clear(sql, identity)
            _insert_document(sql, identity, document, skipped=None, now=now)
            texts = _insert_passages(sql, identity, document.passages)
            _insert_chunks(sql, identity, document, texts)
            add_job(sql, "embed", document.workspace, document.path, now)

    def skip(self, document: Document, reason: str, now: float) -> None:
        """Remember that a file was looked at and why it is not indexed."""
        identity = document_id(document.workspace, document.path)
        with self._database.write() as sql:
            _clear(sql, identity)
            _insert_document(sql, identity, document, skipped=reason, now=now)
            add_job(sql, "embed", document.workspace, document.path, now)

    def touch(self, workspace: str, path: str, signature: str) -> None:
        """The file was looked at again and holds what it held."""
        with self._database.write() as sql:
            sql.execute(
                "UPDATE documents SET signature = ? WHERE id = ?", (signature, document_id(workspace, path))
            )

    def expire(self, workspace: str, paths: Iterable[str] | None = None) -> None:
        """Make the next look at these files (None = all) read and split them again, changed or not."""
        with self._database.write() as sql:
            if paths is None:
                sql.execute("UPDATE documents SET signature = '', content_hash = '' WHERE workspace = ?", (workspace,))
                return
            sql.executemany(
                "UPDATE documents SET signature = '', content_hash = '' WHERE id = ?",
                [(document_id(workspace, path),) for path in paths],
            )

    def forget_workspace(self, workspace: str, now: float) -> int:
        """Forget a workspace that is no longer served."""
        paths = list(self.known(workspace))
        for path in paths:
            self.forget(workspace, path, now)
        return len(paths)

    def forget(self, workspace: str, path: str, now: float) -> bool:
        """The file is gone: it is not found from here on; its vectors are removed by the queued job."""
        identity = document_id(workspace, path)
        with self._database.write() as sql:
            known = sql.execute("SELECT 1 FROM documents WHERE id = ?", (identity,)).fetchone() is not None
            if known:
                _clear(sql, identity)
                add_job(sql, "embed", workspace, path, now)
        return known

    # -- reading ------------------------------------------------------------------------------------------

    def known(self, workspace: str) -> dict[str, Known]:
        with self._database.read() as sql:
            rows = sql.execute("SELECT path, signature, content_hash FROM documents WHERE workspace = ?", (workspace,))
            return {path: Known(signature, content_hash) for path, signature, content_hash in rows}

    def lookup(self, workspace: str, path: str) -> Known | None:
        with self._database.read() as sql:
            row = sql.execute(
                "SELECT signature, content_hash FROM documents WHERE id = ?", (document_id(workspace, path),)
            ).fetchone()
        return Known(*row) if row else None

    def workspaces(self) -> list[str]:
        with self._database.read() as sql:
            return [row[0] for row in sql.execute("SELECT DISTINCT workspace FROM documents ORDER BY 1")]

    def indexed_in(self, path: str, workspaces: Iterable[str]) -> list[str]:
        """The workspaces that have this document indexed."""
        names = list(workspaces)
        with self._database.read() as sql:
            rows = sql.execute("SELECT workspace FROM documents WHERE path = ? AND skipped IS NULL", (path,)).fetchall()
        return [name for (name,) in rows if name in names]

    def remarks(self) -> list[Remark]:
        with self._database.read() as sql:
            rows = sql.execute(
                "SELECT workspace, path, skipped, notices FROM documents"
                " WHERE skipped IS NOT NULL OR notices != '[]' ORDER BY workspace, path"
            ).fetchall()
        return [
            Remark(workspace, path, skipped or "; ".join(json.loads(notices)), skipped=skipped is not None)
            for workspace, path, skipped, notices in rows
        ]

    def totals(self, workspace: str, generation: int | None) -> Totals:
        count = """
            SELECT (SELECT count(*) FROM documents WHERE workspace = :w AND skipped IS NULL),
                   (SELECT count(*) FROM documents WHERE workspace = :w AND skipped IS NOT NULL),
                   (SELECT count(*) FROM chunks c JOIN documents d ON d.id = c.document_id WHERE workspace = :w),
                   count(*), count(v.passage_id)
              FROM passages p JOIN documents d ON d.id = p.document_id
              LEFT JOIN vectors v ON v.passage_id = p.id AND v.generation = :g
             WHERE d.workspace = :w AND p.text_hash IS NOT NULL
        """
        with self._database.read() as sql:
            return Totals(*sql.execute(count, {"w": workspace, "g": generation}).fetchone())


def _clear(sql: sqlite3.Connection, identity: int) -> None:
    # FTS5 forgets a row of an external-content table only when told the text it was given.
    sql.execute(
        "INSERT INTO chunks_fts (chunks_fts, rowid, heading, text)"
        " SELECT 'delete', id, heading, text FROM folded_chunks WHERE document_id = ?",
        (identity,),
    )
    sql.execute("DELETE FROM chunks WHERE document_id = ?", (identity,))
    sql.execute("DELETE FROM passages WHERE document_id = ?", (identity,))
    sql.execute("DELETE FROM documents WHERE id = ?", (identity,))


def _insert_document(
    sql: sqlite3.Connection, identity: int, document: Document, *, skipped: str | None, now: float
) -> None:
    sql.execute(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            identity,
            document.workspace,
            document.path,
            document.source,
            document.signature,
            document.content_hash,
            document.size,
            document.date.isoformat() if document.date else None,
            document.evergreen,
            document.title,
            json.dumps(document.front_matter, ensure_ascii=False),
            json.dumps(document.notices, ensure_ascii=False),
            skipped,
            now,
        ),
    )


def _insert_passages(sql: sqlite3.Connection, identity: int, passages: Iterable[Passage]) -> list[str]:
    texts: list[str] = []
    seen: Counter[bytes] = Counter()  # the same words twice in one document are two passages
    for passage in passages:
        embedded = embedding_text(passage)
        digest = blake2b((embedded or passage.text).encode(errors="surrogatepass"), digest_size=16).digest()
        seen[digest] += 1
        sql.execute(
            "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                identity,
                passage.ordinal,
                stable_id("passage", identity, digest.hex(), seen[digest]),
                passage.text,
                digest if embedded else None,
                passage.start_line,
                passage.end_line,
            ),
        )
        texts.append(passage.text)
    return texts


def _insert_chunks(sql: sqlite3.Connection, identity: int, document: Document, texts: list[str]) -> None:
    seen: Counter[str] = Counter()
    for chunk in document.chunks:
        text = "".join(texts[chunk.first_passage : chunk.last_passage + 1])
        seen[text] += 1
        cursor = sql.execute(
            "INSERT INTO chunks (key, document_id, ordinal, first_passage, last_passage, heading, start_line, end_line)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                f"{stable_id('chunk', identity, text, seen[text]):016x}",
                identity,
                chunk.ordinal,
                chunk.first_passage,
                chunk.last_passage,
                chunk.heading,
                chunk.start_line,
                chunk.end_line,
            ),
        )
        sql.execute(
            "INSERT INTO chunks_fts (rowid, heading, text) VALUES (?, fold(?), fold(?))",
            (cursor.lastrowid, chunk.heading, text),
        )
