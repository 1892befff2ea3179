"""`memoryd ingest` and `memoryd facts` as a person runs them: interrupted, killed, edited, and resumed."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chat_server import ChatServer, run_chat_server
from tests.support.daemon import PROGRAM, Machine
from tests.support.scribe import asked_text, write_down
from tests.support.waiting import PATIENCE_S, eventually

EXAMPLES = Path(__file__).parents[2] / "examples/workspace/skills"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with run_chat_server() as server:
        server.rule = write_down
        yield server


@pytest.fixture
def machine(machine: Machine, server: ChatServer) -> Machine:
    """With the examples' skills and a language model on loopback."""
    for file in EXAMPLES.rglob("*.md"):
        machine.write(f"skills/{file.relative_to(EXAMPLES)}", file.read_text())
    machine.write("TOOLS.md", "# Tools\n\nThe torque wrench is set to 12 newton metres. It hangs beside the door.\n")
    machine.env |= {
        "MEMORYD_LLM__PROVIDER": "openai-compatible",
        "MEMORYD_LLM__MODEL": "scribe",
        "MEMORYD_LLM__BASE_URL": server.url,
    }
    return machine


def start_ingest(machine: Machine) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PROGRAM, "ingest", "--json"],
        env=machine.environment(),
        cwd=machine.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_life_of_facts(machine: Machine, server: ChatServer) -> None:
    with machine.daemon() as daemon:
        plan = machine.run("ingest", "--dry-run")
        assert plan.returncode == 0
        assert "would be asked about" in plan.stderr
        assert server.requests == []

        done = machine.run("ingest")
        assert done.returncode == 0, done.stderr
        assert "asked about" in done.stderr
        asked = len(server.requests)
        assert asked > 3

        found = machine.run("search", "--source", "facts", "torque wrench newton")
        assert "from TOOLS.md#L1-L3" in found.stdout
        assert "The torque wrench is set to 12 newton metres." in found.stdout
        hit = machine.json("search", "--source", "facts", "torque wrench newton")["results"][0]
        assert hit["origin"]["path"] == "TOOLS.md"

        listed = machine.json("facts", "list")["facts"]
        assert f"{len(listed)} facts" in machine.run("facts", "list").stderr
        wrench = next(fact for fact in listed if "torque wrench" in fact["text"])
        shown = machine.run("facts", "show", wrench["id"][:6])
        assert "hangs beside the door" in shown.stdout  # the passage
        assert "expires in 89 d" in shown.stdout

        machine.write(
            "TOOLS.md", "# Tools\n\nThe torque wrench is set to 15 newton metres. It hangs beside the door.\n"
        )
        edited = machine.json("ingest")
        assert (edited["asked"], edited["stored"], edited["superseded"]) == (1, 1, 1)
        assert "15 newton" in asked_text(server.requests[-1])
        assert len(server.requests) == asked + 1

        forgotten = machine.run("facts", "forget", wrench["id"])
        assert forgotten.returncode == 0
        assert machine.run("facts", "show", wrench["id"]).returncode == 1
        again = machine.json("ingest")
        assert (again["asked"], again["stored"]) == (0, 0)
        assert daemon.call("verify")["in_sync"]
        assert not (machine.root / "facts").exists()
        assert daemon.call("status")["ingest"]["facts"] == again["facts"]


def test_interrupted_and_killed_it_neither_loses_nor_repeats_a_call(machine: Machine, server: ChatServer) -> None:
    with machine.daemon() as daemon:
        total = machine.json("ingest", "--dry-run")["pieces"]
        server.silent.set()
        command = start_ingest(machine)
        eventually(lambda: len(server.requests) == 1, what="the first call")
        command.send_signal(signal.SIGINT)
        assert command.wait(PATIENCE_S) == 130
        command.communicate()
        eventually(lambda: daemon.call("ingest.status")["stopping"], what="the run stops")
        server.silent.clear()  # the call in hand is answered though nobody waits any more, and kept
        eventually(lambda: machine.json("ingest", "--dry-run")["answered"] == 1, what="the answer is kept")
        assert len(server.requests) == 1

    # Killed in the middle: one call may be under way, whose answer never came; all others are kept.
    victim = machine.start()
    try:
        victim.wait_until_it_answers()
        server.rule = lambda body: (server.silent.set() if len(server.requests) == 3 else None) or write_down(body)
        command = start_ingest(machine)
        eventually(lambda: len(server.requests) == 4, what="the third call of this run")
    finally:
        victim.kill()
    command.communicate(timeout=PATIENCE_S)
    assert command.returncode != 0
    server.rule = write_down
    server.silent.clear()
    texts = [asked_text(request) for request in server.requests]
    assert len(set(texts)) == 4
    with machine.daemon() as daemon:
        done = machine.json("ingest")
        assert done["complete"] is True
        assert (done["kept"], done["asked"]) == (3, total - 3)
        texts = [asked_text(request) for request in server.requests]
        assert len(set(texts)) == total
        assert len(texts) == total + 1  # the one that was under way when it was killed
        daemon.settle()
        assert daemon.call("verify")["in_sync"]
        assert machine.json("ingest")["asked"] == 0


def test_without_a_model_the_command_says_what_to_set(machine: Machine) -> None:
    for name in ("PROVIDER", "MODEL", "BASE_URL"):
        del machine.env[f"MEMORYD_LLM__{name}"]
    with machine.daemon():
        refused = machine.run("ingest")
        assert refused.returncode == 1
        assert "no language model is configured" in refused.stderr
        assert "provider" in refused.stderr
        assert json.loads(machine.run("ingest", "--json").stdout)["error"]["code"] == "language_model_missing"
        empty = machine.run("facts", "list")
        assert empty.returncode == 0
        assert "memoryd ingest" in empty.stderr


def test_on_schedule_it_runs_by_itself(machine: Machine, server: ChatServer) -> None:
    machine.env |= {"MEMORYD_INGEST__ENABLED": "true", "MEMORYD_INGEST__SCHEDULE_MINUTES": "0.01"}
    with machine.daemon() as daemon:
        eventually(lambda: daemon.found("torque wrench newton metres"), what="the fact is found")
        eventually(lambda: (daemon.call("ingest.status")["last"] or {}).get("complete"), what="a run is done")
        asked = len(server.requests)
        last = daemon.call("ingest.status")["last"]["at"]
        eventually(lambda: daemon.call("ingest.status")["last"]["at"] != last, what="another run")
        assert len(server.requests) == asked
