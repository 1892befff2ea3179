"""How soon a daemon answers, what it takes on disk and what in memory: ``python tools/footprint.py --chunks 10000``.

The memory is made once and kept in the cache folder, its vectors at random: embedding them would take half an hour,
and they take the same room. A real daemon with the default model is then started on it, asked, and left alone.
Of memory two numbers are given, what is resident and what of that is the process's own; the rest is mapped from files,
and the kernel may take it back.
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
FIRST_S, HYBRID_S = 1.5, 3.0  # bars, from the start of the process to an answer
DISK = 6.0  # times the text
LOOK_S = 0.2  # between two questions: more of them would hold up what they wait for
IDLE_S = 60.0
SEARCHES = 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=10_000, help="size of the memory (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="end with 1 if a bar is missed")
    parser.add_argument("--idle", type=float, default=IDLE_S, help="seconds to leave it alone (default: %(default)g)")
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
            met = [show_start(daemon)]
            daemon.client.call("index")
            show(daemon, "started")
            for query in make_queries(SEARCHES):
                daemon.client.call("search", {"query": query})
            show(daemon, f"after {SEARCHES} searches")
            (home.workspace / "memory/heron.md").write_text("The heron stood in the reeds until dusk.\n")
            daemon.client.call("index")
            show(daemon, "after a note was saved")
            time.sleep(arguments.idle)
            met.append(show(daemon, f"idle for {arguments.idle:g} s") <= BAR_MB)
            print(f"{'peak':<24}{daemon.memory_mb('VmHWM'):>6.0f} MB")
            met.append(show_disk(daemon, Path(folder)) <= DISK)
        finally:
            daemon.kill()
    return int(arguments.check and not all(met))


def show_start(daemon: Daemon) -> bool:
    """When it first answers, and when by meaning too; whether both are in time."""
    first, first_cpu = daemon.wait_for_answer(lambda _answer: True), daemon.cpu_seconds()
    hybrid = first
    while daemon.client.call("search", {"query": "decision about the database migration"})["degraded"]:
        time.sleep(LOOK_S)
        hybrid = time.perf_counter() - daemon.started
    print(f"{'first answer':<24}{first:>6.2f} s, {first_cpu:.2f} s of CPU")
    print(f"{'words and meaning':<24}{hybrid:>6.2f} s, {daemon.cpu_seconds():.2f} s of CPU", flush=True)
    return first <= FIRST_S and hybrid <= HYBRID_S


def show_disk(daemon: Daemon, folder: Path) -> float:
    """What there is besides the notes, as a multiple of their bytes."""
    text = sum(note.stat().st_size for note in (folder / "notes").rglob("*.md"))
    taken = {
        "ledger": _bytes(folder / "data", "ledger.db*"),
        "embedding cache": _bytes(folder / "data", "embeddings.db*"),
        "LanceDB": _bytes(folder / "data/vectors", "**/*"),
        "file without a name": _nameless_bytes(daemon.pid, folder / "data"),
    }
    print(f"{'text':<24}{text / 1e6:>6.1f} MB")
    for name, size in {**taken, "all on disk": sum(taken.values())}.items():
        print(f"{name:<24}{size / 1e6:>6.1f} MB, {size / text:.1f} × the text", flush=True)
    return sum(taken.values()) / text


def _bytes(folder: Path, pattern: str) -> int:
    return sum(file.stat().st_size for file in folder.glob(pattern) if file.is_file())


def _nameless_bytes(pid: int, folder: Path) -> int:
    """What the process holds open in the folder that has no name there any more."""
    held: dict[int, int] = {}  # by inode: a map of a file holds it open once more
    for link in Path(f"/proc/{pid}/fd").iterdir():
        target = str(link.readlink()) if link.is_symlink() else ""
        if target.startswith(f"{folder}/") and target.endswith(" (deleted)"):
            found = link.stat()
            held[found.st_ino] = found.st_blocks * 512
    return sum(held.values())


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
        engine.queue.wait_until(lambda: engine.is_current() and not engine.queue.depths())
    finally:
        engine.stop(timeout=5)
    (folder / "filling").rename(folder / "data")


if __name__ == "__main__":
    sys.exit(main())
