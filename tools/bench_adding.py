"""What it costs to index a chunk, besides embedding it, in a memory of some size."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench_corpus import Note, Writer, write_notes
from bench_intake import bare_index
from bench_memory import LENGTH, Memory, open_engine
from bench_words import WordsEmbedder

from memoryd.daemon.engine import Engine
from memoryd.store.mirror import CELLS_THREAD

ADDED = 6  # notes, about 120 chunks
ROUNDS = 5  # times that notes are added
SMALL = 1000  # chunks: a smaller memory is calibrated again each time, which is not what is measured here


def measure_adding(memory: Memory, cache: Path) -> dict[str, Any]:
    """Some more notes, from the disk until they are found by words and meaning; then they are forgotten again.

    Besides embedding: their vectors are cheap, and what they cost is taken off. Beside it, the same notes read into
    FTS5 alone. Each several times; half of them took no longer.
    """
    rounds = [_more_notes(seed=99 + number) for number in range(ROUNDS if memory.wanted >= SMALL else 1)]
    for note in rounds[0]:  # of a run that was cut off
        (memory.notes / note.path).unlink(missing_ok=True)
    with open_engine(memory, cache) as (engine, embedder):
        while any(thread.name == CELLS_THREAD for thread in threading.enumerate()):
            time.sleep(0.1)  # its CPU would be taken for that of indexing
        try:
            added = [_add(engine, embedder, notes) for notes in rounds]
        finally:
            engine.queue.wait_until(lambda: not engine.queue.waiting_kinds())  # the cache is the vector lane's own
            engine.cache.prune(engine.generations.hashes_in_use(), unused_days=-1)  # or they are known the next time
            engine.queue.enqueue("maintain", afresh=False)  # as every hour: what was forgotten takes room until then
            engine.queue.wait_until(lambda: "maintain" not in engine.queue.waiting_kinds())
    bare = median(_index_barely(notes) / each.chunks for notes, each in zip(rounds, added, strict=True))
    cpu = median(each.cpu_s / each.chunks for each in added)
    return {
        "chunks": sum(each.chunks for each in added),
        "wall_ms": median(each.wall_s / each.chunks for each in added) * 1000,
        "cpu_ms": cpu * 1000,
        "bare_ms": bare * 1000,
        "ratio": cpu / bare,
    }


class Added(NamedTuple):
    chunks: int
    wall_s: float
    cpu_s: float


def _more_notes(seed: int) -> list[Note]:
    writer = Writer(seed)
    return [Note(f"memory/added-{number}.md", writer.note(number + 1, LENGTH).text) for number in range(ADDED)]


def _add(engine: Engine, embedder: WordsEmbedder, notes: list[Note]) -> Added:
    root, paths = engine.workspaces["notes"].root, [note.path for note in notes]
    embedder.embed_documents([note.text for note in notes])  # so that none of their words is new
    before = _count_chunks(engine)
    try:
        write_notes(notes, root)
        began, cpu = time.perf_counter(), time.process_time() - embedder.cpu_seconds
        engine.index_files("notes", paths)
        engine.queue.wait_until(engine.is_current)
        cpu = time.process_time() - embedder.cpu_seconds - cpu
        return Added(_count_chunks(engine) - before, time.perf_counter() - began, cpu)
    finally:
        for path in paths:
            (root / path).unlink(missing_ok=True)
        engine.index_files("notes", paths)
        engine.queue.wait_until(engine.is_current)


def _count_chunks(engine: Engine) -> int:
    with engine.database.read() as sql:
        (count,) = sql.execute("SELECT count(*) FROM chunks").fetchone()
    return int(count)


def _index_barely(notes: list[Note]) -> float:
    """CPU seconds, the least of several: it is over in a moment."""
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as folder:
        write_notes([Note(Path(note.path).name, note.text) for note in notes], Path(folder) / "notes")
        return min(_index_anew(Path(folder)) for _ in range(ROUNDS))


def _index_anew(folder: Path) -> float:
    for left in folder.glob("bare.db*"):
        left.unlink()
    return bare_index(folder / "notes")
