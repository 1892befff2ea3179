"""Memories of many chunks for the benchmark, made once and kept in the cache folder.

Notes are written, read, split and stored by memoryd's own functions, in larger batches than the lanes take them: a
million chunks would take the engine hours. Vectors are cheaper than the model's (``bench_words``), but stand in the
model's place, so that a real daemon finds the memory whole and serves it. Made anew when the corpus, the splitting or
the model changes; a schema that is newer is migrated to, as any ledger. What was cut off goes on where it was.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import bench_corpus
from bench_corpus import Writer
from bench_words import WordsEmbedder, WordsModels

from memoryd.daemon.app import embedder_loader
from memoryd.daemon.config import Config, Locations, Workspace
from memoryd.daemon.configured import configured_precision
from memoryd.daemon.engine import Engine
from memoryd.daemon.paths import ensure_private, find_paths
from memoryd.daemon.preparation import prepare_ledger
from memoryd.jobs.chunking import CHUNKER_VERSION
from memoryd.jobs.index_text import READING_VERSION, IndexSettings, make_document
from memoryd.jobs.reading import read_file
from memoryd.jobs.workspace import Workspace as Notes
from memoryd.store.findings import Said
from memoryd.store.folding import FOLD_VERSION
from memoryd.store.lance import open_or_create, table_rows
from memoryd.store.model import EmbedderIdentity, stable_id
from memoryd.store.schema import migrations

SCOPES = ("user:ada = memory/garden/**", "user:bob = memory/kitchen/**")
LENGTH = 8  # a note has about 25 chunks, so that a million of them are 40,000 files
BATCH = 40  # notes in one commit; fewer of a memory that is not as large
AHEAD = 3  # batches that are written and split while one is stored
DOCUMENTS = 200  # whose vectors are written in one commit: about 16,000
CACHED_CHUNKS = 200_000  # of a larger memory the embedding cache is left out: 1.6 GB of a million chunks
LEAST_FREE = 15 * 2**30  # bytes that are left on the disk, or it is not gone on


@dataclass(frozen=True, slots=True)
class Memory:
    folder: Path
    wanted: int  # chunks

    @property
    def notes(self) -> Path:
        return self.folder / "notes"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def facts(self) -> dict[str, Any]:
        """What was made: chunks, passages, files, bytes of text."""
        made = self.folder / "made.json"
        return dict(json.loads(made.read_text())) if made.is_file() else {}

    def note(self, **facts: Any) -> None:
        beside = self.folder / "made.tmp"
        beside.write_text(json.dumps({**self.facts, **facts}, indent=2) + "\n")
        beside.replace(self.folder / "made.json")

    def config(self, cache: Path) -> Config:
        return Config(
            workspaces=(Workspace(self.notes, "notes", scopes=SCOPES),),
            # Nothing listens in this process, but a socket's path must not be too long.
            paths=Locations(data=str(self.data), cache=str(cache), socket=os.devnull),
        )


def keep_memory(chunks: int, cache: Path) -> Memory:
    """The memory of this very size, complete. Of each size there is one at a time, for they take much room."""
    models = WordsModels(embedder_loader(Config(), cache / "models"))
    embedder = models.load(lambda *_: None)
    try:
        everything = cache / "growth"
        memory = Memory(everything / f"{chunks}-{_name(chunks, embedder.identity, models.recipe)}", chunks)
        if memory.facts.get("schema", 0) > len(migrations()):
            raise RuntimeError(f"a newer memoryd has made {memory.folder}; remove it to have it made anew")
        if memory.facts.get("complete"):
            memory.note(schema=len(migrations()))
            return memory
        for other in everything.glob(f"{chunks}-*"):
            if other != memory.folder:
                shutil.rmtree(other)
        for folder in (everything, memory.folder, memory.data, memory.notes):
            ensure_private(folder)
        _make(memory, cache, models, embedder)
    finally:
        embedder.close()
    return memory


def _name(chunks: int, identity: EmbedderIdentity, recipe: str) -> str:
    writer = Path(bench_corpus.__file__).read_text(encoding="utf-8")
    versions = (CHUNKER_VERSION, READING_VERSION, FOLD_VERSION)
    return f"{stable_id(chunks, LENGTH, writer, SCOPES, *versions, identity.fingerprint, recipe):016x}"


@contextmanager
def open_engine(memory: Memory, cache: Path) -> Iterator[tuple[Engine, WordsEmbedder]]:
    """The real engine on a memory, in this process, current and idle; its notes get the cheap vectors."""
    config = memory.config(cache)
    models = WordsModels(embedder_loader(config, cache / "models"))
    engine = Engine(config, find_paths(config, os.environ), models)
    try:
        engine.start()
        engine.queue.wait_until(engine.is_current)
        yield engine, models.loaded[-1]
    finally:
        engine.stop(timeout=30)


# -- making one -------------------------------------------------------------------------------------------


def _make(memory: Memory, cache: Path, models: WordsModels, embedder: WordsEmbedder) -> None:
    """Text first, then vectors; each commit is the whole of what it says, so a later run goes on from there."""
    began, cpu = time.perf_counter(), time.process_time()
    config = memory.config(cache)
    engine = Engine(config, find_paths(config, os.environ), models)
    try:
        memory.note(schema=len(migrations()))
        prepare_ledger(engine)
        _write_notes(engine, memory)
        embedder.recall(words := cache / "growth/words.npz")
        _write_vectors(engine, memory, models, embedder)
        embedder.remember(words)
    finally:
        engine.cache.close()
        engine.database.close()
        engine.lock.release(in_good_order=True)
    took = memory.facts.get("seconds", 0.0) + time.perf_counter() - began
    spent = memory.facts.get("cpu_s", 0.0) + time.process_time() - cpu
    memory.note(complete=True, seconds=took, cpu_s=spent)


def _write_notes(engine: Engine, memory: Memory) -> None:
    """Batch by batch until there are as many chunks as are wanted; another process writes and splits the next ones."""
    workspace, settings = engine.workspaces["notes"], engine.index_settings
    notes = min(BATCH, max(1, memory.wanted // 25))
    with engine.database.write() as sql:
        sql.execute("PRAGMA cache_size = -262144")  # 256 MB: ids are hashes, and so are spread over all of an index
    with ProcessPoolExecutor(1, get_context("spawn")) as beside:
        ahead: deque[Future[list[Said]]] = deque()
        number = memory.facts.get("batches", 0)
        while (held := memory.facts.get("chunks", 0)) < memory.wanted:
            _check_room(memory)
            while len(ahead) < AHEAD:
                ahead.append(beside.submit(write_batch, number + len(ahead), notes, workspace, settings))
            said = ahead.popleft().result()
            totals = list(accumulate((len(each.document.chunks) for each in said), initial=held))[1:]
            taken = sum(total < memory.wanted for total in totals) + 1  # the last one makes it enough
            engine.documents.keep(said[:taken], engine.clock())
            number += 1
            memory.note(
                batches=number,
                chunks=totals[:taken][-1],
                files=memory.facts.get("files", 0) + len(said[:taken]),
                text_bytes=memory.facts.get("text_bytes", 0) + sum(each.document.size for each in said[:taken]),
            )
            _forget_files(memory, said[taken:])
            if number % 20 == 1:
                _say(f"{held:,} of {memory.wanted:,} chunks")
        for future in ahead:
            _forget_files(memory, future.result())


def _forget_files(memory: Memory, surplus: Sequence[Said]) -> None:
    """Of notes that were written and are not needed any more."""
    for said in surplus:
        (memory.notes / said.document.path).unlink()


def write_batch(number: int, notes: int, workspace: Notes, settings: IndexSettings) -> list[Said]:
    """Notes as files, and what the ledger is to say of them; the same each time."""
    writer = Writer(seed=15_000 + number)
    found: list[Said] = []
    for each in range(number * notes, (number + 1) * notes):
        note = writer.note(each, LENGTH)
        path = workspace.root / note.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(note.text, encoding="utf-8")
        read = read_file(path, workspace.root, settings.max_file_bytes)
        if read is None:
            raise FileNotFoundError(path)
        found.append(Said(make_document(workspace, note.path, read, settings)[0]))
    return found


def _write_vectors(engine: Engine, memory: Memory, models: WordsModels, embedder: WordsEmbedder) -> None:
    generation = engine.generations.activate(embedder.identity, engine.clock(), models.recipe)
    precision = configured_precision(engine.config)
    table, _ = open_or_create(engine.place, generation.fingerprint, generation.dimension, precision)
    with engine.database.read() as sql:
        documents = sql.execute("SELECT workspace, path FROM documents ORDER BY id").fetchall()
    done = 0
    for start in range(0, len(documents), DOCUMENTS):
        _check_room(memory)
        wanted = engine.generations.missing(generation.id, documents[start : start + DOCUMENTS])
        if not wanted:
            continue
        matrix = embedder.embed_documents([passage.text.strip() for passage in wanted])
        ids, owners = [passage.passage_id for passage in wanted], [passage.document_id for passage in wanted]
        if memory.wanted <= CACHED_CHUNKS:
            engine.cache.keep(
                generation.fingerprint, dict(zip((each.text_hash for each in wanted), matrix, strict=True))
            )
        table.add(table_rows(ids, owners, matrix, precision))
        engine.generations.mark(generation.id, zip(ids, owners, strict=True))
        done += len(wanted)
        _say(f"{done:,} vectors")
    engine.queue.drop("embed")
    engine.database.checkpoint()
    memory.note(passages=engine.generations.count(generation.id)[1])


def _check_room(memory: Memory) -> None:
    if (free := shutil.disk_usage(memory.folder).free) < LEAST_FREE:
        raise OSError(f"only {free / 2**30:.0f} GB are free: a memory of {memory.wanted:,} chunks is not gone on with")


def _say(words: str) -> None:
    print(f"  {words}", file=sys.stderr, flush=True)
