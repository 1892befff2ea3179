"""From an empty folder to an answered query, as a person does it: `memoryd run` and the command line."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from tests.support.daemon import Machine
from tests.support.waiting import eventually

NOTES = {
    "MEMORY.md": "# Memory\n\nThe harbour office opens at nine.\n",
    "memory/2026-11-15.md": "# Standup\n\nWe replaced the cron jobs with systemd timers.\n",
    "memory/pets.md": "# Pets\n\nThe puppy sleeps in the kitchen.\n",
    "skills/deploy/SKILL.md": "---\ntitle: Deploy\n---\n\n# Deploy\n\nRun the canary first.\n",
}


@pytest.fixture
def notes(machine: Machine) -> Machine:
    for path, text in NOTES.items():
        machine.write(path, text)
    return machine


def test_a_day_with_memoryd(notes: Machine) -> None:
    with notes.daemon() as daemon:
        daemon.settle()

        # search: by words, and by a meaning that shares no word
        answer = notes.json("search", "systemd timers")
        assert answer["query"] == "systemd timers"
        assert answer["degraded"] is None
        assert answer["pending"] == []
        assert answer["took_ms"] > 0
        best = answer["results"][0]
        assert best["path"] == "memory/2026-11-15.md"
        assert (best["start_line"], best["end_line"]) == (1, 3)
        assert best["source"] == "memory"
        assert best["heading"] == "Standup"
        assert best["date"] == "2026-11-15"
        assert "systemd timers" in best["snippet"]
        assert best["citation"] == "memory/2026-11-15.md#L1-L3"
        assert (best["best"], best["snippet_line"], best["merged"]) == ({"start_line": 1, "end_line": 3}, 1, [])
        assert [best["snippet"][start:end] for start, end in best["highlights"]] == ["systemd", "timers"]
        assert 0 < best["score"] <= 1
        assert notes.json("search", "little dog bed")["results"][0]["path"] == "memory/pets.md"

        # search: options
        assert len(notes.json("search", "the", "--limit", "1")["results"]) == 1
        scores = [hit["score"] for hit in notes.json("search", "timers", "--min-score", "0.3")["results"]]
        assert scores
        assert min(scores) >= 0.3
        sources = {hit["source"] for hit in notes.json("search", "the canary", "--source", "skills")["results"]}
        assert sources == {"skills"}
        paths = {hit["path"] for hit in notes.json("search", "the", "--path", "memory/2026-*")["results"]}
        assert paths == {"memory/2026-11-15.md"}
        explained = notes.json("search", "systemd timers", "--explain")["results"][0]["explain"]
        assert explained["legs"]["words"]["rank"] == 1
        human = notes.run("search", "systemd timers")
        assert human.returncode == 0
        assert human.stdout.startswith("memory/2026-11-15.md#L1-L3\t")

        # get
        cited = notes.run("get", "memory/2026-11-15.md:3-3")
        assert (cited.returncode, cited.stdout) == (0, "We replaced the cron jobs with systemd timers.\n")
        assert notes.run("get", "memory/2026-11-15.md#L3-L3").stdout == cited.stdout
        whole = notes.json("get", "MEMORY.md")
        assert whole["text"] == NOTES["MEMORY.md"].rstrip("\n")
        assert whole["lines"] == 3

        # status
        status = notes.json("status")
        assert status["health"] == {"state": "ok", "reasons": []}
        assert status["pid"] == daemon.process.pid
        (workspace,) = status["workspaces"]
        assert (workspace["files_on_disk"], workspace["indexed"], workspace["pending"]) == (4, 4, 0)
        assert workspace["failed"] == []
        assert workspace["vectors"] == workspace["passages"] > 0
        assert workspace["watcher"]["mode"] == "inotify"
        assert status["embedder"]["state"] == "ready"
        assert status["embedder"]["dimension"] == 384
        assert status["stores"]["vectors"]["versions"] >= 1
        assert set(status["scheduler"]) == {"maintain", "reconcile", "reread", "retry", "verify"}
        assert status["queue"]["depth"] == 0
        assert status["last_errors"] == []

        # index, config, model
        assert notes.json("index")["complete"]
        assert notes.json("index", "--force", "memory")["failed"] == []
        assert notes.run("config", "check").returncode == 0
        assert json.loads(notes.run("config", "show", "--json").stdout)
        assert notes.json("config", "path")["socket"] == str(notes.socket)
        models = {model["name"]: model for model in notes.json("model", "list")["models"]}
        assert models["all-minilm-l6-v2"]["used"]
        assert models["all-minilm-l6-v2"]["installed"]
    assert not notes.socket.exists()


def test_human_status_fits_a_screen_and_says_first_whether_all_is_well(notes: Machine) -> None:
    for number in range(30):
        notes.write(f"memory/odd{number}.md", b"\xff\xfe\xfd" * 50)
    with notes.daemon() as daemon:
        daemon.settle()
        status = notes.run("status", COLUMNS="100")
        lines = status.stdout.splitlines()
        assert status.returncode == 0
        assert "all is well" in lines[0]
        assert len(lines) <= 24
        assert "odd0.md" in status.stdout


def test_what_happens_to_files_is_followed(notes: Machine) -> None:
    with notes.daemon() as daemon:
        file = notes.write("memory/new.md", "A lighthouse in the fog.\n")
        daemon.wait_for("lighthouse", "memory/new.md")
        with file.open("a") as end:
            end.write("And a violin.\n")
        daemon.wait_for("violin", "memory/new.md")
        draft = notes.write("memory/.new.md.tmp", "A lighthouse and a cello.\n")
        draft.replace(file)
        daemon.wait_for("cello", "memory/new.md")
        daemon.wait_for("violin")
        file.rename(notes.root / "memory/renamed.md")
        daemon.wait_for("cello", "memory/renamed.md")
        (notes.root / "memory").rename(notes.root / "elsewhere")
        daemon.wait_for("cello")
        (notes.root / "elsewhere").rename(notes.root / "memory")
        daemon.wait_for("cello", "memory/renamed.md")
        (notes.root / "memory/renamed.md").unlink()
        daemon.wait_for("cello")
        daemon.settle()
        assert daemon.call("status")["health"]["state"] == "ok"


def test_restart_serves_what_it_knew_and_catches_up(notes: Machine) -> None:
    with notes.daemon() as daemon:
        daemon.settle()
    notes.write("memory/while-down.md", "A lighthouse in the fog.\n")
    (notes.root / "memory/pets.md").unlink()
    with notes.daemon() as daemon:
        daemon.settle()
        assert daemon.found("lighthouse") == ["memory/while-down.md"]
        assert daemon.found("puppy") == []
        embedded = [event for event in daemon.events("job_done") if event["kind"] == "embed"]
        assert sum(event["computed"] for event in embedded) == 1


def test_index_without_a_daemon_leaves_the_daemon_nothing_to_do(notes: Machine) -> None:
    done = notes.json("index")
    assert done["complete"]
    assert done["failed"] == []
    assert done["degraded"] is None
    assert done["workspaces"][0]["documents"] == 4
    with notes.daemon() as daemon:
        daemon.settle()
        assert [event["kind"] for event in daemon.events("job_done") if event["kind"] in ("index", "embed")] == []
        assert daemon.found("puppy") == ["memory/pets.md"]


@pytest.mark.parametrize("when", ["idle", "indexing"])
def test_sigterm_ends_well_and_loses_nothing(notes: Machine, when: str) -> None:
    if when == "indexing":
        for number in range(40):
            notes.write(f"memory/long{number}.md", f"# Note {number}\n\n" + f"Words about subject {number}. " * 60)
    with notes.daemon() as daemon:
        if when == "idle":
            daemon.settle()
        else:
            eventually(lambda: daemon.call("status", brief=True)["documents"] > 40)
        assert daemon.stop() == 0
        (stopped,) = daemon.events("stopped")
        assert stopped["lanes_cut_off"] == []
        assert not notes.socket.exists()
    with notes.daemon() as daemon:
        daemon.settle()
        (workspace,) = daemon.call("status")["workspaces"]
        assert workspace["indexed"] == workspace["files_on_disk"]
        assert workspace["vectors"] == workspace["passages"]
        assert workspace["failed"] == []


def test_sigterm_while_the_model_is_loading_ends_well(notes: Machine) -> None:
    with notes.daemon() as daemon:
        assert daemon.stop() == 0
        assert not notes.socket.exists()


def test_second_instance_is_refused_with_a_clear_message(notes: Machine) -> None:
    with notes.daemon() as daemon:
        second = notes.run("run", MEMORYD_PATHS__SOCKET=str(notes.runtime / "other.sock"))
        assert second.returncode == 1
        assert "Another memoryd" in second.stderr
        assert str(daemon.process.pid) in second.stderr
        assert "→" in second.stderr
        assert "Traceback" not in second.stderr
        third = notes.run("run", MEMORYD_PATHS__DATA=str(notes.folder / "other-data"))
        assert third.returncode == 1
        assert "Traceback" not in third.stderr
        assert daemon.call("ping")["pong"]
    assert notes.run("status").returncode == 3


def test_killed_daemon_leaves_no_obstacle(notes: Machine) -> None:
    daemon = notes.start()
    daemon.wait_until_it_answers()
    daemon.kill()
    assert notes.run("status").returncode == 3
    with notes.daemon() as daemon:
        daemon.settle()


def test_without_configuration_the_current_folder_is_served_and_that_is_said(notes: Machine) -> None:
    notes.env = {"MEMORYD_WORKSPACE": ""}
    with notes.daemon(cwd=notes.root) as daemon:
        daemon.settle()
        assert daemon.found("puppy") == ["memory/pets.md"]
        assert str(notes.root) in daemon.log()


def test_without_configuration_or_memory_it_says_what_to_do(machine: Machine) -> None:
    machine.env = {"MEMORYD_WORKSPACE": ""}
    (machine.folder / "empty").mkdir()
    for words, code in ((["config", "check"], 0), (["run"], 2), (["index"], 2)):
        done = machine.run(*words, cwd=machine.folder / "empty")
        assert done.returncode == code
        assert "Traceback" not in done.stderr
        assert "[[workspace]]" in done.stderr


def test_several_workspaces_are_served_from_one_configuration(notes: Machine) -> None:
    work = notes.folder / "work"
    (work / "memory").mkdir(parents=True)
    (work / "memory/plan.md").write_text("The lighthouse project.\n")
    notes.config_file.parent.mkdir(parents=True)
    notes.config_file.write_text(
        f'[[workspace]]\npath = "{notes.root}"\nname = "home"\n\n[[workspace]]\npath = "{work}"\nname = "work"\n'
    )
    notes.env = {"MEMORYD_WORKSPACE": ""}
    environment = notes.environment()
    assert environment["MEMORYD_WORKSPACE"] == ""
    with notes.daemon() as daemon:
        daemon.settle()
        assert daemon.found("lighthouse") == ["memory/plan.md"]
        assert notes.json("search", "lighthouse", "--workspace", "work")["results"][0]["workspace"] == "work"
        assert {hit["workspace"] for hit in notes.json("search", "puppy", "--workspace", "home")["results"]} == {"home"}
        assert [workspace["name"] for workspace in daemon.call("status")["workspaces"]] == ["home", "work"]


def test_the_socket_and_the_data_are_private(notes: Machine) -> None:
    with notes.daemon():
        assert oct(notes.socket.stat().st_mode & 0o777) == "0o600"
        assert oct(notes.socket.parent.stat().st_mode & 0o777) == "0o700"
        assert oct(notes.data.stat().st_mode & 0o777) == "0o700"


def test_interrupt_from_the_keyboard_ends_well_too(notes: Machine) -> None:
    with notes.daemon() as daemon:
        daemon.process.send_signal(signal.SIGINT)
        assert daemon.process.wait(60) == 0


def test_service_manager_is_told(notes: Machine, tmp_path: Path) -> None:
    address = notes.runtime / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(os.fspath(address))
        manager.settimeout(60)
        notes.env = {"NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "400000"}
        with notes.daemon():
            said = manager.recv(1000)
            while b"READY=1" not in said:
                said = manager.recv(1000)
            while b"WATCHDOG=1" not in said:
                said = manager.recv(1000)
        while b"STOPPING=1" not in said:
            said = manager.recv(1000)
