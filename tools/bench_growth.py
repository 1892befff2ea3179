"""How cost grows: the same questions to memories of a thousand to a million chunks.

A real daemon serves each memory (``bench_memory``) and is asked over its socket, the bare embedding of the same queries
taking turns with it. Before that the real engine, in this process, takes in some more notes and forgets them again:
what indexing costs besides embedding, in a memory of that size.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench_adding import measure_adding
from bench_corpus import Writer
from bench_daemon import PATIENCE, Daemon, Home
from bench_limits import measure_limits
from bench_memory import SCOPES, Memory, keep_memory
from bench_ratios import CJK, IN_PATHS, IN_SCOPE, IN_SOURCE, NATURAL
from bench_raw import BareQueries
from bench_spread import spread, with_rest

from memoryd.store.quarantine import folder_bytes
from memoryd.store.sqlite_file import file_bytes

SIZES = (1_000, 10_000, 100_000)
FOOTPRINT_AT = 10_000  # and of which start and memory are judged
BLOCK = 10  # queries between two turns of the bare embedding
REST_S = 0.05  # before each, where they are asked as people and agents do: one now, another later
RESTED = 60
WARM_UP = 20
KEYWORDS_ALONE = {"weights": {"vector": 0}}
MOST_TIMES = {10_000: 3, 100_000: 5, 1_000_000: 10}  # the bare embedding
MOST_KEYWORDS_MS = {100_000: 15.0}
MOST_DISK = 6.0  # times the text
MOST_SPREAD = 2.0  # p95 over p50
CACHE_ROW_BYTES = 460  # of the embedding cache, for a vector of 384 numbers in 8 bits, as measured on 10,000 chunks
IDLE_S = 25.0  # what work has left in memory is given back within 20 s
_QUIET = 0.05  # of one CPU: a daemon that takes less has nothing to do

Ask = dict[str, Any]  # a search's parameters


def measure_growth(
    sizes: Sequence[int], queries: int, cache: Path, model: Path, idle_s: float = IDLE_S
) -> dict[str, Any]:
    """By the number of chunks that was asked for. ``idle_s``: so long a daemon rests before its memory is read."""
    bare = BareQueries(model)
    try:
        return {str(size): _measure_size(keep_memory(size, cache), queries, cache, bare, idle_s) for size in sizes}
    finally:
        bare.close()


def growth_bars(growth: Mapping[str, Any]) -> dict[str, bool]:
    bars: dict[str, bool] = {}
    for name, measured in growth.items():
        size, search = int(name), measured["kinds"][NATURAL]
        where = f"in {size:,} chunks"
        if most := MOST_TIMES.get(size):
            bars[f"search p50 ≤ {most} × a bare query embedding {where}"] = search["ratio"] <= most
            tail = search["search_ms"]["p95"] / search["search_ms"]["p50"]
            bars[f"search p95 ≤ {MOST_SPREAD:g} × p50 {where}"] = tail <= MOST_SPREAD
        if limit := MOST_KEYWORDS_MS.get(size):
            for kind, times in measured["keywords_ms"].items():
                bars[f"keywords alone, {kind}: p50 ≤ {limit:g} ms {where}"] = times["p50"] <= limit
        for name, most, found in _footprint(measured) if size == FOOTPRINT_AT else ():
            bars[f"{name} {where}"] = found <= most
        bars[f"disk ≤ {MOST_DISK:g} × the text {where}"] = measured["disk"]["ratio"] <= MOST_DISK
    return bars


def _footprint(measured: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    """A bar, what it allows, and what there is."""
    yield "start → words ≤ 1.5 s", 1.5, measured["start_s"]["keyword"]
    yield "start → words and meaning ≤ 3 s", 3.0, measured["start_s"]["hybrid"]
    yield "memory, idle ≤ 250 MB", 250.0, measured["memory_mb"]["resident"]


def _measure_size(memory: Memory, queries: int, cache: Path, bare: BareQueries, idle_s: float) -> dict[str, Any]:
    facts = memory.facts
    index = measure_adding(memory, cache)
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as folder:
        daemon = Daemon(_home(memory, Path(folder)), {})
        try:
            first = daemon.wait_for_answer(lambda _: True)
            whole = daemon.wait_for_answer(lambda answer: answer["degraded"] is None)
            daemon.client.call("index")
            wait_until_quiet(daemon)
            kinds = _make_queries(queries)
            for ask in kinds[NATURAL][:WARM_UP]:
                daemon.client.call("search", {**ask, "cached": False})
            searched = {kind: measure_kind(daemon, bare, asks) for kind, asks in kinds.items()}
            rested = measure_rested(daemon, bare, _make_queries(RESTED, seed=17)[NATURAL])
            others = _make_queries(queries, seed=16)  # of those above FTS5's answers may be kept
            alone = {kind: _ask_keywords(daemon, others[kind]) for kind in (NATURAL, CJK)}
            time.sleep(idle_s)
            held = {"resident": daemon.memory_mb("VmRSS"), "own": daemon.memory_mb("RssAnon")}
            unnamed = nameless_bytes(daemon.pid, memory.data)
            limits = measure_limits(memory.data, [ask["query"] for ask in kinds[NATURAL]])
            daemon.stop()  # in good order: what was cut off is looked at for damage at the next start
        finally:
            daemon.kill()
    return {
        **{name: facts[name] for name in ("chunks", "passages", "files", "text_bytes")},
        "index": index,
        "start_s": {"keyword": first, "hybrid": whole},
        "kinds": searched,
        "rested": rested,
        "keywords_ms": alone,
        "limits": limits,
        "memory_mb": held,
        "disk": _disk(memory, unnamed, facts),
    }


# -- asking -----------------------------------------------------------------------------------------------


def measure_kind(daemon: Daemon, bare: BareQueries, asks: Sequence[Ask]) -> dict[str, Any]:
    """Whole searches over the socket, none of them known to the daemon, and the bare embedding of the same queries."""
    embedded: list[float] = []
    searched: list[float] = []
    stages: dict[str, list[float]] = {}
    cpu = 0.0
    for start in range(0, len(asks), BLOCK):
        block = asks[start : start + BLOCK]
        embedded += bare.embed_queries([ask["query"] for ask in block])
        spent = daemon.cpu_seconds()
        for ask in block:
            began = time.perf_counter()
            answer = daemon.client.call("search", {**ask, "cached": False})
            searched.append((time.perf_counter() - began) * 1000)
            if answer["degraded"]:
                raise RuntimeError(f"the search is not whole: {answer['degraded']['reason']}")
        cpu += daemon.cpu_seconds() - spent
    for took, logged in zip(searched, daemon.events("query_done")[-len(asks) :], strict=True):
        told = {name[:-3]: ms for name, ms in logged.items() if name.endswith("_ms") and name != "took_ms"}
        for stage, ms in with_rest(told, took).items():
            stages.setdefault(stage, []).append(ms)
    return {
        "queries": len(asks),
        "bare_ms": spread(embedded),
        "search_ms": spread(searched),
        "stages_ms": {stage: spread(times) for stage, times in stages.items()},
        "ratio": median(searched) / median(embedded),
        "cpu_ms": cpu * 1000 / len(asks),
    }


def measure_rested(daemon: Daemon, bare: BareQueries, asks: Sequence[Ask]) -> dict[str, Any]:
    """A search after a rest, and after one the bare embedding of the same query, with as many threads as are quickest
    then: they sleep as well."""
    embedded: list[list[float]] = []
    searched: list[float] = []
    for ask in asks:
        embedded.append(bare.embed_after(REST_S, ask["query"]))
        time.sleep(REST_S)
        began = time.perf_counter()
        daemon.client.call("search", {**ask, "cached": False})
        searched.append((time.perf_counter() - began) * 1000)
    quickest = min(zip(*embedded, strict=True), key=median)
    ratio = median(searched) / median(quickest)
    return {"rest_s": REST_S, "bare_ms": spread(quickest), "search_ms": spread(searched), "ratio": ratio}


def _ask_keywords(daemon: Daemon, asks: Sequence[Ask]) -> dict[str, float]:
    times: list[float] = []
    for ask in asks:
        began = time.perf_counter()
        daemon.client.call("search", {**ask, "settings": KEYWORDS_ALONE})
        times.append((time.perf_counter() - began) * 1000)
    return spread(times)


def _make_queries(count: int, seed: int = 15) -> dict[str, list[Ask]]:
    writer = Writer(seed)
    few = max(1, count // 4)

    def ask(write: Callable[[], str], times: int, **filters: Any) -> list[Ask]:
        # Made of words at random, most have no answer; they are answered all the same, so that no stage is spared.
        return [{"query": write(), "min_score": 0, **filters} for _ in range(times)]

    return {
        NATURAL: ask(writer.query, count),
        CJK: ask(writer.cjk_query, few),
        "one or two characters": ask(writer.short_query, few),
        IN_PATHS: ask(writer.query, few, path=["memory/2026/**"]),
        IN_SOURCE: ask(writer.query, few, source=["skills"]),
        IN_SCOPE: ask(writer.query, few, scope="user:ada"),
    }


# -- the daemon -------------------------------------------------------------------------------------------


def _home(memory: Memory, folder: Path) -> Home:
    """The memory as a daemon's own, everything else in a folder that goes."""
    home = Home(folder)
    home.workspace = memory.notes
    home.environment["MEMORYD_PATHS__DATA"] = str(memory.data)
    del home.environment["MEMORYD_WORKSPACE"]
    settings = folder / "config/memoryd/config.toml"
    settings.parent.mkdir(parents=True)
    scopes = ", ".join(map(json.dumps, SCOPES))
    settings.write_text(f'[[workspace]]\nname = "notes"\npath = {json.dumps(str(memory.notes))}\nscopes = [{scopes}]\n')
    return home


