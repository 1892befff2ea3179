"""Transcripts under a real engine: SQLite, LanceDB and inotify, an embedder that counts."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.config import Sessions
from memoryd.daemon.engine import Engine
from memoryd.daemon.methods import Methods
from memoryd.daemon.watchers import Watchers
from memoryd.jobs.index_transcript import index_transcript
from memoryd.store.errors import NotFound
from memoryd.store.queue import MOST_CRASHES
from tests.support.engine import Memory
from tests.support.transcripts import (
    claude_talk,
    claude_tool,
    codex_message,
    codex_meta,
    jsonl,
    openclaw_header,
    openclaw_message,
)
from tests.support.waiting import eventually

TALK = "projects/-home-ana-boat/talk.jsonl"


class Talks(Memory):
    """A memory with one note, and a folder of transcripts beside it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.talks = folder / ".claude"
        (self.talks / "projects").mkdir(parents=True)
        self.write("MEMORY.md", "The note about the harbour.\n")
        self.configure(sessions=Sessions(enabled=True, paths=(f"{self.talks}/projects/**/*.jsonl",)))

    def say(self, path: str, text: str) -> Path:
        """Append to a transcript."""
        file = self.talks / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as out:
            out.write(text)
        return file

    def heard(self, query: str, **params: Any) -> list[str]:
        return self.found(query, source=["sessions"], **params)

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        return Methods(self.live, {}).documents.get({"path": path, **params})

    def read_now(self, path: str) -> Any:
        """Index a transcript on this thread; what was read of it."""
        (workspace,) = (each for each in self.live.workspaces.values() if each.transcripts)
        read = index_transcript(workspace, path, self.live.transcripts, self.live.index_settings, self.live.clock)
        self.live.queue.notify()
        return read

    def proven(self) -> str:
        verdict = self.live.verifier.verify()
        assert verdict.drift == (), verdict.drift
        assert verdict.root is not None
        return verdict.root

    def check_like_fresh(self) -> None:
        """What is indexed is in sync, and what an index made anew of the same files has."""
        mine = self.proven()
        fresh = Memory(self.data.parent / "fresh")
        shutil.rmtree(fresh.root)
        fresh.root = self.root_folder()
        fresh.config = replace(self.config, paths=fresh.config.paths)
        with fresh.running() as engine:
            fresh.settle()
            verdict = engine.verifier.verify()
        assert verdict.drift == ()
        assert verdict.root == mine
        shutil.rmtree(fresh.data)

    def root_folder(self) -> Path:
        return Path(self.config.workspaces[0].path)


@pytest.fixture
def talks(tmp_path: Path) -> Talks:
    (tmp_path / "fresh").mkdir()
    return Talks(tmp_path)


@contextmanager
def watched(talks: Talks) -> Iterator[Engine]:
    with talks.running() as engine:
        watchers = Watchers()
        watchers.follow(engine)
        try:
            yield engine
        finally:
            watchers.stop()


# -- found, and by whom -------------------------------------------------------------------------------------------


def test_transcripts_are_found_when_asked_for_and_not_before(talks: Talks) -> None:
    talks.say(TALK, jsonl(claude_talk("Where is the harbour key?", "Under the harbour stone.")))
    talks.write("memory/later.md", "Another harbour.\n")
    with talks.running():
        talks.settle()
        segment = f"{TALK}/1"
        assert set(talks.found("harbour")) == {"MEMORY.md", "memory/later.md"}
        assert talks.heard("harbour stone") == [segment]
        assert set(talks.found("harbour", source=["sessions", "memory"])) == {"MEMORY.md", "memory/later.md", segment}
        (hit,) = talks.search("harbour stone", source=["sessions"])["results"]
        assert (hit["source"], hit["scope"], hit["date"]) == ("sessions", "session:claude-1", "2026-11-10")
        talks.live.config = replace(talks.live.config, sessions=replace(talks.config.sessions, search_by_default=True))
        assert segment in talks.found("harbour")


def test_session_scope_sees_its_own_talk_and_no_other_scope_does(talks: Talks) -> None:
    talks.say("projects/p/a.jsonl", jsonl(claude_talk("The harbour is green.", session="a")))
    talks.say("projects/p/b.jsonl", jsonl(claude_talk("The harbour is blue.", session="b")))
    with talks.running():
        talks.settle()
        assert set(talks.found("harbour", scope="session:a")) == {"MEMORY.md", "projects/p/a.jsonl/1"}
        assert talks.found("harbour", scope="session:a", source=["sessions"]) == ["projects/p/a.jsonl/1"]
        assert talks.found("harbour", scope="user:ana") == ["MEMORY.md"]
        assert talks.found("harbour", scope="user:ana", source=["sessions"]) == []
        assert set(talks.heard("harbour")) == {"projects/p/a.jsonl/1", "projects/p/b.jsonl/1"}


