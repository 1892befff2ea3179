"""Splitting a document again, as another chunker cuts it, without its being found by words alone in between.

The passages of the new splitting get their vectors while the old ones are still searched: what the ledger does not
know cannot be found. Then the document's rows are replaced in one transaction, and the vectors of the old ones go.
"""

from __future__ import annotations

from memoryd.jobs.embed import Vectorizer
from memoryd.jobs.index_text import IndexSettings, index_text
from memoryd.jobs.meaning import Meaning
from memoryd.jobs.passages import split_passages
from memoryd.jobs.reading import decode_text, read_file
from memoryd.jobs.workspace import Workspace
from memoryd.store.document_rows import passage_rows
from memoryd.store.documents import Documents
from memoryd.store.generations import Wanted
from memoryd.store.model import Job, document_id
from memoryd.store.protocols import Clock


def resplit(
    job: Job,
    workspace: Workspace,
    documents: Documents,
    settings: IndexSettings,
    clock: Clock,
    vectorizer: Vectorizer,
    meaning: Meaning | None,
) -> dict[str, object]:
    """Runs on the embed lane. Without a model the rows are replaced all the same: words are what is searched then."""
    computed = 0
    if meaning is not None:
        computed = vectorizer.write_ahead(_read_passages(job, workspace, settings), meaning)
    documents.expire(job.workspace, [job.path])
    outcome = index_text(workspace, job.path, documents, settings, clock)
    if meaning is not None:
        vectorizer.run([job], meaning)  # removes the old ones; the file may have changed since it was read, too
    return {"outcome": outcome, "computed": computed}


def _read_passages(job: Job, workspace: Workspace, settings: IndexSettings) -> list[Wanted]:
    """What the document's passages will be, those with nothing to embed aside; none where it is not to be read."""
    file = read_file(workspace.root / job.path, workspace.root, settings.max_file_bytes)
    text = None if file is None or file.too_large else decode_text(file.data)[0]
    owner = document_id(job.workspace, job.path)
    rows = passage_rows(owner, split_passages(text or ""))
    return [Wanted(passage, owner, digest, whole) for _, _, passage, whole, digest, _, _ in rows if digest]
