"""The watchdog is fed while everything is alive, and not when any one thing is not."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memoryd.daemon.dispatch import Method
from memoryd.daemon.heartbeat import Heartbeat
from memoryd.daemon.limits import Limits
from memoryd.daemon.notify import Notifier
from memoryd.daemon.server import Server
from memoryd.daemon.watchers import Watchers
from tests.support.engine import Gate, Memory
from tests.support.waiting import eventually

PATIENCE_S = 20.0


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    memory = Memory(tmp_path, Gate())
    memory.embedder.open()  # type: ignore[attr-defined]
    with memory.running():
        yield memory


@asynccontextmanager
async def listening(path: Path, limits: Limits | None = None) -> AsyncIterator[Server]:
    async def ping(_params: object) -> str:
        return "pong"

    def ignore(*_facts: object) -> None: ...

    server = Server(
        {"ping": Method(ping)}, socket_path=path, limits=limits or Limits(), on_request=ignore, on_error=ignore
    )
    await server.start()
    try:
        yield server
    finally:
        await server.stop(1)


def heartbeat(memory: Memory, watchers: Watchers, address: str, silence_s: float = 600.0) -> Heartbeat:
    return Heartbeat(Notifier({}), memory.live.worker, watchers, address, silence_s)


def test_all_is_alive_and_then_a_watcher_is_not(memory: Memory, tmp_path: Path) -> None:
    async def check() -> None:
        watchers = Watchers()
        watchers.follow(memory.live)
        async with listening(tmp_path / "run/s") as server:
            heart = heartbeat(memory, watchers, server.address)
            assert await heart.ailment(PATIENCE_S) is None
            watchers.stop()
            assert "watcher of notes" in (await heart.ailment(PATIENCE_S) or "")

    asyncio.run(check())


def test_full_server_is_alive_and_a_closed_one_is_not(memory: Memory, tmp_path: Path) -> None:
    async def check() -> None:
        async with listening(tmp_path / "run/s", Limits(max_connections=1)) as server:
            heart = heartbeat(memory, Watchers(), server.address)
            _, writer = await asyncio.open_unix_connection(server.address)
            assert await heart.ailment(PATIENCE_S) is None
            writer.close()
            (tmp_path / "run/s").unlink()
            assert "cannot be connected to" in (await heart.ailment(PATIENCE_S) or "")

    asyncio.run(check())


def test_socket_that_nobody_accepts_on_is_told(memory: Memory, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf:
        deaf.bind(os.fspath(tmp_path / "deaf"))
        deaf.listen()
        heart = heartbeat(memory, Watchers(), str(tmp_path / "deaf"))
        assert "did not answer" in (asyncio.run(heart.ailment(0.05)) or "")


def test_lane_at_work_is_silent_only_while_it_gets_nowhere(tmp_path: Path) -> None:
    gate = Gate()
    memory = Memory(tmp_path, gate)
    with memory.running() as engine:
        memory.settle()
        assert engine.worker.silence_s() == 0.0  # idle is not silent
        memory.write("memory/a.md", "A note.\n")
        engine.look_at_disk()
        assert gate.entered.acquire(timeout=60)
        eventually(lambda: engine.worker.silence_s() > 0.05, what="the lane stands still")
        heart = heartbeat(memory, Watchers(), "/nonexistent", silence_s=0.05)
        assert "at one step" in (asyncio.run(heart.ailment(1)) or "")
        gate.open()
        memory.settle()
        assert engine.worker.silence_s() == 0.0


def test_watchdog_is_fed_until_something_dies(memory: Memory, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(os.fspath(tmp_path / "notify"))
        manager.settimeout(PATIENCE_S)

        async def check() -> None:
            async with listening(tmp_path / "run/s") as server:
                notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"})
                beating = asyncio.ensure_future(
                    Heartbeat(notifier, memory.live.worker, Watchers(), server.address).beat()
                )
                assert await asyncio.to_thread(manager.recv, 1000) == b"WATCHDOG=1"
                (tmp_path / "run/s").unlink()
                while b"not well" not in await asyncio.to_thread(manager.recv, 1000):
                    pass
                manager.settimeout(0.5)
                with pytest.raises(TimeoutError):
                    await asyncio.to_thread(manager.recv, 1000)
                beating.cancel()

        asyncio.run(check())