def test_all_three_formats_are_told_apart_in_one_folder(talks: Talks) -> None:
    talks.say("projects/a.jsonl", jsonl(claude_talk("The mast is green.")))
    talks.say("projects/b.jsonl", jsonl([codex_meta("c1"), codex_message("user", "The mast is blue.")]))
    talks.say("projects/c.jsonl", jsonl([openclaw_header("o1"), openclaw_message("user", "The mast is red.")]))
    talks.say("projects/d.jsonl", jsonl([{"session_id": "x", "text": "The mast is nowhere."}]))
    with talks.running():
        talks.settle()
        assert set(talks.heard("mast")) == {"projects/a.jsonl/1", "projects/b.jsonl/1", "projects/c.jsonl/1"}
        origins = {hit["origin"]["session"]: hit["origin"]["format"] for hit in
                   talks.search("mast", source=["sessions"])["results"]}  # fmt: skip
        assert origins == {"claude-1": "claude-code", "c1": "codex", "o1": "openclaw"}
        (workspace,) = (each for each in talks.status()["workspaces"] if each["sessions"])
        assert workspace["sessions"] == {"files": 4, "turns": 3, "dropped_lines": 2, "unknown_lines": 1}
        (skipped,) = workspace["skipped"]
        assert skipped["path"] == "projects/d.jsonl"
        assert "not a transcript" in skipped["reason"]
        assert talks.health() == []
        talks.check_like_fresh()


def test_why_not_names_the_source_and_the_way_out(talks: Talks) -> None:
    talks.say(TALK, jsonl(claude_talk("Where is the harbour key?")))
    with talks.running() as engine:
        talks.settle()
        finding = Methods(engine, {}).searching.why_not({"query": "harbour key", "passage": f"{TALK}/1", "line": 2})
        assert finding["verdict"] == "filtered"
        assert "only when asked for" in finding["explanation"]
        assert [remedy["setting"] for remedy in finding["remedies"]] == ["source"]


def test_get_opens_the_turn_and_names_the_line_it_was_said_in(talks: Talks) -> None:
    secret = "sk-ant-" + "api03-abcdefghijklmnopqrstuvwxyz"
    talks.say(
        TALK, jsonl([*claude_talk("Where is the key?"), *claude_tool("ls"), *claude_talk(f"Use {secret} instead")])
    )
    with talks.running() as engine:
        talks.settle()
        (hit,) = talks.search("instead", source=["sessions"])["results"]
        lines = f"{hit['path']}#L{hit['best']['start_line']}-L{hit['best']['end_line']}"
        got = talks.get(lines)
        assert "Use [Anthropic key masked] instead" in got["text"]
        whole = talks.get(hit["path"])
        assert whole["text"].startswith("user (2026-11-10 09:00):\n    Where is the key?\n")
        turn = talks.get(hit["path"] + "#L5")
        assert turn["origin"] == {
            "workspace": hit["workspace"], "path": TALK, "citation": f"{TALK}#L4-L4",
            "file": str(talks.talks / TALK), "start_line": 4, "end_line": 4, "format": "claude-code",
            "session": "claude-1",
        }  # fmt: skip
        assert json.loads((talks.talks / TALK).read_text().split("\n")[3])["message"]["content"].endswith("instead")
        with pytest.raises(NotFound):
            talks.get(f"{TALK}/2")
        with engine.database.read() as sql:
            assert sql.execute("SELECT count(*) FROM passages WHERE text LIKE '%sk-ant%'").fetchone() == (0,)


# -- growing ------------------------------------------------------------------------------------------------------


def test_appended_turn_is_found_at_once(talks: Talks) -> None:
    talks.say(TALK, jsonl(claude_talk("Good morning.")))
    with watched(talks):
        talks.settle()
        talks.say(TALK, jsonl(claude_talk("The violin is repaired.", first=5)))
        eventually(lambda: talks.heard("violin") == [f"{TALK}/1"], what="the new turn is found")
        talks.say("projects/new/other.jsonl", jsonl(claude_talk("A second violin.", session="s2")))
        eventually(lambda: len(talks.heard("violin")) == 2, what="a new transcript is found")
        talks.settle()
        talks.check_like_fresh()


