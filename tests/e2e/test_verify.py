"""`memoryd verify` as people and programs meet it: with a daemon and without, on two machines, after damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.daemon import Machine, make_machine

NOTES = {
    "MEMORY.md": "# Memory\n\nThe harbour office opens at nine.\n",
    "memory/2026-11-15.md": "# Standup\n\nWe replaced the cron jobs with systemd timers.\n",
    "memory/pets.md": "# Pets\n\nThe puppy sleeps in the kitchen.\n",
    "memory/huge.md": "too large " * 200_000,
    "skills/deploy/SKILL.md": "---\ntitle: Deploy\n---\n\n# Deploy\n\nRun the canary first.\n",
}
SMALL = {"MEMORYD_INDEX__MAX_FILE_BYTES": "1000000"}


@pytest.fixture
def machines(tmp_path: Path, default_model: Path, models_dir: Path) -> Iterator[tuple[Machine, Machine]]:
    here, there = tmp_path / "here", tmp_path / "some/where/else"
    here.mkdir()
    there.mkdir(parents=True)
    with make_machine(here, models_dir) as one, make_machine(there, models_dir) as other:
        one.env, other.env = SMALL, SMALL
        yield one, other


def test_two_daemons_that_indexed_the_same_files_agree_on_the_root(machines: tuple[Machine, Machine]) -> None:
    one, other = machines
    for path, text in NOTES.items():
        one.write(path, text)
    with one.daemon() as first, other.daemon() as second:
        first.settle()
        for path, text in reversed(NOTES.items()):  # the other one sees them come one by one, and change
            other.write(path, "# Draft\n\nNot yet what it will be.\n")
            second.settle()
            other.write(path, text)
        second.settle()
        mine, theirs = one.json("verify"), other.json("verify")
        assert mine["in_sync"], mine["drift"]
        assert theirs["in_sync"], theirs["drift"]
        assert mine["root"] == theirs["root"]
        assert mine["pending"] == theirs["pending"] == 0
        assert (mine["documents"], mine["vectors"]) == (theirs["documents"], theirs["vectors"])

        other.write("memory/pets.md", "# Pets\n\nThe puppy sleeps in the garden.\n")
        second.settle()
        assert other.json("verify")["root"] != mine["root"]


def test_verify_tells_with_a_daemon_and_without_one(machines: tuple[Machine, Machine]) -> None:
    machine, _ = machines
    for path, text in NOTES.items():
        machine.write(path, text)
    with machine.daemon() as daemon:
        daemon.settle()
        clean = machine.json("verify")
        assert set(clean) >= {"in_sync", "root", "drift", "documents", "chunks", "vectors", "took_ms"}
        told = machine.run("verify")
        assert told.returncode == 0
        assert told.stderr == ""
        assert "In sync: 4 documents" in told.stdout
        assert clean["root"] in told.stdout
        assert "in sync, proven at " in machine.run("status").stdout
        proof = machine.json("status")["proof"]
        assert (proof["in_sync"], proof["root"], proof["light"], proof["drift"]) == (True, clean["root"], False, 0)

    # Without a daemon the same is seen, and what changed since is told, not indexed on the way.
    assert machine.json("verify")["root"] == clean["root"]
    machine.write("memory/pets.md", "# Pets\n\nThe kitten sleeps in the kitchen.\n")
    with closing(sqlite3.connect(machine.data / "ledger.db")) as sql, sql:
        sql.execute("UPDATE chunks SET start_line = 40 WHERE heading = 'Standup'")
    told = machine.run("verify")
    assert told.returncode == 4
    assert "stale" in told.stdout
    assert "wrong_lines" in told.stdout
    assert "memoryd verify --repair" in told.stderr
    found = machine.json("verify")
    assert {(entry["kind"], entry["path"]) for entry in found["drift"]} == {
        ("stale", "memory/pets.md"),
        ("wrong_lines", "memory/2026-11-15.md"),
    }

    # Starting indexes what changed; what nobody would have noticed is repaired.
    repaired = machine.run("verify", "--repair")
    assert repaired.returncode == 0, repaired.stderr
    assert "repaired" in repaired.stdout
    assert machine.run("verify").returncode == 0
    machine.write("memory/pets.md", NOTES["memory/pets.md"])
    assert machine.run("index").returncode == 0
    assert machine.json("verify")["root"] == clean["root"]


def test_unknown_workspace_is_wrong_usage(machines: tuple[Machine, Machine]) -> None:
    machine, _ = machines
    machine.write("MEMORY.md", "# Memory\n")
    told = machine.run("verify", "--workspace", "nowhere")
    assert told.returncode == 2
    assert "nowhere" in told.stderr
