"""What indexing costs besides embedding, beside what the disk, SQLite and LanceDB take for the bare work.

The engine, SQLite and LanceDB are the real ones. Vectors are drawn by the hash of a text, so that a text costs next to
nothing to embed; what it does cost is taken off.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from bench_corpus import Note, make_corpus, write_notes
from bench_spread import spread

from memoryd.daemon.config import Config, Locations, Workspace
from memoryd.daemon.engine import Engine
from memoryd.daemon.paths import ensure_private, find_paths
from memoryd.jobs.chunking import group_chunks, split_passages
from memoryd.jobs.embedders.in_process import InProcess
from memoryd.jobs.meaning import Choice, Progress
from memoryd.jobs.reconcile import reconcile
from memoryd.store.lance import connect, stored_rows, table_rows
from memoryd.store.model import EmbedderIdentity, stable_id
from memoryd.store.place import as_place
from memoryd.store.protocols import Vectors

FILES = 10_000  # small ones, that arrive at once
OWN = 20  # of so many files one has words of its own
CHUNKS = 10_000  # of the memory in which one line is changed, and whose vectors are lost
CHANGES = 20
RESCANS = 5
DIMENSION = 384
RAW = {"burst": "bare_ms", "rescan": "bare_s", "change": "bare_ms", "rebuild": "bare_rate"}  # what each is beside
BARS = {"change_ms": 50.0, "change_texts": 3, "rescan_s": 1.0, "rebuild_rate": 20_000.0}


def measure_intake(files: int = FILES, chunks: int = CHUNKS) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as folder:
        small, large = Path(folder) / "small", Path(folder) / "large"
        return {**_measure_burst(small, files), **_measure_memory(large, chunks)}


def intake_bars(intake: dict[str, Any]) -> dict[str, bool]:
    change, rescan, rebuild = intake["change"], intake["rescan"], intake["rebuild"]
    return {
        f"one line changed in {change['chunks']} chunks: < 50 ms of CPU besides embedding (p50)": change["cpu_ms"][
            "p50"
        ]
        < BARS["change_ms"],
        f"one line changed: at most {BARS['change_texts']} texts embedded": change["texts"] <= BARS["change_texts"],
        f"rescan of {rescan['files']} unchanged files < 1 s": rescan["seconds"] < BARS["rescan_s"],
        "rebuilding LanceDB from the cache ≥ 20,000 vectors/s": rebuild["rate"] >= BARS["rebuild_rate"],
    }


# -- many small files ---------------------------------------------------------------------------------------


def _measure_burst(folder: Path, files: int) -> dict[str, Any]:
    """They are moved in whole, as an unpacked archive is; then looked at again and again, unchanged."""
    _write_small(folder / "beside", files)
    bare = bare_index(folder / "beside")
    with _running(folder) as (engine, embedder):
        (folder / "beside").rename(folder / "notes/memory/many")
        began, cpu = time.perf_counter(), time.process_time() - embedder.cpu_seconds
        engine.look_at_disk()
        engine.queue.wait_until(engine.is_current)
        cpu = time.process_time() - embedder.cpu_seconds - cpu
        took = time.perf_counter() - began
        rescan = [
            _timed(lambda: reconcile(engine.workspaces["notes"], engine.documents, engine.queue))
            for _ in range(RESCANS)
        ]
        walked = [_timed(lambda: _walk(folder / "notes")) for _ in range(RESCANS)]
    return {
        "burst": {
            "files": files,
            "texts": embedder.texts,
            "seconds": took,
            "cpu_ms": cpu / files * 1000,
            "bare_ms": bare / files * 1000,
        },
        "rescan": {"files": files, "seconds": median(rescan), "bare_s": median(walked)},
    }


def _write_small(folder: Path, files: int) -> None:
    folder.mkdir(parents=True)
    for number in range(files):
        words = f"Parcel n{number}n came.\n" if number % OWN == 0 else "A parcel came.\n"
        (folder / f"{number}.md").write_text(words)


def bare_index(folder: Path) -> float:
    """CPU seconds to read the files into both of FTS5's tokenizers, in one commit, and nothing else."""
    cpu = time.process_time()
    sql = sqlite3.connect(folder.parent / "bare.db", isolation_level=None)
    sql.execute("PRAGMA journal_mode = WAL")
    sql.execute("CREATE VIRTUAL TABLE trigrams USING fts5 (text, tokenize = 'trigram')")
    sql.execute("CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'porter unicode61 remove_diacritics 2')")
    sql.execute("BEGIN")
    for file in folder.iterdir():
        row = (file.read_text(),)
        sql.execute("INSERT INTO trigrams VALUES (?)", row)
        sql.execute("INSERT INTO words VALUES (?)", row)
    sql.execute("COMMIT")
    sql.close()
    return time.process_time() - cpu


def _walk(folder: Path) -> int:
    """scandir and stat of everything below, as barely as Python can."""
    found = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            found += _walk(Path(entry.path)) if entry.is_dir(follow_symlinks=False) else bool(entry.stat())
    return found


# -- a memory of many chunks --------------------------------------------------------------------------------


