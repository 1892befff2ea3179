"""Documents in the ledger: replaced and forgotten whole, in one transaction, with their keyword rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from memoryd.store.database import Database
from memoryd.store.document_rows import (
    clear_document,
    entries_of,
    forget_chunks,
    write_chunks,
    write_document,
    write_passages,
)
from memoryd.store.failpoints import failpoint
from memoryd.store.job_rows import add_job
from memoryd.store.model import SESSIONS, Document, document_id

# The files behind the documents: a segment is none, its transcript is.
_FILES = f"""
    SELECT id, workspace, path, signature, content_hash FROM documents WHERE source != '{SESSIONS}'
    UNION ALL SELECT id, workspace, path, signature, '' FROM transcripts
"""  # noqa: S608 - of a constant


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
        entries = entries_of(identity, document)
        with self._database.write() as sql:
            kept = forget_chunks(sql, identity, keep={(entry.key, entry.chunk.heading) for entry in entries})
            write_document(sql, identity, document, skipped=None, now=now)
            write_passages(sql, identity, document.passages)
            write_chunks(sql, identity, entries, kept)
            add_job(sql, "embed", document.workspace, document.path, now)
            failpoint("document.replace.before")
        failpoint("document.replace.after")

    def skip(self, document: Document, reason: str, now: float) -> None:
        """Remember that a file was looked at and why it is not indexed."""
        identity = document_id(document.workspace, document.path)
        with self._database.write() as sql:
            clear_document(sql, identity)
            write_document(sql, identity, document, skipped=reason, now=now)
            add_job(sql, "embed", document.workspace, document.path, now)

    def touch(self, workspace: str, path: str, signature: str) -> None:
        """The file was looked at again and holds what it held."""
        with self._database.write() as sql:
            sql.execute("UPDATE documents SET signature = ? WHERE id = ?", (signature, document_id(workspace, path)))

    def expire(self, workspace: str, paths: Iterable[str] | None = None) -> None:
        """Make the next look at these files (None = all) read and split them again, changed or not."""
        with self._database.write() as sql:
            if paths is None:
                sql.execute("UPDATE documents SET signature = '', content_hash = '' WHERE workspace = ?", (workspace,))
                sql.execute("UPDATE transcripts SET signature = '', read_to = 0 WHERE workspace = ?", (workspace,))
                return
            ids = [(document_id(workspace, path),) for path in paths]
            sql.executemany("UPDATE documents SET signature = '', content_hash = '' WHERE id = ?", ids)
            sql.executemany("UPDATE transcripts SET signature = '', read_to = 0 WHERE id = ?", ids)

    def forget_workspace(self, workspace: str, now: float) -> int:
        """Forget a workspace that is no longer served."""
        with self._database.read() as sql:
            paths = [row[0] for row in sql.execute("SELECT path FROM documents WHERE workspace = ?", (workspace,))]
        for path in paths:
            self.forget(workspace, path, now)
        with self._database.write() as sql:
            sql.execute("DELETE FROM transcripts WHERE workspace = ?", (workspace,))
        return len(paths)

    def forget(self, workspace: str, path: str, now: float) -> bool:
        """The file is gone: it is not found from here on; its vectors are removed by the queued job."""
        identity = document_id(workspace, path)
        with self._database.write() as sql:
            known = sql.execute("SELECT 1 FROM documents WHERE id = ?", (identity,)).fetchone() is not None
            if known:
                clear_document(sql, identity)
                add_job(sql, "embed", workspace, path, now)
            failpoint("document.forget.before")
        failpoint("document.forget.after")
        return known

    # -- reading ------------------------------------------------------------------------------------------

    def known(self, workspace: str) -> dict[str, Known]:
        """The files of a workspace that were looked at."""
        with self._database.read() as sql:
            rows = sql.execute(
                f"SELECT path, signature, content_hash FROM ({_FILES}) WHERE workspace = ?",  # noqa: S608 - ours
                (workspace,),
            )
            return {path: Known(signature, content_hash) for path, signature, content_hash in rows}

    def lookup(self, workspace: str, path: str) -> Known | None:
        with self._database.read() as sql:
            row = sql.execute(
                f"SELECT signature, content_hash FROM ({_FILES}) WHERE id = ?",  # noqa: S608 - ours
                (document_id(workspace, path),),
            ).fetchone()
        return Known(*row) if row else None

    def workspaces(self) -> list[str]:
        with self._database.read() as sql:
            both = "SELECT workspace FROM documents UNION SELECT workspace FROM transcripts ORDER BY 1"
            return [row[0] for row in sql.execute(both)]

    def indexed_in(self, path: str, workspaces: Iterable[str]) -> list[str]:
        """The workspaces that have this document indexed."""
        indexed = "SELECT 1 FROM documents WHERE id = ? AND skipped IS NULL"
        with self._database.read() as sql:
            return [name for name in workspaces if sql.execute(indexed, (document_id(name, path),)).fetchone()]

    def remarks(self) -> list[Remark]:
        with self._database.read() as sql:
            rows = sql.execute(
                "SELECT workspace, path, skipped, notices FROM documents WHERE skipped IS NOT NULL OR notices != '[]'"
                " UNION ALL SELECT workspace, path, skipped, '[]' FROM transcripts WHERE skipped IS NOT NULL"
                " ORDER BY workspace, path"
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
