"""An engine on real stores, with an embedder that counts, in a folder of the test's own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from memoryd.daemon.config import Config, Embedder, Index, Locations, Workspace
from memoryd.daemon.configured_models import ConfiguredModels
from memoryd.daemon.engine import Engine
from memoryd.daemon.methods import Methods
from memoryd.daemon.paths import find_paths
from memoryd.daemon.status import full_status
from memoryd.jobs.meaning import Choice, Models, Progress
from memoryd.store.errors import ModelMissing
from memoryd.store.protocols import Clock, Vectors
from tests.support.fake_embedder import FakeEmbedder
from tests.support.waiting import eventually


class Gate(FakeEmbedder):
    """An embedder that stops at each batch of documents until it is let go on."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.entered = threading.Semaphore(0)
        self.passes = threading.Semaphore(0)
        self.order: list[str] = []  # what was embedded, as it began

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.order.append("documents")
        self.entered.release()
        assert self.passes.acquire(timeout=60)
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> Vectors:
        self.order.append("query")
        return super().embed_query(text)

    def open(self) -> None:
        """Stop no more."""
        self.passes.release(1_000_000)


class FakeModels:
    """The memory's embedder, and those that it had before as long as they are kept."""

    off = None
    choice = Choice("local", "for a test")

    def __init__(self, memory: Memory, recipe: str) -> None:
        self.memory = memory
        self.recipe = recipe

    def load(self, progress: Progress) -> FakeEmbedder:
        if self.recipe == self.memory.recipe:
            embedder = self.memory.load(progress)
        elif self.recipe in self.memory.former:
            embedder = self.memory.former[self.recipe]
        else:
            raise ModelMissing(f"The model {self.recipe} is not installed")
        embedder.closed = False
        return embedder

    def former(self, recipe: str) -> FakeModels:
        return FakeModels(self.memory, recipe)


class Memory:
    """A workspace on disk and the engine over it, started and stopped as the test wants."""

    def __init__(self, folder: Path, embedder: FakeEmbedder | None = None) -> None:
        self.root = folder / "notes"
        self.root.mkdir(exist_ok=True)
        self.data = folder / "data"
        self.embedder = embedder or FakeEmbedder()
        self.former: dict[str, FakeEmbedder] = {}  # embedders that are still there, by recipe
        self.load: Callable[[Progress], FakeEmbedder] = lambda _progress: self.embedder
        self.config = Config(
            workspaces=(Workspace(self.root, "notes"),),
            embedder=Embedder(model="fake"),
            index=Index(),
            paths=Locations(data=str(self.data), cache=str(folder / "cache"), socket=str(folder / "s")),
        )
        self.engine: Engine | None = None
        self.clock: Clock = time.time
        self.machine = Path("/")  # below it, what Linux tells of the machine

    def configure(self, **sections: Any) -> None:
        self.config = replace(self.config, **sections)

    # -- files --------------------------------------------------------------------------------------------

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    # -- the engine ---------------------------------------------------------------------------------------

    @property
    def recipe(self) -> str:
        return json.dumps({"model": self.embedder.identity.fingerprint})

    @property
    def models(self) -> Models:
        return self.load if isinstance(self.load, ConfiguredModels) else FakeModels(self, self.recipe)

    def switch(self, embedder: FakeEmbedder) -> None:
        """Choose another embedder, as `memoryd model use` does; the one before stays installed."""
        self.former[self.recipe] = self.embedder
        self.embedder = embedder
        if self.engine is not None:
            self.engine.semantics.use(self.models)

    @contextmanager
    def running(self) -> Iterator[Engine]:
        self.embedder.closed = False
        engine = self.engine = Engine(
            self.config, find_paths(self.config, {"HOME": "/nonexistent"}), self.models, self.clock, self.machine
        )
        try:
            engine.start()
            yield engine
        finally:
            self.engine = None
            late = engine.stop(10)
        assert late == []

    def index(self) -> None:
        """Start, wait until all is indexed, stop."""
        with self.running():
            self.settle()

    def settle(self) -> None:
        """Until nothing is left to do."""
        eventually(lambda: self.live.is_current() and self.live.semantics.settled(), what="the index is current")

    def look(self) -> None:
        """Have the disk looked at and what changed indexed: what the schedule does, and no watcher."""
        self.live.look_at_disk()
        self.settle()

    @property
    def live(self) -> Engine:
        assert self.engine is not None
        return self.engine

    # -- asking -------------------------------------------------------------------------------------------

    def search(self, query: str, **params: Any) -> dict[str, Any]:
        return Methods(self.live, {}).searching.search({"query": query, **params})

    def found(self, query: str, **params: Any) -> list[str]:
        """The paths of the hits whose text has all of the query's words."""
        answer = self.search(query, limit=100, **params)
        words = query.casefold().split()
        return [hit["path"] for hit in answer["results"] if all(word in hit["snippet"].casefold() for word in words)]

    def status(self) -> dict[str, Any]:
        return full_status(self.live, {}, None)

    def health(self) -> list[str]:
        return [reason["code"] for reason in self.status()["health"]["reasons"]]

    def embedded_by(self, action: Callable[[], None]) -> list[str]:
        """The texts that an action made the embedder embed."""
        before = len(self.embedder.texts)
        action()
        return self.embedder.texts[before:]


def ledger_of(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that the ledger says about the files, without what may differ between two runs."""
    queries = {
        "documents": "SELECT id, workspace, path, source, content_hash, size, date, evergreen, title, front_matter,"
        " notices, skipped FROM documents ORDER BY id",
        "passages": "SELECT document_id, ordinal, id, text, text_hash, start_line, end_line FROM passages"
        " ORDER BY document_id, ordinal",
        "chunks": "SELECT key, document_id, ordinal, first_passage, last_passage, heading, start_line, end_line"
        " FROM chunks ORDER BY document_id, ordinal",
        "vectors": "SELECT passage_id, document_id FROM vectors ORDER BY 1",
        "jobs": "SELECT key, state, reason FROM jobs ORDER BY 1",
    }
    with engine.database.read() as sql:
        tables = {name: sql.execute(query).fetchall() for name, query in queries.items()}
    tables["lance"] = [(identity,) for identity in sorted(engine.semantics.index().ids())]
    return tables