def test_line_without_its_end_waits(talks: Talks) -> None:
    line = jsonl(claude_talk("The violin is repaired."))
    talks.say(TALK, jsonl(claude_talk("Good morning.")) + line[:40])
    with talks.running():
        talks.settle()
        assert talks.heard("violin") == []
        talks.say(TALK, line[40:])
        talks.look()
        assert talks.heard("violin") == [f"{TALK}/1"]
        talks.check_like_fresh()


def test_one_more_line_costs_one_line(talks: Talks) -> None:
    """Whatever the file's size: counted by the reader, and by the kernel."""
    turn = claude_talk("Good morning.", "The tide is low.")
    file = talks.say(TALK, jsonl([*turn, *claude_tool("o" * 200_000)]) * 100)
    size = file.stat().st_size
    assert size > 20_000_000
    line = jsonl(claude_talk("The violin is repaired."))
    with talks.running():
        talks.settle()
        talks.say(TALK, line)
        before = _bytes_read()
        read = talks.read_now(TALK)
        read_by_the_process = _bytes_read() - before
        assert read.outcome == "indexed"
        assert read.bytes_read <= len(line) + 4096
        assert read_by_the_process < size / 20  # SQLite reads its own files too
        (found,) = talks.heard("violin")
        talks.settle()
        assert talks.read_now(TALK).outcome == "unchanged"
        assert found.startswith(f"{TALK}/")
        assert talks.proven()


def _bytes_read() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("rchar")).split()[1])


def test_growing_embeds_only_what_is_new(talks: Talks) -> None:
    talks.say(
        TALK, jsonl(claude_talk(*(f"Sentence number {number} is about tide {number}. " * 8 for number in range(30))))
    )
    with talks.running():
        talks.settle()
        talks.say(TALK, jsonl(claude_talk("The violin is repaired.", first=40)))
        texts = talks.embedded_by(talks.look)
        assert 1 <= len(texts) <= 2
        assert "violin" in texts[-1]


def test_long_transcript_becomes_many_documents_and_full_ones_are_not_written_again(talks: Talks) -> None:
    talks.say(TALK, jsonl(claude_talk(*(f"Remark {number}." for number in range(100)))))
    with talks.running() as engine:
        talks.settle()
        assert len(engine.transcripts.segments("sessions-claude", TALK)) == 3
        with engine.database.read() as sql:
            before = dict(sql.execute("SELECT path, indexed_at FROM documents").fetchall())
        talks.say(TALK, jsonl(claude_talk("One more violin.")))
        talks.look()
        with engine.database.read() as sql:
            after = dict(sql.execute("SELECT path, indexed_at FROM documents").fetchall())
        assert {path for path in after if after[path] != before.get(path)} == {f"{TALK}/3"}
        talks.check_like_fresh()


# -- no longer the same file --------------------------------------------------------------------------------------


def _rotate(file: Path) -> None:
    file.rename(file.with_suffix(".old"))
    file.write_text(jsonl(claude_talk("The new violin.", session="s2")))


def _truncate(file: Path) -> None:
    os.truncate(file, 0)
    with file.open("a") as out:
        out.write(jsonl(claude_talk("The new violin.", session="s2")))


def _rewrite(file: Path) -> None:
    """In place, and longer than before: only what stands where it was read to tells."""
    with file.open("r+") as out:
        out.write(jsonl(claude_talk("The new violin.", *["Remark."] * 150, session="s2")))


def _replace(file: Path) -> None:
    other = file.with_suffix(".tmp")
    other.write_text(jsonl(claude_talk("The new violin.", session="s2")))
    other.replace(file)


@pytest.mark.parametrize("change", [_rotate, _truncate, _rewrite, _replace])
def test_another_file_in_its_place_is_read_from_its_beginning(talks: Talks, change: Any) -> None:
    file = talks.say(TALK, jsonl(claude_talk(*(f"The old violin {number}." for number in range(90)))))
    with talks.running():
        talks.settle()
        assert len(set(talks.heard("old violin"))) == 3
        change(file)
        talks.look()
        assert talks.heard("old violin") == []
        assert talks.heard("new violin") == [f"{TALK}/1"]
        assert talks.search("new violin", source=["sessions"])["results"][0]["scope"] == "session:s2"
        talks.check_like_fresh()


