"""A transcript's new lines into the ledger: from where it was read to, if it is still the file that was read."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import date

from memoryd.jobs.index_text import IndexSettings
from memoryd.jobs.reading import open_file, unreadable
from memoryd.jobs.sessions.documents import make_segment_document
from memoryd.jobs.sessions.rules import SegmentRules
from memoryd.jobs.sessions.segments import Segment, Segmenter
from memoryd.jobs.sessions.tail import Tail
from memoryd.jobs.workspace import Workspace, check_available, check_same_disk, signature_of
from memoryd.store.model import segment_path
from memoryd.store.protocols import Clock
from memoryd.store.transcripts import SegmentRow, Transcript, Transcripts

NOT_A_TRANSCRIPT = "not a transcript of OpenClaw, Claude Code or Codex"
_GIVE_UP_BYTES = 4 * 2**20  # without a line of a known format
_PORTION = 8  # segments in one go: what was saved meanwhile comes in between


@dataclass(frozen=True, slots=True)
class TranscriptRead:
    outcome: str
    bytes_read: int = 0
    more: bool = False  # the file is not read to its end: ask again


def index_transcript(
    workspace: Workspace, path: str, transcripts: Transcripts, settings: IndexSettings, clock: Clock
) -> TranscriptRead:
    """Make the ledger say what the file says now, or a part of that; what was full before is not read again."""
    name, rules = workspace.name, workspace.transcripts or SegmentRules()
    check_available(workspace)
    descriptor = open_file(workspace.root / path, workspace.root) if workspace.covers(path) else None
    if descriptor is None:
        known = transcripts.find(name, path)
        if known and workspace.covers(path) and not _has_entries(workspace):
            check_same_disk(workspace, {path: known.signature})
        return TranscriptRead("forgotten" if transcripts.forget(name, path, clock()) else "absent")
    try:
        found = os.fstat(descriptor)
        known = transcripts.find(name, path)
        signature = signature_of(found)
        if known is not None and known.signature == signature:
            return TranscriptRead("unchanged")
        tail = Tail(descriptor, known.read_to if known else 0, found.st_size)
        only_grew = known is not None and _is_the_same(known, found, tail)
        if known and only_grew and known.skipped == NOT_A_TRANSCRIPT and known.read_to >= _GIVE_UP_BYTES:
            transcripts.finish(replace(known, signature=signature), 0, clock())
            return TranscriptRead("skipped", tail.bytes_read)
        current = _resume(transcripts, known, rules) if known and only_grew else None
        if known and current:
            segmenter = Segmenter(path, rules, current, known.format, known.session)
            segmenter.anchor = known.anchor
        else:
            tail = Tail(descriptor, 0, found.st_size)
            segmenter = Segmenter(path, rules)
        return _read(workspace, path, transcripts, settings, clock, found, tail, segmenter)
    except OSError as error:
        raise unreadable(workspace.root / path, error) from error
    finally:
        os.close(descriptor)


def _has_entries(workspace: Workspace) -> bool:
    return workspace.root.is_dir() and any(workspace.root.iterdir())


def _read(
    workspace: Workspace,
    path: str,
    transcripts: Transcripts,
    settings: IndexSettings,
    clock: Clock,
    found: os.stat_result,
    tail: Tail,
    segmenter: Segmenter,
) -> TranscriptRead:
    begun, full = segmenter.current.end, 0

    def now(read_to: int, signature: str = "", skipped: str | None = None) -> Transcript:
        return Transcript(
            workspace.name,
            path,
            signature,
            file_of(found),
            segmenter.format,
            segmenter.session,
            read_to,
            segmenter.anchor,
            skipped,
        )

    def keep(segment: Segment) -> None:
        document = None
        if segment.turns:
            document = make_segment_document(
                workspace.name,
                path,
                segment,
                segmenter.format,
                segmenter.session,
                budget=settings.chunk_tokens,
                overlap=settings.overlap_tokens,
            )
        transcripts.keep(now(segment.end), row_of(segment), document, clock())

    for line in tail:
        segment = segmenter.take(line)
        if not segmenter.format and segmenter.current.end >= _GIVE_UP_BYTES:
            transcripts.finish(now(segmenter.current.end, signature_of(found), NOT_A_TRANSCRIPT), 0, clock())
            return TranscriptRead("skipped", tail.bytes_read)
        if segment is not None:
            keep(segment)
            full += 1
            if full >= _PORTION:
                return TranscriptRead("indexed", tail.bytes_read, more=True)
    last = segmenter.current
    if last.lines and last.end > begun:
        keep(last)
    no_transcript = not segmenter.format and last.end > 0
    transcripts.finish(
        now(last.end, signature_of(found), NOT_A_TRANSCRIPT if no_transcript else None),
        last.ordinal if last.lines else last.ordinal - 1,
        clock(),
    )
    return TranscriptRead("skipped" if no_transcript else "indexed", tail.bytes_read)


def _is_the_same(known: Transcript, found: os.stat_result, tail: Tail) -> bool:
    """Whether the file is the one that was read, and only grew: nothing of it has to be read again."""
    if not known.read_to or known.file != file_of(found) or found.st_size < known.read_to:
        return False
    was_read_whole = known.signature != ""
    if was_read_whole and found.st_size <= int(known.signature.partition(":")[0]):
        return False
    return tail.holds(known.anchor)


def _resume(transcripts: Transcripts, known: Transcript, rules: SegmentRules) -> Segment | None:
    """The segment in which the next line belongs, with what the ledger knows of it; None = not enough."""
    row = transcripts.last_segment(known.workspace, known.path, known.read_to)
    if row is None:
        return None
    segment = Segment(
        row.ordinal, row.start, row.first_line, row.end, row.lines, row.turns, row.dropped, row.unknown, row.hash
    )
    if row.turns:
        held = transcripts.text(known.workspace, segment_path(known.path, row.ordinal))
        if held is None or held.content_hash != row.hash:
            return None
        segment.text, segment.places = held.text, held.places
        segment.date = date.fromisoformat(held.date) if held.date else None
    if segment.is_full(rules):
        return Segment(row.ordinal + 1, row.end, row.first_line + row.lines)
    return segment


def set_transcript_aside(workspace: Workspace, path: str, reason: str, transcripts: Transcripts, clock: Clock) -> None:
    """Note a transcript as looked at, without reading it: memoryd dies of that. What was read before stays."""
    try:
        found = (workspace.root / path).stat()
    except OSError:
        return
    known = transcripts.find(workspace.name, path)
    last = max((row.ordinal for row in transcripts.segments(workspace.name, path)), default=0)
    aside = known or Transcript(workspace.name, path, "", file_of(found), "", "", 0, "")
    transcripts.finish(replace(aside, signature=signature_of(found), skipped=reason), last, clock())


def row_of(segment: Segment) -> SegmentRow:
    return SegmentRow(
        segment.ordinal,
        segment.start,
        segment.end,
        segment.first_line,
        segment.lines,
        segment.turns,
        segment.dropped,
        segment.unknown,
        segment.hash,
    )


def file_of(found: os.stat_result) -> str:
    return f"{found.st_ino}:{found.st_dev}"
