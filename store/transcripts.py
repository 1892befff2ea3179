"""Session transcripts in the ledger: how far each file was read, and which of its bytes are in which document."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memoryd.store.database import Database
from memoryd.store.documents import Documents
from memoryd.store.failpoints import failpoint
from memoryd.store.model import SESSIONS, Document, document_id, segment_path


@dataclass(frozen=True, slots=True)
class Transcript:
    """A file, as far as it was read."""

    workspace: str
    path: str
    signature: str  # "" = not read to its end
    file: str  # inode and device
    format: str
    session: str
    read_to: int
    anchor: str
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A run of its lines, without their text."""

    ordinal: int
    start: int
    end: int
    first_line: int
    lines: int
    turns: int
    dropped: int
    unknown: int
    hash: str


@dataclass(frozen=True, slots=True)
class SegmentText:
    """What the ledger has of a segment's document."""

    content_hash: str
    date: str | None
    places: list[list[int]]
    text: str


@dataclass(frozen=True, slots=True)
class SessionTotals:
    """What was read of a workspace's transcripts."""

    files: int
    turns: int
    dropped_lines: int
    unknown_lines: int


class Transcripts:
    def __init__(self, database: Database, documents: Documents) -> None:
        self._database = database
        self._documents = documents

    # -- writing ------------------------------------------------------------------------------------------

    def keep(self, transcript: Transcript, segment: SegmentRow, document: Document | None, now: float) -> None:
        """The file was read so far: its last segment, and the document that it makes; None = it says nothing.

        Written only where it differs. Whoever dies after this goes on from here.
        """
        path = segment_path(transcript.path, segment.ordinal)
        with self._database.write() as sql:
            self._write(sql, transcript)
            sql.execute(
                "INSERT OR REPLACE INTO segments VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    document_id(transcript.workspace, transcript.path),
                    segment.ordinal,
                    segment.start,
                    segment.end,
                    segment.first_line,
                    segment.lines,
                    segment.turns,
                    segment.dropped,
                    segment.unknown,
                    segment.hash,
                ),
            )
            if document is None:
                self._documents.forget(transcript.workspace, path, now)
            elif not self._holds(sql, document):
                self._documents.replace(document, now)
            failpoint("transcript.keep.before")
        failpoint("transcript.keep.after")

    def finish(self, transcript: Transcript, last: int, now: float) -> None:
        """The file was read to its end, and has so many segments: what is known of more is of an older file."""
        for path, ordinal in self.documents_of(transcript.workspace, transcript.path).items():
            if ordinal > last:
                self._documents.forget(transcript.workspace, path, now)
        with self._database.write() as sql:
            self._write(sql, transcript)
            sql.execute(
                "DELETE FROM segments WHERE transcript_id = ? AND ordinal > ?",
                (document_id(transcript.workspace, transcript.path), last),
            )
            failpoint("transcript.finish.before")
        failpoint("transcript.finish.after")

    def forget(self, workspace: str, path: str, now: float) -> bool:
        """The file is gone: segment by segment, so that nobody waits for a long one; the row goes last."""
        gone = self.documents_of(workspace, path)
        for each in gone:
            self._documents.forget(workspace, each, now)
        with self._database.write() as sql:
            rows = sql.execute("DELETE FROM transcripts WHERE id = ?", (document_id(workspace, path),)).rowcount
            failpoint("transcript.forget.before")
        failpoint("transcript.forget.after")
        return bool(rows or gone)

    def _write(self, sql: sqlite3.Connection, transcript: Transcript) -> None:
        # An upsert, not INSERT OR REPLACE: that would delete the row first, and its segments with it.
        sql.execute(
            """
            INSERT INTO transcripts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET
                signature = excluded.signature, file = excluded.file, format = excluded.format,
                session = excluded.session, read_to = excluded.read_to, anchor = excluded.anchor,
                skipped = excluded.skipped
            """,
            (
                document_id(transcript.workspace, transcript.path),
                transcript.workspace,
                transcript.path,
                transcript.signature,
                transcript.file,
                transcript.format,
                transcript.session,
                transcript.read_to,
                transcript.anchor,
                transcript.skipped,
            ),
        )

    def _holds(self, sql: sqlite3.Connection, document: Document) -> bool:
        row = sql.execute(
            "SELECT content_hash, scope, front_matter FROM documents WHERE id = ?",
            (document_id(document.workspace, document.path),),
        ).fetchone()
        return row is not None and tuple(row) == (
            document.content_hash,
            document.scope,
            json.dumps(document.front_matter),
        )

    # -- reading ------------------------------------------------------------------------------------------

    def find(self, workspace: str, path: str) -> Transcript | None:
        with self._database.read() as sql:
            row = sql.execute(
                "SELECT workspace, path, signature, file, format, session, read_to, anchor, skipped"
                " FROM transcripts WHERE id = ?",
                (document_id(workspace, path),),
            ).fetchone()
        return Transcript(*row) if row else None

    def segments(self, workspace: str, path: str) -> list[SegmentRow]:
        with self._database.read() as sql:
            rows = sql.execute(
                "SELECT ordinal, start, end, first_line, lines, turns, dropped, unknown, hash FROM segments"
                " WHERE transcript_id = ? ORDER BY ordinal",
                (document_id(workspace, path),),
            )
            return [SegmentRow(*row) for row in rows]

    def last_segment(self, workspace: str, path: str, read_to: int) -> SegmentRow | None:
        """The segment that ends where the file was read to."""
        with self._database.read() as sql:
            row = sql.execute(
                "SELECT ordinal, start, end, first_line, lines, turns, dropped, unknown, hash FROM segments"
                " WHERE transcript_id = ? AND end = ? ORDER BY ordinal LIMIT 1",
                (document_id(workspace, path), read_to),
            ).fetchone()
        return SegmentRow(*row) if row else None

    def text(self, workspace: str, path: str) -> SegmentText | None:
        """What the document at a segment's path says."""
        identity = document_id(workspace, path)
        with self._database.read() as sql:
            row = sql.execute(
                "SELECT content_hash, date, front_matter FROM documents WHERE id = ? AND source = ?",
                (identity, SESSIONS),
            ).fetchone()
            if row is None:
                return None
            texts = sql.execute("SELECT text FROM passages WHERE document_id = ? ORDER BY ordinal", (identity,))
            text = "".join(each[0] for each in texts)
        facts: Mapping[str, Any] = json.loads(row[2])
        return SegmentText(row[0], row[1], facts.get("places", []), text)

    def documents_of(self, workspace: str, path: str) -> dict[str, int]:
        """The documents of a file's segments, last first: path -> ordinal."""
        with self._database.read() as sql:
            rows = sql.execute(
                "SELECT path FROM documents WHERE workspace = ? AND path > ? AND path < ? AND source = ?",
                (workspace, f"{path}/", f"{path}0", SESSIONS),  # "0" comes right after "/"
            ).fetchall()
        found = {each: each.removeprefix(f"{path}/") for (each,) in rows}
        ordinals = {each: int(rest) for each, rest in found.items() if rest.isascii() and rest.isdigit()}
        return dict(sorted(ordinals.items(), key=lambda pair: -pair[1]))

    def totals(self, workspace: str) -> SessionTotals:
        with self._database.read() as sql:
            (files,) = sql.execute("SELECT count(*) FROM transcripts WHERE workspace = ?", (workspace,)).fetchone()
            sums = sql.execute(
                "SELECT total(turns), total(dropped), total(unknown) FROM segments"
                " WHERE transcript_id IN (SELECT id FROM transcripts WHERE workspace = ?)",
                (workspace,),
            ).fetchone()
        return SessionTotals(files, *map(int, sums))
