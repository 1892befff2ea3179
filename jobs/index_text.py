"""The first phase of indexing: a file's text into the ledger, where its words are found at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from memoryd.jobs.chunking import group_chunks, split_passages
from memoryd.jobs.dates import document_date, is_evergreen
from memoryd.jobs.markdown import document_title, read_front_matter
from memoryd.jobs.reading import FileRead, decode_text, read_file
from memoryd.jobs.scope import document_scope
from memoryd.jobs.superseding import read_superseding
from memoryd.jobs.workspace import Workspace, check_available, check_same_disk, signature_of
from memoryd.store.documents import Documents
from memoryd.store.model import FACTS, Document, Passage
from memoryd.store.protocols import Clock

READING_VERSION = "2"  # of what is taken from a file besides its passages: another one, and all is read again
_CRASHED = "crashed:"  # in the place of the hash of a file that memoryd died of


@dataclass(frozen=True, slots=True)
class IndexSettings:
    chunk_tokens: int = 400
    overlap_tokens: int = 80
    max_file_bytes: int = 10_485_760


def index_text(workspace: Workspace, path: str, documents: Documents, settings: IndexSettings, clock: Clock) -> str:
    """Make the ledger say what the file says now; returns what was done, for the log."""
    if not workspace.covers(path):
        return "forgotten" if documents.forget(workspace.name, path, clock()) else "absent"
    known = documents.lookup(workspace.name, path)
    check_available(workspace)
    file = read_file(workspace.root / path, workspace.root, settings.max_file_bytes)
    if file is None:
        if known and not any(workspace.root.iterdir()):
            check_same_disk(workspace, {path: known.signature})
        return "forgotten" if documents.forget(workspace.name, path, clock()) else "absent"
    if known and known.content_hash == file.content_hash:
        documents.touch(workspace.name, path, file.signature)
        return "unchanged"
    document, skipped = make_document(workspace, path, file, settings)
    if skipped is not None:
        documents.skip(document, skipped, clock())
        return "skipped"
    documents.replace(document, clock())
    return "indexed"


def make_document(
    workspace: Workspace, path: str, file: FileRead, settings: IndexSettings
) -> tuple[Document, str | None]:
    """What a file says, and why it is not indexed; None = it is."""
    if file.too_large:
        reason = f"{file.size:,} bytes, more than index.max_file_bytes ({settings.max_file_bytes:,})"
        return _document(workspace, path, file, "", [], settings), reason
    text, notices = decode_text(file.data)
    if text is None:
        return _document(workspace, path, file, "", [], settings), "not text"
    return _document(workspace, path, file, text, notices, settings), None


def set_aside(
    workspace: Workspace, path: str, reason: str, documents: Documents, settings: IndexSettings, clock: Clock
) -> None:
    """Note a file as looked at, without reading it: memoryd dies of that. Only a change brings it back."""
    try:
        found = (workspace.root / path).stat()
    except OSError:  # gone, or away: there is nothing to be read again
        return
    file = FileRead(b"", found.st_size, signature_of(found), too_large=True)
    document = _document(workspace, path, file, "", [], settings)
    documents.skip(replace(document, content_hash=f"{_CRASHED}{file.signature}"), reason, clock())


def is_set_aside(workspace: Workspace, path: str, documents: Documents) -> bool:
    known = documents.lookup(workspace.name, path)
    return known is not None and known.content_hash.startswith(_CRASHED)


def _document(
    workspace: Workspace, path: str, file: FileRead, text: str, notices: list[str], settings: IndexSettings
) -> Document:
    front_matter = read_front_matter(text)
    if front_matter.problem:
        notices = [*notices, f"front matter ignored: {front_matter.problem}"]
    scope, remark = document_scope(path, text, front_matter, workspace.scopes)
    superseding, remarks = read_superseding(path, front_matter.values)
    notices = [*notices, *([remark] if remark else []), *remarks]
    written = document_date(path, front_matter.values)
    passages = split_passages(text) if workspace.source != FACTS else _split_body(text, front_matter.lines)
    return Document(
        workspace=workspace.name,
        path=path,
        source=workspace.source or ("skills" if path.startswith("skills/") else "memory"),
        signature=file.signature,
        content_hash=file.content_hash,
        size=file.size,
        date=written,
        evergreen=is_evergreen(path, written, workspace.evergreen),
        title=document_title(text, front_matter),
        front_matter=front_matter.values,
        notices=tuple(notices),
        passages=passages,
        chunks=group_chunks(passages, budget=settings.chunk_tokens, overlap=settings.overlap_tokens),
        scope=scope,
        superseding=superseding,
    )


def _split_body(text: str, lines: int) -> tuple[Passage, ...]:
    """Of a fact: its front matter is memoryd's own, and nobody looks for it. The lines are those of the file."""
    body = text.split("\n", lines)[-1] if text.count("\n") >= lines else ""
    return tuple(
        replace(passage, start_line=passage.start_line + lines, end_line=passage.end_line + lines)
        for passage in split_passages(body)
    )
