"""What a daemon holds in memory, with the default model: ``python tools/footprint.py --chunks 10000``.

The memory is made once and kept in the cache folder, its vectors at random: embedding them would take half an hour,
and they take the same room. A real daemon is then started on it, asked, and left alone. Two numbers are given, what is
resident and what of that is the process's own; the rest is mapped from files, and the kernel may take it back.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench_corpus import make_corpus, make_queries, write_notes
from bench_daemon import Daemon, Home

from memoryd.daemon.app import embedder_loader
from memoryd.daemon.config import Config, Locations, Workspace
from memoryd.daemon.engine import Engine
from memoryd.daemon.logs import configure_logs
from memoryd.daemon.paths import find_paths
from memoryd.jobs.meaning import Models, Progress
from memoryd.store.protocols import Embedder, Vectors

BAR_MB = 250.0  # idle
IDLE_S = 60.0
SEARCHES = 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=10_000, help="size of the memory (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help=f"end with 1 if it idles at more than {BAR_MB:g} MB")
    arguments = parser.parse_args()
    cache = find_paths(Config(), os.environ).cache_dir
    kept = cache / f"footprint-{arguments.chunks}"
    if not (kept / "data").is_dir():
        make_memory(arguments.chunks, kept, cache)
    with tempfile.TemporaryDirectory(prefix="memoryd-footprint-") as folder:
        home = Home(Path(folder))
        shutil.copytree(kept / "notes", home.workspace)
        shutil.copytree(kept / "data", Path(folder) / "data")
        daemon = Daemon(home, {})
        try:
            daemon.wait_for_answer(lambda answer: "degraded" not in answer or not answer["degraded"])
            daemon.client.call("index")
            show(daemon, "started")
            for query in make_queries(SEARCHES):
                daemon.client.call("search", {"query": query})
            show(daemon, f"after {SEARCHES} searches")
            (home.workspace / "memory/heron.md").write_text("The heron stood in the reeds until dusk.\n")
            daemon.client.call("index")
            show(daemon, "after a note was saved")
            time.sleep(IDLE_S)
            idle = show(daemon, f"idle for {IDLE_S:.0f} s")
            print(f"{'peak':<24}{daemon.memory_mb('VmHWM'):>6.0f} MB")
        finally:
            daemon.kill()
    return int(arguments.check and idle > BAR_MB)


def show(daemon: Daemon, when: str) -> float:
    resident = daemon.memory_mb("VmRSS")
    print(f"{when:<24}{resident:>6.0f} MB, of its own {daemon.memory_mb('RssAnon'):.0f} MB", flush=True)
    return resident


# -- the memory -------------------------------------------------------------------------------------------


@dataclass
class Hashed:
    """The model, but for notes: their vectors are drawn, each by its text."""

    model: Embedder

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        drawn = [
            np.random.default_rng(zlib.crc32(text.encode())).normal(size=self.identity.dimension) for text in texts
        ]
        matrix = np.array(drawn, np.float32)
        return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), np.float32)


@dataclass
class HashedModels:
    models: Models

    def __getattr__(self, name: str) -> Any:
        return getattr(self.models, name)

    def load(self, progress: Progress) -> Any:
        return Hashed(self.models.load(progress))


def make_memory(chunks: int, folder: Path, cache: Path) -> None:
    """As a daemon with the default model would leave it, whole or not at all."""
    print(f"Writing and indexing {chunks} chunks, once, for some minutes …", file=sys.stderr, flush=True)
    configure_logs("warning", "auto")
    shutil.rmtree(folder, ignore_errors=True)
    write_notes(make_corpus(chunks, seed=15).notes, folder / "notes")
    config = Config(
        workspaces=(Workspace(folder / "notes", "notes"),),
        paths=Locations(data=str(folder / "filling"), cache=str(cache), socket=os.devnull),
    )
    paths = find_paths(config, os.environ)
    models: Any = HashedModels(embedder_loader(config, paths.models_dir))
    engine = Engine(config, paths, models)
    try:
        engine.start()
        engine.queue.wait_until(engine.is_current)
    finally:
        engine.stop(timeout=5)
    (folder / "filling").rename(folder / "data")


if __name__ == "__main__":
    sys.exit(main())
