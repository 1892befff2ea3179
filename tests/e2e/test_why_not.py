"""Why a note is not among the hits, asked from the command line and over the socket of a daemon with the real model."""

from __future__ import annotations

import shlex

import pytest

from memoryd.store.errors import InvalidParams
from tests.support.daemon import Machine

NOTES = {
    "MEMORY.md": "# Memory\n\nThe harbour office opens at nine.\n",
    "memory/2026-11-15.md": "# Standup\n\nWe replaced the cron jobs with systemd timers.\n",
    "memory/pets.md": "# Pets\n\nThe puppy sleeps in the kitchen.\n",
    "memory/timers.md": "The kitchen timers ring at noon.\n",
    "skills/deploy/SKILL.md": "# Deploy\n\nRun the canary first, then set the timers.\n",
}


def test_lost_note_is_brought_back_by_the_command_that_is_proposed(machine: Machine) -> None:
    for path, text in NOTES.items():
        machine.write(path, text)
    assert machine.run("why-not", "timers", "memory/timers.md:1").returncode == 3
    with machine.daemon() as daemon:
        daemon.settle()
        hits = [hit["path"] for hit in machine.json("search", "systemd timers")["results"]]
        assert hits[0] == "memory/2026-11-15.md"

        found = machine.json("why-not", "systemd", "timers", "memory/2026-11-15.md#L3")
        assert (found["query"], found["verdict"], found["place"]) == ("systemd timers", "found", 1)

        last = hits.index("memory/timers.md") + 1
        lost = machine.json("why-not", "systemd timers", "memory/timers.md:1", "--limit", "1")
        assert (lost["verdict"], lost["place"]) == ("limit", last)
        (remedy,) = lost["remedies"]
        assert (remedy["setting"], remedy["value"], remedy["place"]) == ("limit", last, last)
        _, *proposed = shlex.split(remedy["command"])
        assert machine.json(*proposed)["results"][last - 1]["path"] == "memory/timers.md"

        hidden = machine.json("why-not", "timers", "memory/timers.md:1", "--source", "skills", "--set", "mmr=true")
        assert hidden["verdict"] == "filtered"
        _, *proposed = shlex.split(hidden["remedies"][0]["command"])
        assert "memory/timers.md" in [hit["path"] for hit in machine.json(*proposed)["results"]]

        socket = daemon.call("why_not", query="systemd timers", passage="memory/timers.md:1", limit=1)
        assert {**socket, "took_ms": 0} == {**lost, "took_ms": 0}
        with pytest.raises(InvalidParams, match="passage is missing"):
            daemon.call("why_not", query="systemd timers")

        human = machine.run("why-not", "systemd timers", "memory/timers.md:1", "--limit", "1")
        assert human.returncode == 0
        first, *rest = human.stdout.splitlines()
        assert first == f"limit\t{lost['explanation']}"
        assert "candidates\tpassed\t" in human.stdout
        assert rest[-1] == f"remedy\t{remedy['command']}"
        missing = machine.run("why-not", "timers", "memory/timer.md:1")
        assert (missing.returncode, missing.stdout.splitlines()[0]) == (
            0,
            "no_such_file\tThere is no memory/timer.md in workspace notes.",
        )
        assert "memory/timers.md" in missing.stdout
        assert machine.run("why-not", "timers", "memory/timers.md").returncode == 2

        explained = machine.run("search", "systemd timers", "--explain", "--source", "memory", "--limit", "1")
        assert "    = words      #1  " in explained.stdout
        assert "= filters   source memory · 4 of 5 documents" in explained.stdout
        assert "timers" not in "".join(line for line in daemon.log().splitlines() if "why_not_done" in line)
