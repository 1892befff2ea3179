"""The Python clients against the real daemon, and what a cold command costs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import fields
from datetime import date

import pytest

from memoryd.daemon.async_client import AsyncClient
from memoryd.daemon.cli import PLAIN
from memoryd.daemon.client import Client
from memoryd.daemon.client_results import Document, Event, GetOptions, SearchOptions, SearchResult, Status, read_search
from memoryd.daemon.client_wire import IDEMPOTENT
from memoryd.daemon.requests import GetRequest, SearchRequest
from memoryd.store.errors import InvalidParams, MemorydError, NotFound, NotRunning
from tests.support.daemon import PROGRAM, Machine
from tests.support.terminal import terminal


@pytest.fixture
def notes(machine: Machine) -> Machine:
    machine.write("memory/2026-11-15.md", "# Standup\n\nWe replaced the cron jobs with systemd timers.\n")
    machine.write("memory/pets.md", "# Pets\n\nThe puppy sleeps in the kitchen.\n")
    return machine


def check_answers(found: SearchResult, document: Document, status: Status, notes: Machine) -> None:
    hit = found.results[0]
    assert (hit.path, hit.start_line, hit.end_line, hit.date) == ("memory/2026-11-15.md", 1, 3, date(2026, 11, 15))
    assert 0 < hit.score <= 1
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["systemd", "timers"]
    assert hit.best == (1, 3)
    assert not hit.superseded
    assert hit.raw["citation"] == hit.citation == "memory/2026-11-15.md#L1-L3"
    assert (found.absence, found.degraded, found.pending, found.pending_count) == (None, None, (), 0)
    assert found.raw["took_ms"] == found.took_ms > 0
    assert (document.text, document.lines) == ("We replaced the cron jobs with systemd timers.", 3)
    assert (status.state, status.reasons) == ("ok", ())
    assert [(each.root, each.indexed, each.failed) for each in status.workspaces] == [(str(notes.root), 2, 0)]
    assert status.raw["stores"]


def test_both_clients_answer_in_types_and_live_through_a_restart(notes: Machine) -> None:
    async def ask(client: AsyncClient) -> None:
        found, document, status = await asyncio.gather(
            client.search("systemd timers", limit=1, after=date(2026, 1, 1)),
            client.get("memory/2026-11-15.md", from_line=3, to_line=3),
            client.status(),
        )
        check_answers(found, document, status, notes)
        with pytest.raises(NotFound):
            await client.get("memory/none.md")

    async def follow() -> None:
        async with AsyncClient(notes.socket) as asynchronous:
            with Client(notes.socket) as client:
                for _ in range(2):
                    with notes.daemon() as daemon:
                        daemon.settle()
                        assert set(client.call("initialize")["methods"]) > IDEMPOTENT
                        await ask(asynchronous)
                        check_answers(
                            client.search("systemd timers", limit=1, after=date(2026, 1, 1)),
                            client.get("memory/2026-11-15.md#L3-L3"),
                            client.status(),
                            notes,
                        )
                        with pytest.raises(InvalidParams, match="limit"):
                            client.search("x", limit=0)

    asyncio.run(follow())


def test_events_are_followed_until_the_daemon_stops(notes: Machine) -> None:
    told: list[Event] = []

    async def follow() -> None:
        with notes.daemon() as daemon:
            daemon.settle()
            events = AsyncClient(notes.socket).events("health", "document")
            first = await anext(events)
            assert first.kind == "health"
            notes.write("memory/new.md", "A lighthouse.\n")
            async for event in events:
                if event.kind == "document" and event.raw["path"] == "memory/new.md":
                    break
            await events.aclose()
            with Client(notes.socket) as client:
                blocking = client.events("health")
                told.append(next(blocking))
                daemon.stop()
                with pytest.raises(NotRunning):
                    told.extend(blocking)

    asyncio.run(follow())
    assert told[0].kind == "health"


def test_client_finds_the_socket_as_the_command_line_does(notes: Machine) -> None:
    script = "from memoryd.daemon.client import Client\nprint(Client().search('puppy').results[0].path)"
    with notes.daemon() as daemon:
        daemon.settle()
        done = subprocess.run(
            [sys.executable, "-c", script], env=notes.environment(), capture_output=True, text=True, check=True
        )
    assert done.stdout == "memory/pets.md\n"


def test_options_are_the_parameters_of_the_methods() -> None:
    assert set(SearchOptions.__annotations__) == {field.name for field in fields(SearchRequest)} - {"query"}
    assert set(GetOptions.__annotations__) == {field.name for field in fields(GetRequest)} - {"path"}


@pytest.mark.parametrize("raw", [{}, {"results": None}, {"query": "x", "results": [{}]}, [], None])
def test_answer_that_is_not_understood_is_one_of_our_errors(raw: object) -> None:
    with pytest.raises(MemorydError, match="cannot be understood"):
        read_search(raw)  # type: ignore[arg-type]


# -- a cold command ---------------------------------------------------------------------------------------

HEAVY = {
    "apscheduler", "asyncio", "httpx", "lancedb", "llama_cpp", "mcp", "numpy", "pyarrow", "pydantic", "regex",
    "safetensors", "sqlite3", "structlog", "tomlkit", "watchdog", "yaml",
}  # fmt: skip
BARE = [sys.executable, "-c", "pass"]
COLD = [
    ("search", "puppy"),
    ("search", "puppy", "--json"),
    ("status",),
    ("status", "--json"),
    ("get", "memory/pets.md"),
]


def cpu_ratio(
    command: list[str], other: list[str], environment: dict[str, str], limit: float, stdout: int = subprocess.DEVNULL
) -> float:
    """What a process costs beside another one. Noise only ever adds: the least of each counts, by turns, and more
    turns are taken as long as the ratio is above the limit."""

    def cpu_seconds(words: list[str], output: int) -> float:
        process = subprocess.Popen(words, env=environment, stdout=output, stderr=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        return usage.ru_utime + usage.ru_stime

    least = least_other = float("inf")
    for turn in range(40):
        least = min(least, cpu_seconds(command, stdout))
        least_other = min(least_other, cpu_seconds(other, subprocess.DEVNULL))
        if turn >= 4 and least < limit * least_other:
            break
    return least / least_other


def test_cold_search_and_status_import_nothing_heavy_and_cost_a_blink(notes: Machine) -> None:
    with notes.daemon() as daemon:
        daemon.settle()
        for words in COLD:
            done = subprocess.run(
                [sys.executable, "-X", "importtime", PROGRAM, *words],
                env=notes.environment(),
                capture_output=True,
                text=True,
                check=True,
            )
            in_order = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line]
            imported = set(in_order)
            assert "memoryd.daemon.client" in imported
            assert not {name.partition(".")[0] for name in imported} & HEAVY
            assert not {name for name in imported if name.startswith("memoryd.store.search")}
            if "--json" in words or words[0] == "get":
                assert "rich" not in imported
            if words[0] in PLAIN:  # each of them would take a tenth of what it takes
                slow = {"memoryd.daemon.config", "argparse", "dataclasses", "pathlib", "shutil", "datetime"}
                assert not imported & slow
            if words == ("search", "puppy"):  # while the daemon works
                assert in_order.index("memoryd.daemon.usual_places") < in_order.index("typing")
            elif words[0] in PLAIN:
                assert "typing" not in imported

        # 25 ms of CPU, or 35 where our own modules are compiled each time, and 150, where a bare interpreter takes 11.
        for limit, words in ((5, ["search", "puppy", "--json"]), (15, ["status"])):
            assert cpu_ratio([str(PROGRAM), *words], BARE, notes.environment(), limit) < limit


def test_cold_search_on_a_terminal_imports_no_more_than_in_a_pipe(notes: Machine) -> None:
    environment = notes.environment() | {"TERM": "xterm-256color"}
    with notes.daemon() as daemon:
        daemon.settle()
        command = [sys.executable, "-X", "importtime", str(PROGRAM), "search", "puppy"]
        with terminal(command, environment, notes.folder) as shown:
            assert shown.wait() == 0
        imported = {line.rpartition("|")[2].strip() for line in shown.shown.splitlines() if "import time:" in line}
        assert "memoryd.daemon.commands.painting" in imported
        assert "\x1b[1;36mmemory/pets.md#L1-L3\x1b[0m" in shown.raw
        assert not {name.partition(".")[0] for name in imported} & (HEAVY | {"rich"})
        others = {name for name in imported if name.startswith("memoryd.daemon.commands.")}
        assert not others & {f"memoryd.daemon.commands.{name}" for name in ("run", "status", "service", "model")}

        leader, follower = os.openpty()
        search = [str(PROGRAM), "search", "puppy"]
        try:
            for limit, other in ((15, BARE), (1.3, search)):
                assert cpu_ratio(search, other, environment, limit, follower) < limit
        finally:
            os.close(follower)
            os.close(leader)
