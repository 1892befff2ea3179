"""Putting right what a look found, row by row: nothing is embedded whose text did not change, and nothing rebuilt
that is sound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from memoryd.jobs.drift import Drift
from memoryd.jobs.look import Stores
from memoryd.jobs.look_vectors import Wanted, compare_vectors, read_marks
from memoryd.jobs.meaning import Meaning
from memoryd.store.document_rows import clear_document, forget_chunks
from memoryd.store.errors import StoreCorrupt
from memoryd.store.generations import Generation
from memoryd.store.job_rows import add_job
from memoryd.store.keywords import TABLES, find_faults, repair_keywords
from memoryd.store.model import document_id
from memoryd.store.protocols import Clock, VectorIndex

_PORTION = 512  # vectors in one commit of LanceDB
_REREAD = ("missing", "stale", "orphan", "duplicate", "wrong_lines", "wrong_rows")
_REWRITTEN = ("duplicate", "wrong_rows")  # their chunks may hold anything: none is kept


def repair_ledger(stores: Stores, drift: Sequence[Drift], now: float) -> None:
    """Clear what belongs to nobody, put the keyword rows right, and queue the files that must be read again.

    What could not be looked at stays as it is: nothing is ever forgotten because it was out of sight.
    """
    ours = [entry for entry in drift if entry.store in ("ledger", "keywords") and entry.kind != "unavailable"]
    if not ours:
        return
    reread = [entry for entry in ours if entry.store == "ledger" and entry.path and entry.kind in _REREAD]
    with stores.database.write() as sql:
        for table in TABLES:  # first, for FTS5 forgets a row rightly only where it holds the row's very words
            faults = find_faults(sql, table)
            if faults.rows or faults.whole:
                repair_keywords(sql, faults)
        for table in ("chunks", "passages", "superseding"):
            for (document,) in sql.execute(
                f"SELECT DISTINCT document_id FROM {table} WHERE document_id NOT IN (SELECT id FROM documents)"  # noqa: S608 - ours
            ).fetchall():
                forget_chunks(sql, document, keep=())
                sql.execute(f"DELETE FROM {table} WHERE document_id = ?", (document,))  # noqa: S608 - ours
        for identity, workspace, path in sql.execute("SELECT id, workspace, path FROM documents").fetchall():
            if identity != document_id(workspace, path):
                clear_document(sql, identity)
        for entry in reread:
            workspace = stores.workspaces.get(entry.workspace)
            file = workspace.file_of(entry.path) if workspace else entry.path
            if entry.kind in _REWRITTEN:
                forget_chunks(sql, document_id(entry.workspace, entry.path), keep=())
            if entry.kind in (*_REWRITTEN, "wrong_lines"):  # the file did not change, and must be read all the same
                stores.documents.expire(entry.workspace, [entry.path])
            if workspace and workspace.transcripts is not None:  # from its beginning, not from where it was read to
                stores.documents.expire(entry.workspace, [file])
            add_job(sql, "index", entry.workspace, file, now)
    for name in stores.documents.workspaces():
        if name not in stores.workspaces:
            stores.documents.forget_workspace(name, now)
    stores.queue.notify()


def repair_vectors(stores: Stores, clock: Clock, *, failed: bool = True) -> dict[str, int]:
    """Make LanceDB and the marks what the passages want, from the cache; queue what was never embedded, and again what
    has ``failed``, if that is not left to the queue.

    Runs on the embed lane, the only writer of LanceDB. Returns facts for the log.
    """
    serving = stores.semantics.lineup.serving
    if serving is None:
        return {}
    with stores.semantics.lineup.writing(serving):
        return _repair_vectors(stores, serving, clock, failed=failed)


def _repair_vectors(stores: Stores, serving: Meaning, clock: Clock, *, failed: bool) -> dict[str, int]:
    generation, index = serving.generation, serving.vectors
    with stores.database.read() as sql:
        wanted: Wanted = {
            passage: (document, text_hash)
            for passage, document, text_hash in sql.execute(
                "SELECT id, document_id, text_hash FROM passages WHERE text_hash IS NOT NULL"
            )
        }
    try:
        index.reopen()
        found = compare_vectors(stores, generation, wanted, read_marks(stores, generation))
    except StoreCorrupt as damage:  # more than rows: the table is begun anew before this is tried again
        stores.semantics.lineup.report_damage(damage.message)
        raise
    index.delete(found.unfit)
    placed = _place(stores, generation, index, wanted, sorted(found.missing | (found.unfit & wanted.keys())))
    lost = (found.missing | (found.unfit & wanted.keys())) - placed
    stores.generations.unmark(generation.id, found.overmarked | lost)
    stores.generations.mark(generation.id, ((passage, wanted[passage][0]) for passage in found.unmarked - lost))
    stores.generations.enqueue_incomplete(generation.id, clock(), failed=failed)
    stores.queue.notify()
    return {"removed": len(found.unfit), "placed": len(placed), "to_embed": len(lost), "marked": len(found.unmarked)}


def _place(
    stores: Stores, generation: Generation, index: VectorIndex, wanted: Wanted, passages: Iterable[int]
) -> set[int]:
    """Write the vectors that the cache has for these passages; returns which those were."""
    placed: set[int] = set()
    for portion in _portions(iter(passages)):
        kept = stores.cache.peek(generation.fingerprint, (wanted[passage][1] for passage in portion))
        ours = [passage for passage in portion if wanted[passage][1] in kept]
        if ours:
            owners = [wanted[passage][0] for passage in ours]
            index.upsert(ours, owners, np.stack([kept[wanted[passage][1]] for passage in ours]))
            stores.generations.mark(generation.id, zip(ours, owners, strict=True))
            placed.update(ours)
    return placed


def _portions(passages: Iterator[int]) -> Iterator[list[int]]:
    while portion := list(islice(passages, _PORTION)):
        yield portion
