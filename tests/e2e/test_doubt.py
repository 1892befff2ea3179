"""A question that the notes do not answer, asked of a daemon with the real model."""

from __future__ import annotations

from tests.quality.queries import WORKSPACE
from tests.support.daemon import Machine

ABSENT = "why did we choose MongoDB for sessions"


def test_hits_that_do_not_answer_are_called_doubtful_and_what_no_note_has_is_named(machine: Machine) -> None:
    for file in WORKSPACE.rglob("*.md"):
        machine.write(file.relative_to(WORKSPACE).as_posix(), file.read_text(encoding="utf-8"))
    with machine.daemon() as daemon:
        daemon.settle()
        answer = machine.json("search", ABSENT)
        assert answer["results"]
        assert answer["missing"] == ["MongoDB"]
        assert machine.json("search", "invoice")["missing"] == []

        strict = ("--set", "doubt=0.9")  # whatever the model makes of it
        doubted = machine.json("search", ABSENT, *strict)
        assert 0 < doubted["doubt"]["relevance"] < 0.9
        assert [hit["id"] for hit in doubted["results"]] == [hit["id"] for hit in answer["results"]]
        assert machine.json("search", ABSENT, "--set", "doubt=0")["doubt"] is None

        shown = machine.run("search", ABSENT, *strict).stderr
        assert "Doubtful: nothing here mentions “MongoDB”; even the best has a relevance of" in shown
        assert "Nothing here mentions “MongoDB”." in machine.run("search", ABSENT, "--set", "doubt=0").stderr
        assert "mentions" not in machine.run("search", "invoice").stderr
