"""Started on demand, stopped at any moment, and what the log of a whole life does not say."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

from memoryd.daemon.client import Client
from memoryd.store.errors import MemorydError
from tests.support.daemon import PROGRAM, Machine
from tests.support.waiting import PATIENCE_S, eventually


@pytest.fixture
def notes(machine: Machine) -> Machine:
    machine.write("memory/pets.md", "# Kittens\n\nThe puppy sleeps in the scullery.\n")
    return machine


@pytest.mark.skipif(
    not shutil.which("systemd-socket-activate"), reason="systemd-socket-activate is not installed (package systemd)"
)
def test_first_question_starts_the_daemon_and_the_socket_stays_when_it_stops(notes: Machine) -> None:
    notes.socket.parent.mkdir(mode=0o700)
    passed = [f"--setenv={name}={value}" for name, value in notes.environment().items()]
    command = ["systemd-socket-activate", f"--listen={notes.socket}", *passed, str(PROGRAM), "run"]
    log = notes.folder / "log"
    with log.open("wb") as stderr:
        activator = subprocess.Popen(command, stderr=stderr, stdout=stderr)
    try:
        eventually(notes.socket.is_socket)

        def answers() -> bool:
            try:
                with Client(notes.socket, timeout=PATIENCE_S) as client:
                    return bool(client.call("ping")["pid"] == activator.pid)
            except MemorydError:
                return False  # bound, and not listening yet

        eventually(answers, what=f"the daemon answers: {log.read_text()}")
        activator.send_signal(signal.SIGTERM)
        assert activator.wait(PATIENCE_S) == 0
        assert notes.socket.is_socket()  # it is not ours to remove
        assert "Traceback" not in log.read_text()
    finally:
        activator.kill()
        activator.wait(PATIENCE_S)


def test_sigterm_while_it_starts_is_honest_and_leaves_no_obstacle(notes: Machine) -> None:
    for delay_s in (0.0, 0.1, 0.3, 0.6, 1.0, 1.5):
        daemon = notes.start()
        time.sleep(delay_s)  # the moment is what is tested; every outcome below is right at any of them
        daemon.process.send_signal(signal.SIGTERM)
        # Before memoryd listens for the signal, the signal ends it, and the exit status says so.
        assert daemon.process.wait(PATIENCE_S) in (0, -signal.SIGTERM), daemon.log()
        assert "Traceback" not in daemon.log()
        assert not notes.socket.exists() or daemon.process.returncode != 0
    with notes.daemon() as daemon:
        daemon.settle()
        assert daemon.found("puppy") == ["memory/pets.md"]


def test_second_sigterm_ends_a_daemon_that_takes_its_time(notes: Machine) -> None:
    for number in range(30):
        notes.write(f"memory/long{number}.md", f"# Note {number}\n\n" + f"Words about subject {number}. " * 400)
    daemon = notes.start()
    daemon.wait_until_it_answers()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(os.fspath(notes.socket))
        client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"index"}\n')  # is waited for, a second
        eventually(lambda: daemon.call("status")["server"]["in_flight"] > 1)
        daemon.process.send_signal(signal.SIGTERM)
        eventually(lambda: daemon.events("stopping"))
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(PATIENCE_S) == 128 + signal.SIGTERM or daemon.events("stopped")
    with notes.daemon():
        pass


def test_log_of_a_whole_life_holds_no_text_of_notes_or_queries(notes: Machine) -> None:
    notes.env = {"MEMORYD_LOG__LEVEL": "debug"}
    notes.write("memory/odd.md", "---\ntitle: [Zanzibar\n---\n\n# Ouagadougou\n\nQuetzalcoatl again.\n")
    notes.write("memory/bad.md", b"\xff\xfe Quetzalcoatl \xff")
    with notes.daemon() as daemon:
        daemon.settle()
        daemon.call("search", query="xylophone and puppy", explain=True)
        notes.run("search", "xylophone", "--scope", "user:xylophone")
        notes.run("why-not", "xylophone", "memory/pets.md:3")
        notes.run("search", "xylophone", "--set", "fusion=xylophone")
        with pytest.raises(MemorydError):
            daemon.call("search", query=["xylophone"])
        with pytest.raises(MemorydError):
            daemon.call("search", query="xylophone", xylophone=1)
        notes.write("memory/pets.md", "# Kittens\n\nThe puppy moved to the scullery.\n")
        daemon.wait_for("moved scullery", "memory/pets.md")
        assert daemon.events("query_done")
        assert all(event["query"].endswith(" characters>") for event in daemon.events("query_done"))
    for private in ("puppy", "scullery", "kittens", "zanzibar", "ouagadougou", "quetzalcoatl", "xylophone"):
        assert private not in daemon.log().casefold(), [line for line in daemon.log().splitlines() if private in line]


def test_what_was_asked_is_in_the_log_where_that_is_wanted(notes: Machine) -> None:
    notes.env = {"MEMORYD_LOG__INCLUDE_TEXT": "true"}
    with notes.daemon() as daemon:
        daemon.settle()
        daemon.call("search", query="xylophone")
        (done,) = eventually(lambda: daemon.events("query_done"))
        assert json.dumps(done).count("xylophone") == 1
