"""Disk against ledger for session transcripts: every file read from its beginning, and set against its segments."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import astuple

from memoryd.jobs.index_transcript import row_of
from memoryd.jobs.look import Look, Stores
from memoryd.jobs.reading import open_file, unreadable
from memoryd.jobs.sessions.documents import make_segment_document
from memoryd.jobs.sessions.rules import SegmentRules
from memoryd.jobs.sessions.segments import Segment, Segmenter
from memoryd.jobs.sessions.tail import Tail
from memoryd.jobs.workspace import Scan, Workspace, signature_of
from memoryd.store.errors import FileUnreadable
from memoryd.store.held import Rows, compare_rows, expected_rows, read_rows
from memoryd.store.model import document_id, segment_path
from memoryd.store.transcripts import Transcripts

_REST = "was read otherwise than it is on disk"


def look_at_transcripts(stores: Stores, look: Look, workspace: Workspace, known: set[str], found: Scan | None) -> None:
    """``known``: the files that the ledger knows."""
    with stores.database.read() as sql:
        rows = sql.execute("SELECT path FROM documents WHERE workspace = ?", (workspace.name,)).fetchall()
    behind = {workspace.file_of(path) for (path,) in rows}  # also of segments that have lost their transcript
    for path in sorted(known | behind | (found.files.keys() if found else set())):
        _look_at_transcript(stores, look, workspace, path, found)


def _look_at_transcript(stores: Stores, look: Look, workspace: Workspace, path: str, found: Scan | None) -> None:
    place, identity = (workspace.name, path), document_id(workspace.name, path)
    transcripts = Transcripts(stores.database, stores.documents)
    with stores.database.read() as sql:
        transcript = transcripts.find(*place)
        segments = transcripts.segments(*place)
        held = {
            ordinal: rows
            for each, ordinal in transcripts.documents_of(*place).items()
            if (rows := read_rows(sql, document_id(workspace.name, each))) is not None
        }
    for ordinal, rows in held.items():
        look.know(document_id(workspace.name, segment_path(path, ordinal)), rows)
    if transcript is not None:
        facts = (transcript.format, transcript.session, transcript.read_to, transcript.skipped)
        look.know_transcript(identity, place, [facts, *map(astuple, segments)])
    if identity in look.work.texts or look.work.covers(*place):
        look.pending.add(place)
        return
    if found is None or not found.could_look(path):
        return
    if transcript is not None and transcript.skipped is not None and path in found.files:
        look.seen[place] = found.files[path]
        return
    descriptor = None
    try:
        descriptor = open_file(workspace.root / path, workspace.root) if workspace.covers(path) else None
        signature = signature_of(os.fstat(descriptor)) if descriptor is not None else ""
        look.seen[place] = signature
        look.seen.update({(workspace.name, segment_path(path, ordinal)): signature for ordinal in held})
        if descriptor is None:
            if transcript is not None or held:
                look.find("orphan", "ledger", place, 1, "is gone from disk, and still indexed")
            return
        if transcript is None:
            look.find("missing", "ledger", place)
            return
        expected = _compare(stores, look, workspace, path, descriptor, held)
        if expected != (transcript.format, transcript.session, transcript.read_to, segments):
            look.find("stale", "ledger", place, 1, _REST)
    except FileUnreadable as error:
        look.find("unavailable", "disk", place, 1, f"could not be looked at: {error.message}")
    except OSError as error:
        look.find(
            "unavailable", "disk", place, 1, f"could not be looked at: {unreadable(workspace.root / path, error)}"
        )
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _compare(
    stores: Stores, look: Look, workspace: Workspace, path: str, descriptor: int, held: dict[int, Rows]
) -> tuple[object, ...]:
    """Each segment's document with what it should be; returns what the ledger should say of the file."""
    segmenter = Segmenter(path, workspace.transcripts or SegmentRules())
    rows, left = [], dict(held)
    for segment in _cut(segmenter, Tail(descriptor, 0, os.fstat(descriptor).st_size)):
        rows.append(row_of(segment))
        place = (workspace.name, segment_path(path, segment.ordinal))
        mine = left.pop(segment.ordinal, None)
        if not segment.turns:
            if mine is not None:
                look.find("orphan", "ledger", place, 1, "has nothing to say, and is still indexed")
        elif mine is None:
            look.find("missing", "ledger", place)
        elif mine.content_hash != segment.hash:
            look.find("stale", "ledger", place)
        else:
            document = make_segment_document(
                workspace.name,
                path,
                segment,
                segmenter.format,
                segmenter.session,
                budget=stores.settings.chunk_tokens,
                overlap=stores.settings.overlap_tokens,
            )
            for difference in compare_rows(mine, expected_rows(document, None)):
                look.find(difference.kind, "ledger", place, difference.count)
    for ordinal in left:
        place = (workspace.name, segment_path(path, ordinal))
        look.find("orphan", "ledger", place, 1, "is gone from its transcript, and still indexed")
    return segmenter.format, segmenter.session, segmenter.current.end, rows


def _cut(segmenter: Segmenter, tail: Tail) -> Iterator[Segment]:
    for line in tail:
        segment = segmenter.take(line)
        if segment is not None:
            yield segment
    if segmenter.current.lines:
        yield segmenter.current
