"""The full look: every file read and split again, and set against every row that any store holds of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.jobs.drift import Drift, make_drift
from memoryd.jobs.index_text import IndexSettings, make_document
from memoryd.jobs.reading import read_file
from memoryd.jobs.semantics import Semantics
from memoryd.jobs.workspace import Scan, Workspace, check_same_disk, scan
from memoryd.store.cache import SqliteCache
from memoryd.store.database import Database
from memoryd.store.digest import digest_document, digest_ledger, digest_root
from memoryd.store.documents import Documents
from memoryd.store.errors import FileUnreadable, WorkspaceUnavailable
from memoryd.store.generations import Generation, Generations
from memoryd.store.held import Rows, compare_rows, expected_rows, read_rows
from memoryd.store.keywords import KeywordFaults
from memoryd.store.model import document_id
from memoryd.store.queue import Queue, Work

Place = tuple[str, str]  # workspace, path


@dataclass(frozen=True, slots=True)
class Stores:
    """Everything that is compared."""

    workspaces: dict[str, Workspace]
    settings: IndexSettings
    database: Database
    documents: Documents
    queue: Queue
    generations: Generations
    semantics: Semantics
    cache: SqliteCache
    vectors_dir: Path


@dataclass(slots=True)
class Look:
    """What one look found; filled in as it goes."""

    names: tuple[str, ...]
    at: float  # unix time at which it began
    whole: bool  # every workspace that is served: rows that belong to nobody are looked for too
    work: Work
    drift: list[Drift] = field(default_factory=list)
    pending: set[Place] = field(default_factory=set)  # being worked on: neither right nor wrong
    places: dict[int, Place] = field(default_factory=dict)  # document id -> where it is
    wanted: dict[int, tuple[int, bytes]] = field(default_factory=dict)  # passage -> its document, hash of its text
    marks: dict[int, int] = field(default_factory=dict)  # passage -> document, as the ledger says LanceDB has them
    keyword_faults: list[KeywordFaults] = field(default_factory=list)
    seen: dict[Place, str] = field(default_factory=dict)  # the stat of each file that was looked at
    strays: list[str] = field(default_factory=list)  # rows of no document
    documents: int = 0
    chunks: int = 0
    vectors: int = 0  # rows in LanceDB
    _ledger: dict[int, str] = field(default_factory=dict)  # document id -> digest of its rows
    _keywords: dict[int, list[str]] = field(default_factory=dict)  # document id -> faults
    _vectors: dict[int, list[int]] = field(default_factory=dict)  # document id -> passages that LanceDB holds

    def find(self, kind: str, store: str, place: Place, count: int = 1, detail: str = "") -> None:
        self.drift.append(make_drift(kind, store, *place, count, detail))

    def is_busy(self, document: int) -> bool:
        """Whether somebody is at work on a document's vectors, or was told to be."""
        return document in self.work.texts or document in self.work.vectors

    def know(self, document: int, rows: Rows) -> None:
        self.places[document] = (rows.workspace, rows.path)
        self._ledger[document] = digest_ledger(rows.facts())
        self.wanted.update({passage: (document, text_hash) for passage, text_hash in rows.wanted().items()})
        self.documents += rows.about[7] is None  # not skipped
        self.chunks += len(rows.chunks)

    def know_keywords(self, document: int, fault: str) -> None:
        self._keywords.setdefault(document, []).append(fault)

    def know_vector(self, document: int, passage: int) -> None:
        self._vectors.setdefault(document, []).append(passage)

    def state_of(self, place: Place) -> tuple[str | None, str | None]:
        """What disk and ledger said of a document: if a later look says otherwise, it is changing."""
        return self.seen.get(place), self._ledger.get(document_id(*place))

    def root(self, generation: Generation | None) -> str:
        digests = {
            self.places[document]: digest_document(
                ledger, self._keywords.get(document, ()), self._vectors.get(document, ())
            )
            for document, ledger in self._ledger.items()
        }
        return digest_root(digests, generation.fingerprint if generation else "", self.strays)


def look_at_documents(stores: Stores, look: Look) -> None:
    """Disk against ledger, file by file; each in a moment of its own, so that nothing is held up."""
    for name in look.names:
        workspace = stores.workspaces[name]
        known = stores.documents.known(name)
        found = scan_or_tell(workspace, {path: seen.signature for path, seen in known.items()}, look)
        for path in sorted(known.keys() | (found.files.keys() if found else set())):
            _look_at_document(stores, look, workspace, path, found)