def _measure_memory(folder: Path, chunks: int) -> dict[str, Any]:
    notes = make_corpus(chunks, seed=16).notes
    write_notes(notes, folder / "notes")
    with _running(folder) as (engine, embedder):
        with engine.database.read() as sql:
            (held,) = sql.execute("SELECT count(*) FROM chunks").fetchone()
        changed = notes[:: max(1, len(notes) // CHANGES)][:CHANGES]
        changes = [_change(engine, embedder, note) for note in changed]
        split = [_timed(lambda note=note: _split(note.text)) * 1000 for note in changed]
        vectors = engine.paths.vectors_dir
    fingerprint = embedder.identity.fingerprint
    portions = list(stored_rows(vectors, fingerprint, DIMENSION))
    bare = _bare_write(folder / "bare", portions)
    shutil.rmtree(vectors)
    return {
        "change": {
            "chunks": held,
            "changes": len(changes),
            "cpu_ms": spread([cpu for cpu, _ in changes]),
            "texts": max(texts for _, texts in changes),
            "bare_ms": median(split),
        },
        "rebuild": {**_rebuild(folder), "bare_rate": bare},
    }


def _change(engine: Engine, embedder: DrawnEmbedder, note: Note) -> tuple[float, int]:
    """Milliseconds of CPU besides embedding until one new line is found by words and meaning; texts embedded for it."""
    lines = note.text.splitlines(keepends=True)
    middle = len(lines) // 2
    file = engine.workspaces["notes"].root / note.path
    file.write_text(
        "".join([*lines[:middle], f"A line that is new to {note.path}.\n", *lines[middle:]]), encoding="utf-8"
    )
    texts, cpu = embedder.texts, time.process_time() - embedder.cpu_seconds
    engine.index_files("notes", [note.path])
    engine.queue.wait_until(engine.is_current)
    return (time.process_time() - embedder.cpu_seconds - cpu) * 1000, embedder.texts - texts


def _split(text: str) -> int:
    return len(group_chunks(split_passages(text), budget=400, overlap=80))


def _rebuild(folder: Path) -> dict[str, Any]:
    """From the start of an engine whose vectors are gone until the last of them is back."""
    written: list[tuple[float, float, int]] = []
    began, cpu = time.perf_counter(), time.process_time()

    def note(passages: int, computed: int) -> None:
        if computed:
            raise RuntimeError("a vector was not in the cache")
        written.append((time.perf_counter(), time.process_time(), passages))

    with _running(folder, lambda engine: setattr(engine.vectorizer, "on_written", note)):
        pass
    count, took = sum(passages for _, _, passages in written), written[-1][0] - began
    used = written[-1][1] - cpu
    return {"vectors": count, "commits": len(written), "seconds": took, "rate": count / took, "cpu_s": used}


def _bare_write(folder: Path, portions: Sequence[tuple[list[int], list[int], Vectors]]) -> float:
    """Vectors a second that LanceDB writes, given all of them at once as an Arrow table."""
    ids = [identity for portion in portions for identity in portion[0]]
    documents = [document for portion in portions for document in portion[1]]
    matrix = np.concatenate([portion[2] for portion in portions])
    began = time.perf_counter()
    connect(as_place(folder)).create_table("bare", table_rows(ids, documents, matrix, "float32"))
    return len(ids) / (time.perf_counter() - began)


# -- the engine ---------------------------------------------------------------------------------------------


class DrawnEmbedder(InProcess):
    """A vector for each text, drawn by its hash. Counts texts, and the CPU that they take."""

    batch = 64

    def __init__(self) -> None:
        self.identity = EmbedderIdentity("drawn", "drawn", DIMENSION)
        self.texts = 0
        self.cpu_seconds = 0.0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        began = time.thread_time()
        vectors = np.array([self.embed_query(text) for text in texts], np.float32)
        self.texts += len(texts)
        self.cpu_seconds += time.thread_time() - began
        return vectors

    def embed_query(self, text: str) -> Vectors:
        vector = np.random.default_rng(stable_id(text)).normal(size=DIMENSION).astype(np.float32)
        return np.asarray(vector / np.linalg.norm(vector), np.float32)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def close(self) -> None:
        """There is nothing to give back."""


class DrawnModels:
    """The one embedder, whichever is asked for."""

    off = None
    recipe = "drawn"
    choice = Choice("local", "for the benchmark")

    def __init__(self) -> None:
        self.embedder = DrawnEmbedder()

    def load(self, _progress: Progress) -> DrawnEmbedder:
        return self.embedder

    def former(self, _recipe: str) -> DrawnModels:
        return self


@contextmanager
def _running(
    folder: Path, prepare: Callable[[Engine], object] = lambda _engine: None
) -> Iterator[tuple[Engine, DrawnEmbedder]]:
    """An engine on the notes of a folder, current and idle."""
    ensure_private(folder / "data")
    (folder / "notes/memory").mkdir(parents=True, exist_ok=True)
    config = Config(
        workspaces=(Workspace(folder / "notes", "notes"),),
        # Nothing listens, but a socket's path must not be too long.
        paths=Locations(data=str(folder / "data"), cache=str(folder / "cache"), socket=os.devnull),
    )
    models = DrawnModels()
    engine = Engine(config, find_paths(config, os.environ), models)
    prepare(engine)
    try:
        engine.start()
        engine.queue.wait_until(lambda: engine.is_current() and not engine.queue.depths())
        yield engine, models.embedder
    finally:
        engine.stop(timeout=5)


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
