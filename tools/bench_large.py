"""The search in a memory of many chunks, beside the bare embedding of its queries.

The engine, SQLite and LanceDB are the real ones; only the notes' vectors are cheaper than the model's
(``bench_words``), for embedding so many would take half an hour. The index is kept in the cache folder and made anew
when the corpus, the splitting or the schema changes.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import bench_corpus
from bench_corpus import LAST_DAY, Writer, make_corpus, write_notes
from bench_spread import spread, with_rest
from bench_words import WordsEmbedder

from memoryd.daemon.app import embedder_loader
from memoryd.daemon.config import Config, Locations, Workspace
from memoryd.daemon.engine import Engine
from memoryd.daemon.logs import configure_logs
from memoryd.daemon.paths import ensure_private, find_paths
from memoryd.daemon.search_methods import search_settings
from memoryd.jobs.chunking import CHUNKER_VERSION
from memoryd.jobs.index_text import READING_VERSION
from memoryd.jobs.meaning import Choice, Models, Progress
from memoryd.store.folding import FOLD_VERSION
from memoryd.store.model import stable_id
from memoryd.store.schema import migrations
from memoryd.store.search.pipeline import search
from memoryd.store.search.request import SearchQuery

NATURAL = "natural language"  # the kind that the bar is about
SCOPES = ("user:ada = memory/garden/**", "user:bob = memory/kitchen/**")
BLOCK = 10  # queries between two turns of the bare embedding
WARM_UP = 20


def measure_large(chunks: int, queries: int, cache: Path) -> dict[str, Any]:
    """Per kind of query: the whole search, its stages, and the bare embedding of the same queries, by turns."""
    with _open_memory(chunks, cache) as (engine, built_s):
        kinds = _make_queries(queries)
        list(_ask(engine, kinds[NATURAL][:WARM_UP]))
        with engine.database.read() as sql:
            (held,) = sql.execute("SELECT count(*) FROM chunks").fetchone()
            (passages,) = sql.execute("SELECT count(*) FROM passages WHERE text_hash IS NOT NULL").fetchone()
        return {
            "chunks": held,
            "passages": passages,
            "built_s": built_s,
            "kinds": {kind: _measure(engine, asked) for kind, asked in kinds.items()},
        }


def _measure(engine: Engine, queries: Sequence[SearchQuery]) -> dict[str, Any]:
    """Wall times are those of single queries; CPU times, which another process does not stretch, are means."""
    embedded: list[float] = []
    searched: list[float] = []
    stages: dict[str, list[float]] = {}
    cpu = {"bare": 0.0, "search": 0.0}
    for start in range(0, len(queries), BLOCK):
        block = queries[start : start + BLOCK]
        began = time.process_time()
        for query in block:
            at = time.perf_counter()
            engine.semantics.serving().forgetful().embed_query(query.text)
            embedded.append((time.perf_counter() - at) * 1000)
        cpu["bare"] += time.process_time() - began
        began = time.process_time()
        for took, timings in _ask(engine, block):
            searched.append(took)
            for stage, ms in with_rest(timings, took).items():
                stages.setdefault(stage, []).append(ms)
        cpu["search"] += time.process_time() - began
    return {
        "queries": len(queries),
        "bare_ms": spread(embedded),
        "search_ms": spread(searched),
        "stages_ms": {stage: spread(times) for stage, times in stages.items()},
        "ratio": median(searched) / median(embedded),
        "cpu_ms": {name: round(seconds * 1000 / len(queries), 2) for name, seconds in cpu.items()},
        "cpu_ratio": cpu["search"] / cpu["bare"],
    }


def _ask(engine: Engine, queries: Sequence[SearchQuery]) -> Iterator[tuple[float, Mapping[str, float]]]:
    """Milliseconds of each query, whole and by stage, with the default settings."""
    settings = search_settings(engine.config.search)
    for query in queries:
        began = time.perf_counter()
        answer = search(query, settings, engine.database, engine.semantics.serving().forgetful(), lambda: [])
        took = (time.perf_counter() - began) * 1000
        if answer.degraded:
            raise RuntimeError(f"the search is not whole: {answer.degraded.reason}")
        yield took, answer.timings


def _make_queries(count: int) -> dict[str, list[SearchQuery]]:
    writer = Writer(seed=15)
    few = max(1, count // 4)

    def asked(texts: Iterator[str] | Sequence[str], **filters: Any) -> list[SearchQuery]:
        return [SearchQuery(text, LAST_DAY, **filters) for text in texts]

    return {
        NATURAL: asked(writer.query() for _ in range(count)),
        "Chinese, Japanese, Korean": asked(writer.cjk_query() for _ in range(few)),
        "one or two characters": asked(writer.short_query() for _ in range(few)),
        "in some paths": asked((writer.query() for _ in range(few)), paths=("memory/2026/**",)),
        "in one source": asked((writer.query() for _ in range(few)), sources=("skills",)),
        "in a scope": asked((writer.query() for _ in range(few)), scope="user:ada"),
    }


# -- the memory -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordsModels:
    """The configured model for queries; notes are not read by it."""

    models: Models

    @property
    def recipe(self) -> str:
        return f"words {self.models.recipe}"

    @property
    def off(self) -> str | None:
        return self.models.off

    @property
    def choice(self) -> Choice:
        return self.models.choice

    def load(self, progress: Progress) -> WordsEmbedder:
        return WordsEmbedder(self.models.load(progress))

    def former(self, recipe: str) -> Models:
        return self.models.former(recipe)


@contextmanager
def _open_memory(chunks: int, cache: Path) -> Iterator[tuple[Engine, float]]:
    """An engine on the large memory, current and idle, and the seconds that it took to get there."""
    configure_logs("warning", "auto")
    began = time.perf_counter()
    folder = _make_folder(chunks, cache)
    config = Config(
        workspaces=(Workspace(folder / "notes", "notes", scopes=SCOPES),),
        # Nothing listens, but a socket's path must not be too long.
        paths=Locations(data=str(folder / "data"), cache=str(cache), socket=os.devnull),
    )
    paths = find_paths(config, os.environ)
    engine = Engine(config, paths, WordsModels(embedder_loader(config, paths.models_dir)))
    try:
        engine.start()
        engine.queue.wait_until(engine.is_current)
        yield engine, time.perf_counter() - began
    finally:
        engine.stop(timeout=5)


def _make_folder(chunks: int, cache: Path) -> Path:
    """The folder of this very memory, with its notes. Others take much room, so there is one at a time."""
    writer = Path(bench_corpus.__file__).read_text(encoding="utf-8")
    made_of = (chunks, writer, SCOPES, CHUNKER_VERSION, READING_VERSION, FOLD_VERSION, *migrations())
    everything = cache / "bench"
    folder = everything / f"{stable_id('large', *made_of):016x}"
    if not (folder / "notes").is_dir():
        shutil.rmtree(everything, ignore_errors=True)
        ensure_private(everything)
        ensure_private(folder)
        write_notes(make_corpus(chunks, seed=15).notes, folder / "writing")
        (folder / "writing").rename(folder / "notes")  # whole or not there
    return folder
