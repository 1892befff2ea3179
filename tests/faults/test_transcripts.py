"""The daemon killed while it reads transcripts: at each boundary, and what it comes back to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memoryd.store.failpoints import POINTS
from tests.support.daemon import Daemon, Machine
from tests.support.soundness import check_sound
from tests.support.transcripts import claude_talk, jsonl
from tests.support.waiting import eventually

CONFIG = '[sessions]\nenabled = true\npaths = ["~/talks/**/*.jsonl"]\nsearch_by_default = true\n'


def say(machine: Machine, name: str, *texts: str) -> Path:
    """All at the same time: the same texts are then embedded once."""
    file = machine.folder / f"talks/{name}.jsonl"
    file.parent.mkdir(exist_ok=True)
    with file.open("a") as out:
        out.writelines(jsonl(claude_talk(text, session=name)) for text in texts)
    return file


def check_after(machine: Machine, daemon: Daemon) -> str:
    proof = check_sound(daemon)
    assert set(daemon.found("violin")) == {"growing.jsonl/3", "new.jsonl/1"}
    assert daemon.found("lighthouse") == []
    assert set(daemon.found("meadow")) == {"shrinking.jsonl/1"}
    return str(proof["root"])


def prepare(machine: Machine) -> None:
    for file in (machine.folder / "talks").glob("*.jsonl"):
        file.unlink()
    say(machine, "growing", *["A remark about the tide."] * 90)
    say(machine, "shrinking", "The meadow is green.", *["The lighthouse is dark."] * 90)
    say(machine, "going", "The lighthouse goes.")


def change_everything(machine: Machine) -> None:
    say(machine, "growing", "A violin for the tide.")
    say(machine, "new", "Another violin.")
    kept = jsonl(claude_talk("The meadow is green.", session="shrinking"))
    os.truncate(machine.folder / "talks/shrinking.jsonl", len(kept))
    (machine.folder / "talks/going.jsonl").unlink()


@pytest.mark.timeout(300)
def test_killed_at_each_boundary_it_goes_on_where_it_was(machine: Machine) -> None:
    machine.config_file.parent.mkdir(parents=True)
    machine.config_file.write_text(CONFIG)
    go = machine.folder / "go"  # it is killed once this file exists, and works as ever before
    roots = set()
    for number, point in enumerate(name for name in POINTS if name.startswith("transcript.")):
        go.unlink(missing_ok=True)
        machine.env = {"MEMORYD_FAILPOINTS": f"{point}=kill?{go}"}
        victim = machine.start()
        try:
            victim.wait_until_it_answers()
            if number:  # this is the daemon that comes back from the boundary before
                roots.add(check_after(machine, victim))
            prepare(machine)
            victim.settle()
            go.touch()
            change_everything(machine)
            eventually(lambda victim=victim: victim.process.poll() is not None, what=f"{point} was reached")
            assert victim.process.returncode == -9, victim.log()
        finally:
            victim.kill()
        assert f'"point": "{point}"' in victim.log()
        assert "Traceback" not in victim.log()
    machine.env = {}
    with machine.daemon() as daemon:
        roots.add(check_after(machine, daemon))
    assert len(roots) == 1  # the same files, whatever happened on the way


def test_killed_in_the_middle_of_a_long_transcript_it_does_not_begin_again(machine: Machine) -> None:
    machine.config_file.parent.mkdir(parents=True)
    machine.config_file.write_text(CONFIG)
    file = say(machine, "long", *["A remark about the tide."] * 400)
    machine.env = {"MEMORYD_FAILPOINTS": "transcript.keep.after=kill@6"}
    victim = machine.start()
    try:
        eventually(lambda: victim.process.poll() is not None, what="it was killed")
    finally:
        victim.kill()
    machine.env = {}
    with machine.daemon() as daemon:
        proof = check_sound(daemon)
        assert proof["documents"] == 10
        read = sum(event["bytes"] for event in daemon.events("job_done") if "bytes" in event)
        assert read < file.stat().st_size / 2