def scan_or_tell(workspace: Workspace, known: dict[str, str], look: Look) -> Scan | None:
    """What is on disk; None, and a drift that says so, where that cannot be told."""
    try:
        found = scan(workspace)
        if not found.files:
            check_same_disk(workspace, known)
    except WorkspaceUnavailable as error:
        look.find("unavailable", "disk", (workspace.name, ""), len(known) or 1, f"cannot be looked at: {error.message}")
        return None
    for blind, reason in sorted(found.unreadable.items()):
        count = sum(path == blind or path.startswith(f"{blind}/") or not blind for path in known)
        look.find("unavailable", "disk", (workspace.name, blind), max(1, count), f"cannot be looked at: {reason}")
    return found


def _look_at_document(stores: Stores, look: Look, workspace: Workspace, path: str, found: Scan | None) -> None:
    place, identity = (workspace.name, path), document_id(workspace.name, path)
    with stores.database.read() as sql:
        held = read_rows(sql, identity)
    if held is not None:
        look.know(identity, held)
    if identity in look.work.texts or look.work.covers(*place):
        look.pending.add(place)
    elif found is not None and found.could_look(path):
        _compare_with_file(stores, look, workspace, path, held)


def _compare_with_file(stores: Stores, look: Look, workspace: Workspace, path: str, held: Rows | None) -> None:
    place = (workspace.name, path)
    try:
        file = read_file(workspace.root / path, workspace.root, stores.settings.max_file_bytes)
    except FileUnreadable as error:
        look.find("unavailable", "disk", place, 1, f"could not be looked at: {error.message}")
        return
    look.seen[place] = file.signature if file else ""
    if file is None or not workspace.covers(path):
        if held is not None:
            look.find("orphan", "ledger", place, 1, "is gone from disk, and still indexed")
    elif held is None:
        look.find("missing", "ledger", place)
    elif held.content_hash != file.content_hash:
        look.find("stale", "ledger", place)
    else:
        document, skipped = make_document(workspace, path, file, stores.settings)
        for difference in compare_rows(held, expected_rows(document, skipped)):
            look.find(difference.kind, "ledger", place, difference.count)


def look_at_strays(stores: Stores, look: Look) -> None:
    """Rows of the ledger that belong to no document that is served."""
    with stores.database.read() as sql:
        for table in ("passages", "chunks", "superseding"):
            (count,) = sql.execute(
                f"SELECT count(*) FROM {table} WHERE document_id NOT IN (SELECT id FROM documents)"  # noqa: S608 - ours
            ).fetchone()
            if count:
                look.strays.append(f"{table}:{count}")
                look.find("orphan", "ledger", ("", ""), count, f"has {table} of no document")
        rows = sql.execute("SELECT workspace, path, id FROM documents").fetchall()
    misplaced = [(name, path) for name, path, identity in rows if identity != document_id(name, path)]
    for place in misplaced:
        look.find("orphan", "ledger", place, 1, "has a row under an id that is not its own")
    unserved = sorted({name for name, _, _ in rows if name not in stores.workspaces})
    for name in unserved:
        count = sum(workspace == name for workspace, _, _ in rows)
        look.find("orphan", "ledger", (name, ""), count, "is not served any more, and still indexed")
    look.strays.extend(f"document:{name}:{path}" for name, path in misplaced)
    look.strays.extend(f"workspace:{name}" for name in unserved)


def look_at_keywords(stores: Stores, look: Look, faults: Iterable[KeywordFaults]) -> None:
    """Tell whose chunks the faulty rows of the keyword indexes are."""
    for faulty in faults:
        look.keyword_faults.append(faulty)
        if faulty.whole and look.whole:
            look.find("wrong_keywords", "keywords", ("", ""), 1, f"has a damaged keyword index ({faulty.table})")
            look.strays.append(f"{faulty.table}:damaged")
        counts: dict[tuple[str, Place], int] = {}
        owners = _owners_of_chunks(stores.database, list(faulty.rows))
        for chunk, fault in faulty.rows.items():
            kind = {"missing": "missing_keywords", "wrong": "wrong_keywords", "orphan": "orphan"}[fault]
            document, key = owners.get(chunk, (0, ""))
            place = look.places.get(document, ("", ""))
            if document in look.work.texts or (place == ("", "") and not look.whole):
                continue
            if fault == "orphan":
                look.strays.append(f"{faulty.table}:orphan")
            else:
                look.know_keywords(document, f"{faulty.table}:{key}:{fault}")
            counts[kind, place] = counts.get((kind, place), 0) + 1
        for (kind, place), count in sorted(counts.items()):
            detail = f"has keyword rows of no chunk ({faulty.table})" if kind == "orphan" else ""
            look.find(kind, "keywords", place, count, detail)


def _owners_of_chunks(database: Database, chunks: Sequence[int]) -> dict[int, tuple[int, str]]:
    with database.read() as sql:
        rows = [
            sql.execute("SELECT document_id, key FROM chunks WHERE id = ?", (chunk,)).fetchone() for chunk in chunks
        ]
    return {chunk: row for chunk, row in zip(chunks, rows, strict=True) if row is not None}
