"""``memoryd bench`` on a real daemon: nothing to ask, a memory of notes, and somebody who has enough of it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.daemon import PROGRAM, Machine
from tests.support.terminal import terminal

NOTES = Path(__file__).parents[1] / "quality/workspace/memory"


def test_empty_states_say_what_to_do(machine: Machine) -> None:
    gone = machine.run("bench")
    assert gone.returncode == 3
    assert "memoryd run" in gone.stderr
    with machine.daemon() as daemon:
        daemon.settle()
        empty = machine.run("bench")
        assert empty.returncode == 1
        assert "no note is indexed" in empty.stderr
        assert "memoryd index" in empty.stderr


def test_ones_own_daemon_is_measured_on_ones_own_notes(machine: Machine, tmp_path: Path) -> None:
    for note in sorted(NOTES.glob("*.md"))[:4]:
        machine.write(f"memory/{note.name}", note.read_text())
    machine.env["MEMORYD_LOG__FORMAT"] = "json"
    with machine.daemon() as daemon:
        daemon.settle()
        told = machine.json("bench", "--count", "4")
        assert told["queries"] == 4
        assert told["degraded"] == 0
        assert {"embed", "nearest", "vector", "rank", "words, beside the others"} <= set(told["stages_ms"])
        assert min(told[name]["p50"] for name in ("search_ms", "embedding_ms", "keywords_ms", "socket_ms")) > 0
        assert told["memory"]["chunks"] > 0
        assert told["memory"]["vectors"] == told["memory"]["passages"]
        assert min(told["resident_bytes"], *told["disk_bytes"].values()) > 0

        # The same query again and again is embedded each time: it is the search that is measured, not a cache.
        asked = daemon.call("search", query="what about the boat", explain=True)
        assert asked["embedding"] == "computed"
        assert daemon.call("search", query="what about the boat", explain=True)["embedding"] == "cached"
        machine.run("bench", "--count", "2", "what about the boat")
        done = [event for event in daemon.events("query_done") if event.get("embedding")][-4:]
        assert [event["embedding"] for event in done] == ["computed"] * 4
        machine.run("bench", "--count", "1", "never asked before")
        assert daemon.call("search", query="never asked before", explain=True)["embedding"] == "computed"

        (tmp_path / "queries").write_text("the boat\n\nwinter tyres\n")
        shown = machine.run("bench", "--count", "3", "--queries", str(tmp_path / "queries"))
        assert shown.returncode == 0, shown.stderr
        for words in ("3 queries over the socket", "the bare embedding", "by words alone", "resident", "embedder"):
            assert words in shown.stdout
        missing = machine.run("bench", "--queries", str(tmp_path / "nowhere"), "--json")
        assert missing.returncode == 2
        assert json.loads(missing.stdout)["error"]["code"] == "invalid_params"

        with terminal([PROGRAM, "bench", "--count", "100000"], machine.environment(), machine.folder) as shown_live:
            shown_live.read_until("[1-9] of 100000 queries")
            shown_live.write("\x03")
            shown_live.read_until("by words alone")
            shown_live.read_until("Stopped early, after [0-9]+ of 100000 queries")
            assert shown_live.wait() == 130
