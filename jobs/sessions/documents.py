"""A segment as a document, and the way from a segment's path back to its file."""

from __future__ import annotations

from memoryd.jobs.chunking import group_chunks, split_passages
from memoryd.jobs.sessions.segments import Segment
from memoryd.store.model import SESSIONS, Document, segment_path
from memoryd.store.scope import UNKNOWN, parse_scope


def make_segment_document(
    workspace: str, path: str, segment: Segment, chosen: str, session: str, *, budget: int, overlap: int
) -> Document:
    passages = split_passages(segment.text)
    return Document(
        workspace=workspace,
        path=segment_path(path, segment.ordinal),
        source=SESSIONS,
        signature="",  # the transcript has one
        content_hash=segment.hash,
        size=segment.end - segment.start,
        date=segment.date,
        evergreen=segment.date is None,
        title="",
        front_matter={"format": chosen, "session": session, "places": segment.places},
        notices=(),
        passages=passages,
        chunks=group_chunks(passages, budget=budget, overlap=overlap),
        scope=parse_scope(f"session:{session}") or UNKNOWN,
    )
