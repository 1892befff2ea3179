"""A look at everything that memoryd holds: what is looked at, and what was found."""

from __future__ import annotations

from dataclasses import dataclass, field

from memoryd.jobs.drift import Drift, make_drift
from memoryd.jobs.index_text import IndexSettings
from memoryd.jobs.semantics import Semantics
from memoryd.jobs.workspace import Workspace
from memoryd.store.cache import SqliteCache
from memoryd.store.database import Database
from memoryd.store.digest import digest_document, digest_facts, digest_ledger, digest_root
from memoryd.store.documents import Documents
from memoryd.store.generations import Generation, Generations
from memoryd.store.held import Rows
from memoryd.store.job_rows import Work
from memoryd.store.keywords import KeywordFaults
from memoryd.store.model import document_id
from memoryd.store.place import VectorPlace
from memoryd.store.queue import Queue

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
    place: VectorPlace  # of LanceDB's tables


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

    def know_transcript(self, identity: int, place: Place, facts: list[tuple[object, ...]]) -> None:
        """How a file of many documents was read, as far as that follows from its bytes."""
        self.places[identity] = place
        self._ledger[identity] = digest_facts(facts)

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
