"""Killed at each boundary of ingest: the next run goes on, no call is repeated but one under way, no fact is half."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from memoryd.store.failpoints import POINTS
from tests.support.chat_server import run_chat_server
from tests.support.daemon import Machine
from tests.support.scribe import asked_text, write_down
from tests.support.waiting import PATIENCE_S

OF_INGEST = [name for name in POINTS if name.startswith(("ingest.", "facts."))]


@pytest.mark.timeout(300)  # a daemon for each boundary
def test_killed_at_each_boundary_of_ingest_the_next_run_goes_on(machine: Machine) -> None:
    go = machine.folder / "go"
    with run_chat_server() as server, ExitStack() as stack:
        server.rule = write_down
        machine.env |= {
            "MEMORYD_LLM__PROVIDER": "ollama",
            "MEMORYD_LLM__MODEL": "scribe",
            "MEMORYD_LLM__BASE_URL": server.root,
            "MEMORYD_EMBEDDER__MODEL": "/nonexistent/none.gguf",  # words are enough here
        }
        for number, point in enumerate(OF_INGEST):
            go.unlink(missing_ok=True)
            machine.write(f"skills/{number}.md", f"Lamp number {number} is lit at dusk. It stands on pier {number}.\n")
            machine.env["MEMORYD_FAILPOINTS"] = f"{point}=kill?{go}"
            victim = machine.start()
            stack.callback(victim.kill)
            victim.wait_until_it_answers()
            if point.startswith(("ingest.dismiss", "facts.remove")):
                machine.run("ingest")
                fact = victim.call("facts.list", path=f"skills/{number}.md")["facts"][0]
                go.touch()
                machine.run("facts", "forget", fact["id"])
            else:
                go.touch()
                machine.run("ingest")
            assert victim.process.wait(PATIENCE_S) == -9, (point, victim.log())
        del machine.env["MEMORYD_FAILPOINTS"]
        with machine.daemon() as daemon:
            done = machine.json("ingest")
            assert done["complete"] is True
            texts = [asked_text(request) for request in server.requests]
            assert len(set(texts)) == len(OF_INGEST)
            assert len(texts) <= len(OF_INGEST) + 1  # killed before its answer was committed: it is asked for again
            daemon.settle()
            forgotten = 3  # of four that were to be forgotten; one had not been committed
            facts = machine.json("facts", "list")["facts"]
            assert len(facts) == done["facts"] == 2 * len(OF_INGEST) - forgotten
            assert [each["store"] for each in daemon.call("verify")["drift"]] == ["vectors"]  # there is no model
            assert not list((machine.data / "facts").rglob(".*"))  # the next write took the place of what was begun
            assert machine.json("ingest")["asked"] == 0
