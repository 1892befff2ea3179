"""Many clients at once: what a crowd costs the daemon, and what re-indexing everything costs the crowd.

The crowd asks at a rate, and then as fast as it is answered, each client its own mix of searches, half of them in
lines and half with headers. Every query carries a word that occurs nowhere else, and the answer repeats the query: an
answer that went to the wrong client, or to the wrong request, cannot pass for the right one.
"""

from __future__ import annotations

import asyncio
import json
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bench_corpus import Note, Writer, make_corpus, make_queries, write_notes
from bench_daemon import Daemon
from bench_spread import spread

IDLE_CONNECTIONS = 2000
ALONE = 100  # searches of one client by itself
POLL_S = 0.2

Ask = tuple[str, dict[str, Any]]  # a query and what goes with it


@dataclass
class Heard:
    """What a crowd was answered."""

    times: list[float] = field(default_factory=list)  # milliseconds
    errors: list[str] = field(default_factory=list)
    crossed: int = 0  # another's answer
    lost: int = 0  # no answer


class Caller:
    """One client on one connection."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._number = number
        self._reader = reader
        self._writer = writer
        self._framed = number % 2 == 1
        self._asked = 0

    async def call(self, method: str, params: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
        """The request's id, and its answer."""
        self._asked += 1
        id_ = f"{self._number}-{self._asked}"
        body = json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode()
        self._writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body) if self._framed else body + b"\n")
        try:
            return id_, await self._read()
        except (OSError, asyncio.IncompleteReadError):
            return id_, None

    async def search(self, ask: Ask, heard: Heard) -> None:
        text, rest = ask
        query = f"{text} token{self._number}x{self._asked}"
        began = time.perf_counter()
        id_, answer = await self.call("search", {"query": query, **rest})
        took_ms = (time.perf_counter() - began) * 1000
        if answer is None:
            heard.lost += 1
        elif "error" in answer:
            heard.errors.append(answer["error"]["data"]["code"])
        elif answer["id"] != id_ or answer["result"]["query"] != query:
            heard.crossed += 1
        else:
            heard.times.append(took_ms)

    def close(self) -> None:
        self._writer.close()

    async def _read(self) -> dict[str, Any] | None:
        if not self._framed:
            line = await self._reader.readline()
            return json.loads(line) if line else None
        header = await self._reader.readuntil(b"\r\n\r\n")
        return json.loads(await self._reader.readexactly(int(header.split(b":")[1])))


async def gather_crowd(socket: Path, connections: int) -> list[Caller]:
    """Callers that have been answered once: a connection that the kernel only queued does not count."""
    crowd = []
    for number in range(connections):
        crowd.append(Caller(number, *await asyncio.open_unix_connection(socket, limit=16 << 20)))
        _, answer = await crowd[-1].call("ping", {})
        if answer is None or "result" not in answer:
            raise ConnectionError(f"connection {number} is not served: {answer}")
    return crowd


async def ask_while(going: Callable[[], bool], crowd: list[Caller], rate: float | None) -> Heard:
    """Each caller asks as soon as it is answered; or, at a rate (for all together), when its time has come."""
    heard = Heard()
    asks = make_asks(1000)
    began = time.perf_counter()

    async def ask(caller: Caller, number: int) -> None:
        for turn, each in enumerate(islice(cycle(asks), number * 7, None)):
            if rate is not None:
                due = began + (turn * len(crowd) + number) / rate
                while going() and (wait := due - time.perf_counter()) > 0:
                    await asyncio.sleep(min(wait, POLL_S))
            if not going():
                return
            await caller.search(each, heard)

    await asyncio.gather(*(ask(caller, number) for number, caller in enumerate(crowd)))
    return heard


