"""Ledgers of every older schema, written by the memoryd of their time, are upgraded; a newer one is left alone."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
from pathlib import Path

import pytest

from memoryd.store.schema import migrations
from tests.support.daemon import Machine
from tests.support.soundness import check_sound

DATA = Path(__file__).with_name("data")
OLDER = range(1, len(migrations()))
NOTES = {  # what they were made of
    "MEMORY.md": "# Memory\n\nThe lighthouse keeper drinks tea.\n",
    "memory/2026-10-02.md": "---\ndate: 2026-10-02\n---\n# Violin\n\nThe violin was repaired in the harbour.\n",
    "memory/people/ann.md": "---\nsupersedes: 2026-10-02.md\nscope: agent:main\n---\nThe violin was sold.\n",
    "skills/ship.md": "# How to ship\n\nRun the checks, then merge.\n",
}


def put_ledger(machine: Machine, version: int) -> Path:
    for path, text in NOTES.items():
        machine.write(path, text)
    machine.data.mkdir(parents=True, mode=0o700)
    ledger = machine.data / "ledger.db"
    with gzip.open(DATA / f"ledger_v{version}.db.gz") as packed, ledger.open("wb") as file:
        shutil.copyfileobj(packed, file)
    return ledger


def version_of(ledger: Path) -> int:
    connection = sqlite3.connect(ledger)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


@pytest.mark.parametrize("version", OLDER)
def test_ledger_of_an_older_schema_is_upgraded_and_sound(machine: Machine, version: int) -> None:
    """Whoever adds a migration adds a ledger of the schema before it: `memoryd index` of NOTES makes one."""
    ledger = put_ledger(machine, version)
    assert version_of(ledger) == version
    with machine.daemon() as daemon:
        proof = check_sound(daemon)
        assert proof["documents"] == len(NOTES)
        assert daemon.found("lighthouse") == ["MEMORY.md"]
        by_name = daemon.call("search", query="people")["results"]  # which older schemas did not index
        assert [hit["path"] for hit in by_name] == ["memory/people/ann.md"]
        assert not daemon.events("store_begun_anew")
    assert version_of(ledger) == len(migrations())


@pytest.mark.parametrize("version", OLDER)
def test_upgrade_killed_in_the_middle_is_finished_by_the_next_start(machine: Machine, version: int) -> None:
    put_ledger(machine, version)
    assert machine.run("run", MEMORYD_FAILPOINTS="ledger.migrate.after=kill").returncode == -9
    with machine.daemon() as daemon:
        assert check_sound(daemon)["documents"] == len(NOTES)


def test_newer_schema_is_refused_with_the_remedy_and_left_alone(machine: Machine) -> None:
    ledger = put_ledger(machine, len(migrations()) - 1)
    connection = sqlite3.connect(ledger)
    connection.execute("PRAGMA journal_mode = WAL")  # as memoryd leaves it
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = ledger.read_bytes()
    done = machine.run("run")
    assert done.returncode == 1
    assert "schema 999" in done.stderr
    assert "Upgrade memoryd" in done.stderr
    assert "Traceback" not in done.stderr
    assert ledger.read_bytes() == before
