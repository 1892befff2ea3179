"""What must be true of an index after whatever happened to it: asked of the daemon, and looked up behind its back."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from tests.support.daemon import Daemon, Machine, make_machine
from tests.support.waiting import eventually

TABLES = {
    "documents": "SELECT id, path, source, content_hash, size, date, evergreen, title, front_matter, notices, skipped"
    " FROM documents ORDER BY id",
    "passages": "SELECT document_id, ordinal, id, text, text_hash, start_line, end_line FROM passages ORDER BY 1, 2",
    "chunks": "SELECT key, document_id, ordinal, first_passage, last_passage, passages, heading, start_line, end_line"
    " FROM chunks ORDER BY document_id, ordinal",
    "vectors": "SELECT passage_id, document_id FROM vectors ORDER BY 1",
    "keywords": "SELECT rowid IN (SELECT id FROM chunks), count(*) FROM chunks_fts GROUP BY 1",
    # What the clock asked for while the daemon was stopping, and was never begun, is no job that is stuck.
    "jobs": "SELECT key, state, reason FROM jobs"
    " WHERE NOT (kind = 'maintain' AND state = 'queued' AND attempts = 0 AND reason IS NULL)",
}
# Every file that the data folder may hold. Whatever else there is was left behind by somebody.
LAYOUT = re.compile(
    r"lock|(ledger|embeddings)\.db(-wal|-shm)?|vectors/vectors_[^/]+\.lance/(data|_versions|_transactions|_deletions)/[^/]+"
)
OFTEN = {"MEMORYD_SCHEDULE__MAINTAIN_MINUTES": "0.01"}


def check_sound(daemon: Daemon) -> dict[str, Any]:
    """Everything is done, nothing is stuck, and the daemon proves that disk and stores agree; returns its proof."""
    daemon.settle()
    eventually(lambda: daemon.call("status")["health"] == {"state": "ok", "reasons": []}, what="all is well")
    eventually(lambda: is_empty(daemon.call("status")["queue"]), what="no job is left")  # maintenance comes and goes
    eventually(lambda: daemon.call("verify")["pending"] == 0, what="what was changed a moment ago has settled")
    proof: dict[str, Any] = daemon.call("verify")
    assert proof["in_sync"], proof
    assert proof["drift"] == []
    return proof


def is_empty(queue: dict[str, Any]) -> bool:
    return (queue["depth"], queue["parked"]) == (0, 0)


def tidy(daemon: Daemon) -> None:
    """Until maintenance, which must be scheduled ``OFTEN``, has run once more."""
    done = len(maintained(daemon))
    eventually(lambda: len(maintained(daemon)) > done + 1, what="maintenance has run")


def maintained(daemon: Daemon) -> list[dict[str, Any]]:
    return [event for event in daemon.events("job_done") if event["kind"] == "maintain"]


def contents(machine: Machine) -> dict[str, Any]:
    """The stores of a machine whose daemon has stopped, read without memoryd."""
    import lancedb

    ledger = sqlite3.connect(f"file:{machine.data / 'ledger.db'}?mode=ro", uri=True)
    # The views of the keyword indexes name them; what they say is not looked at here.
    ledger.create_function("fold", 1, str.casefold, deterministic=True)
    ledger.create_function("indexed_heading", 3, lambda heading, _path, _source: heading, deterministic=True)
    try:
        assert ledger.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found: dict[str, Any] = {name: ledger.execute(query).fetchall() for name, query in TABLES.items()}
    finally:
        ledger.close()
    vectors = lancedb.connect(machine.data / "vectors")
    (table,) = vectors.list_tables().tables
    found["lance"] = sorted(vectors.open_table(table).to_arrow()["id"].to_pylist())
    return found


def check_layout(machine: Machine) -> None:
    """Nothing lies in the data folder that has no place there. For a daemon that has stopped and was tidy."""
    import lancedb

    files = [path.relative_to(machine.data).as_posix() for path in machine.data.rglob("*") if path.is_file()]
    assert [path for path in files if not LAYOUT.fullmatch(path)] == []
    assert sorted(path.name for path in machine.runtime.rglob("*") if not path.is_dir()) == []
    database = lancedb.connect(machine.data / "vectors")
    (name,) = database.list_tables().tables
    fragments = database.open_table(name).stats()["fragment_stats"]["num_fragments"]
    held = [path for path in files if "/data/" in path]
    assert len(held) == fragments, f"{held} for {fragments} fragments: a write that was cut off left its file"


def check_like_fresh(machine: Machine, folder: Path, proof: dict[str, Any]) -> None:
    """The index of a machine whose daemon has stopped equals one made anew from the same files."""
    survived = contents(machine)
    assert survived["jobs"] == []
    assert survived["lance"] == [passage for passage, _ in survived["vectors"]]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with make_machine(folder, machine.models) as fresh:
        fresh.root.rmdir()
        shutil.copytree(machine.root, fresh.root, symlinks=True)
        fresh.data.mkdir(parents=True, mode=0o700)
        shutil.copy(machine.data / "embeddings.db", fresh.data)  # the vectors of the same texts; nothing else
        with fresh.daemon() as daemon:
            assert check_sound(daemon)["root"] == proof["root"]
        assert contents(fresh) == survived