def make_asks(count: int) -> list[Ask]:
    """A mix: whole questions, few words, Chinese, filters, explanations, fences."""
    writer = Writer(seed=21)
    texts = [(query, writer.short_query(), writer.cjk_query()) for query in make_queries(count // 6, seed=20)]
    return [
        ask
        for natural, short, cjk in texts
        for ask in (
            (natural, {}),
            (short, {"limit": 3}),
            (cjk, {}),
            (natural, {"path": "memory/**", "fence": True}),
            (short, {"explain": True}),
            (natural, {"min_score": 0.3, "limit": 20}),
        )
    ]


def measure_load(daemon: Daemon, chunks: int, connections: int, seconds: float, rate: float) -> dict[str, Any]:
    """One client alone; then a crowd, at a rate and as fast as it goes, each with nothing to index and while the
    whole memory is written anew, read and embedded again."""
    return asyncio.run(_measure_load(daemon, chunks, connections, seconds, rate))


async def _measure_load(daemon: Daemon, chunks: int, connections: int, seconds: float, rate: float) -> dict[str, Any]:
    crowd = await gather_crowd(daemon.home.socket, connections)
    alone = Heard()
    for ask in make_asks(ALONE):
        await crowd[0].search(ask, alone)
    result: dict[str, Any] = {"connections": connections, "rate": rate, "alone_ms": spread(alone.times)}
    for seed, (pace, at) in enumerate((("paced", rate), ("flat_out", None)), start=1000):
        ends = time.perf_counter() + seconds
        idle = await ask_while(lambda ends=ends: time.perf_counter() < ends, crowd, at)
        rewrite_memory(daemon.home.workspace, chunks, seed)
        busy, whole = await _ask_while_indexing(crowd, daemon, seconds, at)
        await asyncio.to_thread(daemon.client.call, "index")
        result[pace] = {
            "idle": _tell(idle),
            "indexing": {**_tell(busy), "outlasted": not whole},
            "ratio": spread(busy.times)["p95"] / spread(idle.times)["p95"],
        }
    for caller in crowd:
        caller.close()
    return result


def rewrite_memory(workspace: Path, chunks: int, seed: int) -> None:
    """Other notes under the same names: every one is read and embedded again, nothing comes from the cache."""
    names = sorted(path.relative_to(workspace).as_posix() for path in workspace.rglob("*.md"))
    notes = make_corpus(chunks, seed=seed).notes
    write_notes([Note(name, note.text) for name, note in zip(names, notes, strict=False)], workspace)


async def _ask_while_indexing(
    crowd: list[Caller], daemon: Daemon, seconds: float, rate: float | None
) -> tuple[Heard, bool]:
    """What the crowd heard until the time was up or all was indexed, and whether all was."""

    async def is_current() -> bool:
        status = await asyncio.to_thread(daemon.client.call, "status", {"brief": True})
        return bool(status["current"])

    while await is_current():  # until the first change is noticed
        await asyncio.sleep(0.01)
    ends = time.perf_counter() + seconds
    current = False

    async def watch() -> None:
        nonlocal current
        while time.perf_counter() < ends and not current:
            await asyncio.sleep(POLL_S)
            current = await is_current()

    watching = asyncio.create_task(watch())
    heard = await ask_while(lambda: time.perf_counter() < ends and not current, crowd, rate)
    await watching
    return heard, current


def _tell(heard: Heard) -> dict[str, Any]:
    return {
        "searches": len(heard.times),
        "errors": len(heard.errors),
        "kinds_of_error": sorted(set(heard.errors)),
        "crossed": heard.crossed,
        "lost": heard.lost,
        "ms": spread(heard.times),
    }


def measure_idle_connections(daemon: Daemon, connections: int = IDLE_CONNECTIONS) -> dict[str, Any]:
    """What clients cost that are connected, have asked once, and say nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, connections + 200), hard), hard))
    return asyncio.run(_measure_idle_connections(daemon, connections))


async def _measure_idle_connections(daemon: Daemon, connections: int) -> dict[str, Any]:
    before = daemon.memory_mb("VmRSS")
    crowd = await gather_crowd(daemon.home.socket, connections)
    after = daemon.memory_mb("VmRSS")
    for caller in crowd:
        caller.close()
    return {"connections": connections, "mb": after - before}