def wait_until_quiet(daemon: Daemon) -> None:
    """Until it has done what follows a start: the first light proof, for instance."""
    deadline = time.perf_counter() + PATIENCE
    while time.perf_counter() < deadline:
        spent = daemon.cpu_seconds()
        time.sleep(1.0)
        if daemon.cpu_seconds() - spent < _QUIET:
            return
    raise TimeoutError("the daemon does not come to rest")


def nameless_bytes(pid: int, folder: Path) -> int:
    """What files without a name that a process has open in a folder take on disk."""
    held: dict[int, int] = {}  # by inode: a map of a file holds it open once more
    for number in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208  a Path for each would open nothing but cost
        file = f"/proc/{pid}/fd/{number}"
        try:
            target, found = os.readlink(file), os.stat(file)  # noqa: PTH115, PTH116  it is no path
        except FileNotFoundError:  # it was closed meanwhile
            continue
        if target.startswith(f"{folder}/") and found.st_nlink == 0:
            held[found.st_ino] = found.st_blocks * 512
    return sum(held.values())


def _disk(memory: Memory, unnamed: int, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Bytes by store; of a memory without an embedding cache, what it would take."""
    cache = file_bytes(memory.data / "embeddings.db")
    estimated = cache < facts["passages"] * 100
    parts = {
        "ledger": file_bytes(memory.data / "ledger.db"),
        "vectors": folder_bytes(memory.data / "vectors"),
        "unnamed": unnamed,
        "cache": facts["passages"] * CACHE_ROW_BYTES if estimated else cache,
    }
    return {**parts, "cache_estimated": estimated, "ratio": sum(parts.values()) / facts["text_bytes"]}
