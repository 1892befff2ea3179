"""What was found of a file, and how the ledger is made to say so.

Every function works inside the caller's transaction.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from memoryd.store.document_rows import (
    clear_document,
    entries_of,
    forget_chunks,
    passage_rows,
    write_chunks,
    write_document,
    write_passages,
)
from memoryd.store.failpoints import failpoint
from memoryd.store.job_rows import add_job
from memoryd.store.model import Document, document_id


@dataclass(frozen=True, slots=True)
class Said:
    """It was read, and says this."""

    document: Document


@dataclass(frozen=True, slots=True)
class Skipped:
    """It was looked at, and is not indexed for this reason."""

    document: Document
    reason: str


@dataclass(frozen=True, slots=True)
class Touched:
    """It was looked at again, and holds what it held."""

    workspace: str
    path: str
    signature: str


@dataclass(frozen=True, slots=True)
class Gone:
    """It is not there any more."""

    workspace: str
    path: str


Finding = Said | Skipped | Touched | Gone


def write_finding(sql: sqlite3.Connection, finding: Finding, now: float) -> bool:
    """Make the ledger say what was found; returns whether that was news. Its vectors are seen to by a queued job."""
    if isinstance(finding, Gone):
        return forget_document(sql, finding.workspace, finding.path, now)
    if isinstance(finding, Said):
        replace_document(sql, finding.document, now)
    elif isinstance(finding, Skipped):
        document = finding.document
        identity = document_id(document.workspace, document.path)
        clear_document(sql, identity)
        write_document(sql, identity, document, skipped=finding.reason, now=now)
        add_job(sql, "embed", document.workspace, document.path, now)
    else:
        identity = document_id(finding.workspace, finding.path)
        sql.execute("UPDATE documents SET signature = ? WHERE id = ?", (finding.signature, identity))
    return True


def replace_document(sql: sqlite3.Connection, document: Document, now: float) -> None:
    identity = document_id(document.workspace, document.path)
    passages = passage_rows(identity, document.passages)
    entries = entries_of(identity, document, passages)
    kept = forget_chunks(sql, identity, keep={(entry.key, entry.chunk.heading) for entry in entries})
    write_document(sql, identity, document, skipped=None, now=now)
    write_passages(sql, identity, passages)
    write_chunks(sql, identity, document, entries, kept)
    add_job(sql, "embed", document.workspace, document.path, now)
    failpoint("document.replace.before")


def forget_document(sql: sqlite3.Connection, workspace: str, path: str, now: float) -> bool:
    """Whether there was something to forget."""
    identity = document_id(workspace, path)
    known = sql.execute("SELECT 1 FROM documents WHERE id = ?", (identity,)).fetchone() is not None
    if known:
        clear_document(sql, identity)
        add_job(sql, "embed", workspace, path, now)
    failpoint("document.forget.before")
    return known
