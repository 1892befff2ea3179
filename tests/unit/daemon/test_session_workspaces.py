"""Globs into workspaces."""

from __future__ import annotations

from pathlib import Path

from memoryd.daemon.config import Sessions
from memoryd.daemon.session_workspaces import roots_of, session_workspaces

CLAUDE, CODEX = "/home/ana/.claude/projects/**/*.jsonl", "/home/ana/.codex/sessions/**/*.jsonl"


def test_nothing_is_served_unless_it_is_enabled() -> None:
    assert session_workspaces(Sessions(paths=(CLAUDE,)), ()) == {}
    assert session_workspaces(Sessions(enabled=True), ()) == {}


def test_each_harness_is_a_workspace_by_its_name() -> None:
    found = session_workspaces(Sessions(enabled=True, paths=(CLAUDE, CODEX), max_turn_chars=500), {"sessions-codex"})
    assert {name: each.root for name, each in found.items()} == {
        "sessions-claude": Path("/home/ana/.claude"),
        "sessions-codex-2": Path("/home/ana/.codex"),
    }
    claude = found["sessions-claude"]
    assert claude.covers("projects/-home-ana-boat/1.jsonl")
    assert not claude.covers("history.jsonl")
    assert claude.transcripts is not None
    assert claude.transcripts.max_turn_chars == 500


def test_globs_in_one_folder_are_one_workspace() -> None:
    globs = ("/srv/talks/*.jsonl", "/srv/talks/old/**/*.jsonl", "/srv/talks/*.jsonl", "/srv/other/*.jsonl")
    assert roots_of(globs) == {
        Path("/srv/talks"): ("*.jsonl", "old/**/*.jsonl"),
        Path("/srv/other"): ("*.jsonl",),
    }


def test_segment_is_of_its_file_and_a_file_of_itself() -> None:
    (workspace,) = session_workspaces(Sessions(enabled=True, paths=(CLAUDE,)), ()).values()
    assert workspace.file_of("projects/a/1.jsonl/12") == "projects/a/1.jsonl"
    assert workspace.file_of("projects/a/1.jsonl") == "projects/a/1.jsonl"
    assert workspace.file_of("projects/a/12") == "projects/a/12"
