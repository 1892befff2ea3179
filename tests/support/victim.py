"""An engine's life as a process of its own, to be killed somewhere in it.

It comes back from whatever the victim before it left, proves that its index is the one that a fresh engine makes, and
then goes through all that wants a store written which days of ordinary use do not: damage, another day, another model.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

from memoryd.daemon.engine import Engine
from memoryd.store.failpoints import arm
from memoryd.store.vectors import LanceVectors
from tests.support.engine import Gate, Memory
from tests.support.fake_embedder import FakeEmbedder
from tests.support.old_cache import scatter
from tests.support.waiting import eventually

_DAY = 86_400.0
_PRELOADED = ["tests.support.victim", "pyarrow", "lance_namespace"]  # not lancedb: it starts a thread when imported


def come_back(folder: Path) -> str:
    """Index the notes that every life begins with; returns the root digest of what there is then."""
    memory = Memory(folder)
    shutil.rmtree(memory.root / "memory", ignore_errors=True)
    for number in range(3):
        memory.write(f"memory/{number}.md", f"# Note {number}\n\nThe lighthouse keeper of number{number}.\n")
    with memory.running() as engine:
        memory.settle()
        engine.queue.enqueue("prune")
        eventually(lambda: engine.queue.depths() == {}, what="no job is left")
        verdict = engine.verifier.verify()
        assert verdict.in_sync, verdict.drift
        assert verdict.root is not None
        assert memory.health() == []
        assert [file.name for file in engine.paths.vectors_dir.iterdir()] == ["vectors_fake.lance"]
        return verdict.root


def live(folder: Path) -> None:
    """A damaged ledger, lost vectors, a cache from before its rows were packed, a day later; edits, another model, the
    one before dropped, the rest tidied up.

    And then vectors of 8 bits.
    """
    memory = Memory(folder)
    ledger = memory.data / "ledger.db"
    if ledger.exists():  # else it was moved away, and not begun anew yet
        ledger.write_bytes(b"not a ledger" + ledger.read_bytes()[12:])
    shutil.rmtree(memory.data / "vectors", ignore_errors=True)
    scatter(memory.data / "embeddings.db")
    memory.clock = lambda: time.time() + _DAY
    with memory.running() as engine:
        memory.settle()
        memory.write("memory/0.md", "A violin.\n")
        (memory.root / "memory/1.md").unlink(missing_ok=True)
        memory.look()
        memory.switch(FakeEmbedder(fingerprint="other", dimension=64))
        memory.settle()
        eventually(lambda: engine.semantics.now().fingerprint == "other", what="the other model is searched")
        for kind in ("prune", "maintain"):
            engine.queue.enqueue(kind)
        engine.retry_failures()
        eventually(lambda: _is_done(engine), what="no job is left")
        index = engine.semantics.index()
        assert isinstance(index, LanceVectors)
        index.rewrite()  # the lane that does it otherwise has nothing to do
    memory.configure(embedder=replace(memory.config.embedder, precision="float32"))
    with memory.running() as engine:
        memory.settle()
        eventually(
            lambda: _is_done(engine) and not engine.semantics.lineup.convertible(), what="vectors are kept in 32 bits"
        )
    _stop_while_it_embeds(folder)


def _is_done(engine: Engine) -> bool:
    """Whether no job is left; what failed is asked for again, rather than waited for."""
    for failure in engine.queue.failures():
        engine.queue.enqueue(failure.kind, failure.workspace, failure.path)
    return engine.queue.depths() == {}


def _stop_while_it_embeds(folder: Path) -> None:
    """The jobs in hand go back to the queue."""
    gate = Gate()
    memory = Memory(folder, gate)
    memory.write("memory/long.md", "\n\n".join(f"Paragraph {number} of many. " + "On. " * 90 for number in range(9)))
    with memory.running() as engine:
        while True:  # the short notes may come before the long one, and by themselves: of these none is left to go back
            assert gate.entered.acquire(timeout=60)
            if _is_in_hand(engine, "memory/long.md"):
                break
            gate.passes.release()
        threading.Thread(target=lambda: engine.queue.wait_until(engine.worker.stopping) and gate.open()).start()


def _is_in_hand(engine: Engine, path: str) -> bool:
    with engine.database.read() as sql:
        running = sql.execute("SELECT path FROM jobs WHERE kind = 'embed' AND state = 'running'").fetchall()
    return (path,) in running


def live_until_killed(folder: Path, points: str, root: str) -> int | None:
    """Run a victim with these points armed; returns how it ended. Forked off a process that has it all imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    victim = context.Process(target=_live, args=(folder, points, root))
    victim.start()
    victim.join(100)
    return victim.exitcode


def _live(folder: Path, points: str, root: str) -> None:
    log = os.open(folder / "log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    found = come_back(folder)
    assert found == root, f"{found} is not the root of a fresh index"
    arm(points)
    live(folder)