def test_shortened_file_loses_what_it_lost(talks: Talks) -> None:
    talk = [jsonl([entry]) for entry in claude_talk(*(f"Remark {number} of the violin." for number in range(90)))]
    file = talks.say(TALK, "".join(talk))
    with talks.running():
        talks.settle()
        os.truncate(file, len("".join(talk[:50])))
        talks.look()
        assert talks.heard("remark 49") != []
        assert talks.heard("remark 60") == []
        talks.check_like_fresh()


def test_deleted_transcript_is_forgotten_and_its_vectors_with_it(talks: Talks) -> None:
    file = talks.say(TALK, jsonl(claude_talk(*(f"The violin {number}." for number in range(90)))))
    talks.say("projects/p/stays.jsonl", jsonl(claude_talk("The violin stays.", session="s2")))
    with watched(talks) as engine:
        talks.settle()
        file.unlink()
        eventually(lambda: talks.heard("violin") == ["projects/p/stays.jsonl/1"], what="it is forgotten")
        talks.settle()
        assert engine.transcripts.find("sessions-claude", TALK) is None
        talks.check_like_fresh()


def test_folder_that_is_away_is_not_taken_for_deleted(talks: Talks) -> None:
    talks.say(TALK, jsonl(claude_talk("The violin.")))
    with talks.running():
        talks.settle()
        talks.talks.rename(talks.talks.with_name("away"))
        talks.live.look_at_disk()
        eventually(lambda: "reconcile_failing" in talks.health(), what="it is told that the folder is away")
        assert talks.heard("violin") == [f"{TALK}/1"]
        talks.talks.with_name("away").rename(talks.talks)
        talks.live.retry_failures()
        talks.look()
        eventually(lambda: talks.health() == [], what="all is well again")


def test_folder_that_never_was_is_no_fault_and_is_noticed_when_it_comes(talks: Talks, tmp_path: Path) -> None:
    paths = (*talks.config.sessions.paths, f"{tmp_path}/.codex/sessions/**/*.jsonl")
    talks.configure(sessions=replace(talks.config.sessions, paths=paths))
    with watched(talks) as engine:
        talks.settle()
        assert talks.health() == []
        assert "sessions-codex" in engine.workspaces
        file = tmp_path / ".codex/sessions/2026/11/10/rollout.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text(jsonl([codex_meta(), codex_message("user", "The violin.")]))
        eventually(lambda: talks.heard("violin") == ["sessions/2026/11/10/rollout.jsonl/1"], what="it is found")


# -- restarts, settings, proof ------------------------------------------------------------------------------------


def test_restart_reads_nothing_again(talks: Talks) -> None:
    talks.say(TALK, jsonl(claude_talk("The violin.")))
    talks.index()
    talks.say(TALK, jsonl(claude_talk("Another violin.", first=3)))
    with talks.running() as engine:
        talks.settle()
        assert talks.heard("another violin") == [f"{TALK}/1"]
        assert engine.measures is not None
        talks.check_like_fresh()


def test_turned_off_nothing_is_kept(talks: Talks) -> None:
    talks.say(TALK, jsonl(claude_talk("The violin.")))
    talks.index()
    talks.configure(sessions=Sessions())
    with talks.running() as engine:
        talks.settle()
        for table in ("transcripts", "segments"):
            with engine.database.read() as sql:
                assert sql.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert engine.documents.workspaces() == ["notes"]
        answer = talks.search("violin", source=["sessions"])
        assert answer["results"] == []
        assert answer["absence"]["reason"] == "transcripts are not indexed"
        assert "sessions.enabled" in answer["absence"]["hint"]


def test_turned_on_while_it_runs(talks: Talks) -> None:
    talks.say(TALK, jsonl(claude_talk("The violin " + "and the bow " * 100)))
    enabled = talks.config
    talks.configure(sessions=Sessions())
    with talks.running() as engine:
        talks.settle()
        engine.reconfigure(enabled)
        talks.look()
        assert talks.heard("violin") == [f"{TALK}/1"]
        engine.reconfigure(replace(enabled, sessions=replace(enabled.sessions, max_turn_chars=200)))
        talks.look()
        assert "characters more]" in talks.get(f"{TALK}/1")["text"]
        engine.reconfigure(replace(enabled, sessions=Sessions()))
        talks.look()
        assert engine.documents.workspaces() == ["notes"]


