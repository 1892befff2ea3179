"""The daemon killed without warning, again and again: what is left is a sound index and no lost work."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

from tests.support.daemon import Daemon, Machine, make_machine
from tests.support.waiting import eventually

WORDS = ("river", "stone", "lamp", "cedar", "harbour", "violin", "copper", "meadow", "orbit", "thistle")
KILLS = 6
FILES = 24
TABLES = {
    "documents": "SELECT id, path, source, content_hash, size, date, evergreen, title, front_matter, notices, skipped"
    " FROM documents ORDER BY id",
    "passages": "SELECT document_id, ordinal, id, text, text_hash, start_line, end_line FROM passages ORDER BY 1, 2",
    "chunks": "SELECT key, document_id, ordinal, first_passage, last_passage, heading, start_line, end_line"
    " FROM chunks ORDER BY document_id, ordinal",
    "vectors": "SELECT passage_id, document_id FROM vectors ORDER BY 1",
    "keywords": "SELECT rowid IN (SELECT id FROM chunks), count(*) FROM chunks_fts GROUP BY 1",
    "jobs": "SELECT key, state, reason FROM jobs",
}


def note(random_: random.Random) -> str:
    sections = random_.randint(1, 3)
    return "\n".join(
        f"## {random_.choice(WORDS)}\n\n{' '.join(random_.choices(WORDS, k=30))} {random_.random()}.\n"
        for _ in range(sections)
    )


def contents(machine: Machine) -> dict[str, Any]:
    """The stores of a machine whose daemon has stopped."""
    import lancedb

    ledger = sqlite3.connect(f"file:{machine.data / 'ledger.db'}?mode=ro", uri=True)
    ledger.create_function("fold", 1, str.casefold, deterministic=True)  # the view of the keyword index names it
    try:
        assert ledger.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found: dict[str, Any] = {name: ledger.execute(query).fetchall() for name, query in TABLES.items()}
    finally:
        ledger.close()
    vectors = lancedb.connect(machine.data / "vectors")
    (table,) = vectors.list_tables().tables
    found["lance"] = sorted(vectors.open_table(table).to_arrow()["id"].to_pylist())
    return found


def index(machine: Machine) -> dict[str, Any]:
    with machine.daemon() as daemon:
        daemon.settle()
        eventually(lambda: daemon.call("status")["health"] == {"state": "ok", "reasons": []})
        assert daemon.call("status")["queue"]["depth"] == 0
    return contents(machine)


def wait_for_vectors(daemon: Daemon, count: float) -> None:
    eventually(lambda: daemon.call("status", brief=True)["vectors"] >= count)


def test_index_after_kills_equals_a_fresh_one(machine: Machine, tmp_path: Path, models_dir: Path) -> None:
    chance = random.Random(20261115)
    for number in range(FILES):
        machine.write(f"memory/{number}.md", note(chance))
    for _ in range(KILLS):
        daemon = machine.start()
        daemon.wait_until_it_answers()
        passages = daemon.call("status", brief=True)["passages"]
        # Work while it is at it: edits, new files, deletions and renames that the next start has to find.
        machine.write(f"memory/{chance.randrange(FILES)}.md", note(chance))
        machine.write(f"memory/new{chance.randrange(1000)}.md", note(chance))
        files = sorted((machine.root / "memory").iterdir())
        chance.choice(files).unlink()
        chance.choice(sorted((machine.root / "memory").iterdir())).rename(
            machine.root / f"memory/moved{chance.randrange(1000)}.md"
        )
        moment = chance.random()
        if moment < 0.7:  # in the middle of the vectors, at another place each time
            wait_for_vectors(daemon, passages * moment)
        daemon.kill()

    survived = index(machine)
    assert survived["jobs"] == []
    assert survived["lance"] == [passage for passage, _ in survived["vectors"]]
    assert len(survived["documents"]) == len(list((machine.root / "memory").iterdir()))

    fresh_folder = tmp_path / "fresh"
    fresh_folder.mkdir()
    with make_machine(fresh_folder, models_dir) as fresh:
        fresh.root.rmdir()
        machine.root.rename(fresh.root)
        assert index(fresh) == survived
