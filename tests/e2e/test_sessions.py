"""Transcripts from the command line: off by default, found when asked for, opened, and accounted for."""

from __future__ import annotations

from tests.support.daemon import Machine
from tests.support.transcripts import claude_talk, claude_tool, codex_message, codex_meta, jsonl
from tests.support.waiting import eventually

CONFIG = """
[[workspace]]
path = "~/notes"

[sessions]
enabled = true
paths = ["~/.claude/projects/**/*.jsonl", "~/.codex/sessions/**/*.jsonl", "~/.openclaw/agents/*/sessions/*.jsonl"]
"""


def test_talk_is_found_when_asked_for_and_opened(machine: Machine) -> None:
    machine.env["MEMORYD_WORKSPACE"] = ""
    machine.config_file.parent.mkdir(parents=True)
    machine.config_file.write_text(CONFIG)
    machine.write("MEMORY.md", "The varnish for the hull is in the shed.\n")
    claude = machine.folder / ".claude/projects/-home-ana-boat/4f35e220.jsonl"
    codex = machine.folder / ".codex/sessions/2026/11/10/rollout-1.jsonl"
    for file in (claude, codex):
        file.parent.mkdir(parents=True)
    claude.write_text(
        jsonl([*claude_talk("Which varnish did we choose?", "Two coats of spar varnish."), *claude_tool("o" * 500)])
        + "not a line\n"
    )
    codex.write_text(jsonl([codex_meta("019a"), codex_message("user", "export TIDE_API_KEY=" + "s3cr3ts3cr3t")]))

    def paths(*words: str) -> list[str]:
        return [hit["path"] for hit in machine.json("search", "spar varnish", *words)["results"]]

    with machine.daemon() as daemon:
        daemon.settle()
        segment = "projects/-home-ana-boat/4f35e220.jsonl/1"
        assert paths() == ["MEMORY.md"]
        assert paths("--source", "sessions")[0] == segment
        assert set(paths("--source", "sessions", "--source", "memory")) >= {"MEMORY.md", segment}
        hit = machine.json("search", "spar varnish", "--source", "sessions")["results"][0]
        assert hit["origin"]["file"] == str(claude)
        shown = machine.run("get", hit["citation"])
        assert shown.stdout.startswith("user (2026-11-10 09:00):\n    Which varnish did we choose?\n")
        assert "    Two coats of spar varnish.\n" in shown.stdout
        told = machine.run("get", "projects/-home-ana-boat/4f35e220.jsonl")
        assert told.returncode != 0
        assert f"{segment}" in told.stderr

        assert "s3cr3t" not in machine.run("get", "sessions/2026/11/10/rollout-1.jsonl/1").stdout
        for file in machine.data.glob("ledger.db*"):
            assert b"s3cr3t" not in file.read_bytes()

        status = machine.run("status").stdout
        assert "2 files · 3 turns · 3 lines of tools left out · 1 line not understood" in status
        doctor = machine.run("doctor").stdout
        assert "1 of 3 globs match nothing" in doctor

        with claude.open("a") as out:
            out.write(jsonl(claude_talk("And the anchor chain is galvanised.", first=9)))
        eventually(lambda: machine.json("search", "galvanised", "--source", "sessions")["results"], what="it is found")

        machine.config_file.write_text(CONFIG.replace("enabled = true", "enabled = true\nsearch_by_default = true"))
        assert machine.run("reload").returncode == 0
        assert segment in paths()
        machine.config_file.write_text(CONFIG.replace("enabled = true", "enabled = false"))
        assert machine.run("reload").returncode == 0
        assert paths("--source", "sessions") == []
        assert daemon.call("verify")["in_sync"]