DAMAGES = {
    "a segment's document is lost": "DELETE FROM documents WHERE path LIKE '%/2'",
    "a segment's text is another": "UPDATE passages SET text = 'x' || text WHERE document_id IN "
    "(SELECT id FROM documents WHERE path LIKE '%/2')",
    "a segment too many": "UPDATE documents SET content_hash = 'x' WHERE path LIKE '%/1'",
    "the transcript is lost": "DELETE FROM transcripts",
    "it was read less far": "UPDATE transcripts SET read_to = read_to - 5",
    "segments are lost": "DELETE FROM segments WHERE ordinal = 1",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_drift_is_found_and_repaired(talks: Talks, damage: str) -> None:
    talks.say(TALK, jsonl(claude_talk(*(f"The violin {number}." for number in range(90)))))
    with talks.running() as engine:
        talks.settle()
        sound = talks.proven()
        with engine.database.write() as sql:
            sql.execute(DAMAGES[damage])
        found = engine.verifier.verify()
        assert found.drift != ()
        assert found.root != sound
        engine.verifier.verify(repair=True)
        assert talks.proven() == sound


def test_change_that_nobody_noticed_is_drift(talks: Talks) -> None:
    talks.say(TALK, jsonl(claude_talk("The violin.")))
    with talks.running() as engine:
        talks.settle()
        talks.say(TALK, jsonl(claude_talk("One more violin.")))
        assert {entry.kind for entry in engine.verifier.verify().drift} == {"stale"}
        assert engine.verifier.verify(repair=True).in_sync
        assert talks.heard("one more violin") == [f"{TALK}/1"]


def test_lost_ledger_is_rebuilt_from_the_transcripts(talks: Talks) -> None:
    talks.say(TALK, jsonl(claude_talk(*(f"The violin {number}." for number in range(50)))))
    with talks.running():
        talks.settle()
        sound = talks.proven()
    (talks.data / "ledger.db").write_bytes(b"no database at all" * 1000)
    with talks.running():
        talks.settle()
        assert talks.proven() == sound


def test_transcript_that_memoryd_dies_of_is_set_aside_until_it_changes(talks: Talks) -> None:
    talks.say(TALK, jsonl(claude_talk("The violin.")))
    talks.index()
    talks.say(TALK, jsonl(claude_talk("The violin that kills.", first=3)))
    with talks.running() as engine:
        talks.settle()
        now = (f"index:sessions-claude:{TALK}", "index", "sessions-claude", TALK, "running", 0.0, 0.0, MOST_CRASHES - 1)
        with engine.database.write() as sql:  # as a process leaves it that died once more
            sql.execute(
                "INSERT INTO jobs (key, kind, workspace, path, state, run_after, enqueued_at, crashes)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                now,
            )
    with talks.running():
        talks.settle()
        (workspace,) = (each for each in talks.status()["workspaces"] if each["sessions"])
        assert [(each["path"], each["indexed"]) for each in workspace["skipped"]] == [(TALK, False)]
        assert talks.heard("violin that kills") == [f"{TALK}/1"]  # what was read before stays
        talks.say(TALK, jsonl(claude_talk("A third violin.", first=6)))
        talks.look()
        assert talks.heard("third violin") == [f"{TALK}/1"]
        (workspace,) = (each for each in talks.status()["workspaces"] if each["sessions"])
        assert workspace["skipped"] == []
        talks.check_like_fresh()


def test_file_that_is_no_transcript_is_given_up_and_costs_no_more(talks: Talks) -> None:
    talks.say(TALK, jsonl([{"text": "no talk " * 1000}]) * 700)
    talks.say("projects/late.jsonl", '{"text": "who knows"}\n')
    with talks.running():
        talks.settle()
        (workspace,) = (each for each in talks.status()["workspaces"] if each["sessions"])
        assert [each["path"] for each in workspace["skipped"]] == [TALK, "projects/late.jsonl"]
        assert talks.health() == []
        talks.say(TALK, jsonl(claude_talk("The violin.")))
        read = talks.read_now(TALK)
        assert (read.outcome, read.bytes_read <= 4096) == ("skipped", True)
        talks.say("projects/late.jsonl", jsonl(claude_talk("The late violin.")))
        talks.look()
        assert talks.heard("violin") == ["projects/late.jsonl/1"]
        talks.check_like_fresh()


def test_what_is_not_seen_is_not_named_as_pending(talks: Talks) -> None:
    with talks.running() as engine:
        talks.settle()
        talks.say(TALK, jsonl(claude_talk("The violin.")))
        with engine.reading:  # the text lane waits
            engine.index_files("sessions-claude", [TALK])
            assert talks.search("violin")["pending_count"] == 0
            assert [each["path"] for each in talks.search("violin", source=["sessions"])["pending"]] == [TALK]
