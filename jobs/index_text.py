"""The first phase of indexing: a file's text into the ledger, where its words are found at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from memoryd.jobs.chunking import group_chunks, split_passages
from memoryd.jobs.dates import document_date, is_evergreen
from memoryd.jobs.interrupted import Interrupted
from memoryd.jobs.markdown import document_title, read_front_matter
from memoryd.jobs.reading import FileRead, decode_text, read_file
from memoryd.jobs.scope import document_scope
from memoryd.jobs.superseding import read_superseding
from memoryd.jobs.workspace import Workspace, check_available, check_same_disk, signature_of
from memoryd.store.documents import Documents, Known
from memoryd.store.findings import Finding, Gone, Said, Skipped, Touched
from memoryd.store.model import FACTS, Document, Passage
from memoryd.store.protocols import Clock

READING_VERSION = "2"  # of what is taken from a file besides its passages: another one, and all is read again
_COMMIT_BYTES = 256 * 1024  # of text that wait for one commit: tens of milliseconds
_CRASHED = "crashed:"  # in the place of the hash of a file that memoryd died of


@dataclass(frozen=True, slots=True)
class IndexSettings:
    chunk_tokens: int = 400
    overlap_tokens: int = 80
    max_file_bytes: int = 10_485_760


def index_text(workspace: Workspace, path: str, documents: Documents, settings: IndexSettings, clock: Clock) -> str:
    """Make the ledger say what the file says now; returns what was done, for the log."""
    return index_texts(workspace, [path], documents, settings, clock)[path]


def index_texts(
    workspace: Workspace,
    paths: Sequence[str],
    documents: Documents,
    settings: IndexSettings,
    clock: Clock,
    is_wanted: Callable[[], bool] = lambda: False,
) -> dict[str, str]:
    """Make the ledger say what the files say now, small ones in one commit; returns what was done with each.

    ``is_wanted``: whether the lane is wanted for something else, and lets go of its jobs at the next file. What was
    written by then is found unchanged when they come again.
    """
    if any(workspace.covers(path) for path in paths):
        check_available(workspace)
    known = documents.lookup_all(workspace.name, paths)
    outcomes: dict[str, str] = {}
    found: list[Finding] = []
    held = 0  # bytes that were read, and are not written yet
    for path in paths:
        if is_wanted():
            raise Interrupted
        outcomes[path], finding = _look(workspace, path, known.get(path), settings)
        if finding is not None:
            found.append(finding)
            held += finding.document.size if isinstance(finding, Said) else 0
        if held > _COMMIT_BYTES:
            documents.keep(found, clock())
            found, held = [], 0
    if found:
        documents.keep(found, clock())
    return outcomes


def _look(workspace: Workspace, path: str, known: Known | None, settings: IndexSettings) -> tuple[str, Finding | None]:
    """What is to be done about a file, and what the ledger is to say of it; None = it says so already."""
    covered = workspace.covers(path)
    file = read_file(workspace.root / path, workspace.root, settings.max_file_bytes) if covered else None
    if file is None:
        if known is None:
            return "absent", None
        if covered:
            check_available(workspace)  # again: it may have been taken away between two files
            if not any(workspace.root.iterdir()):
                check_same_disk(workspace, {path: known.signature})
        return "forgotten", Gone(workspace.name, path)
    if known and known.content_hash == file.content_hash:
        is_noted = known.signature == file.signature
        return "unchanged", None if is_noted else Touched(workspace.name, path, file.signature)
    document, skipped = make_document(workspace, path, file, settings)
    if skipped is not None:
        return "skipped", Skipped(document, skipped)
    return "indexed", Said(document)


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
    return known is not None and is_crashed(known.content_hash)


def is_crashed(content_hash: str) -> bool:
    """Whether it stands for a file that memoryd died of, and that is not to be read until it changes."""
    return content_hash.startswith(_CRASHED)


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
