"""The configuration read again by a daemon that runs: by SIGHUP and by command, sound and broken."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, Machine
from tests.support.waiting import eventually


@pytest.fixture
def notes(machine: Machine) -> Machine:
    machine.env = {"MEMORYD_WORKSPACE": ""}
    machine.write("memory/pets.md", "# Pets\n\nThe puppy sleeps in the kitchen.\n")
    work = machine.folder / "work/memory/plan.md"
    work.parent.mkdir(parents=True)
    work.write_text("# Plan\n\nA lighthouse in the fog.\n")
    machine.config_file.parent.mkdir(parents=True)
    configure(machine, "")
    return machine


def configure(machine: Machine, text: str, *workspaces: str) -> None:
    blocks = "".join(
        f'[[workspace]]\npath = "{machine.folder / name}"\nname = "{name}"\n' for name in workspaces or ("notes",)
    )
    machine.config_file.write_text(f"{text}\n{blocks}")


def hang_up(daemon: Daemon) -> None:
    """SIGHUP, and until it has been dealt with."""
    before = len(daemon.events("reloaded")) + len(daemon.events("reload_refused"))
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: len(daemon.events("reloaded")) + len(daemon.events("reload_refused")) > before)


def test_workspaces_come_and_go(notes: Machine) -> None:
    with notes.daemon() as daemon:
        daemon.settle()
        configure(notes, "", "notes", "work")
        hang_up(daemon)
        assert daemon.events("reloaded")[-1]["changed"] == ["workspace work added"]
        daemon.wait_for("lighthouse", "memory/plan.md")
        (notes.folder / "work/memory/new.md").write_text("An albatross.\n")
        daemon.wait_for("albatross", "memory/new.md")  # the new workspace is watched

        configure(notes, "", "work")
        hang_up(daemon)
        assert daemon.events("reloaded")[-1]["changed"] == ["workspace notes removed"]
        assert daemon.found("puppy") == []
        notes.write("memory/late.md", "A pelican.\n")
        daemon.settle()
        assert daemon.found("pelican") == []
        status = daemon.call("status")
        assert [workspace["name"] for workspace in status["workspaces"]] == ["work"]
        assert status["health"] == {"state": "ok", "reasons": []}
        assert status["last_errors"] == []


def test_everything_that_can_change_does_and_the_rest_is_named(notes: Machine) -> None:
    notes.write("memory/long.md", "# Long\n\n" + "\n\n".join(f"Words of paragraph {n}. " * 20 for n in range(20)))
    with notes.daemon() as daemon:
        daemon.settle()
        chunks = daemon.call("status", brief=True)["chunks"]
        configure(
            notes,
            "[search]\nlimit = 1\n[index]\nchunk_tokens = 128\noverlap_tokens = 0\n[log]\nlevel = 'debug'\n"
            "[schedule]\nreconcile_minutes = 500\n[server]\nmax_request_bytes = 2048\n"
            "[embedder]\nbatch_tokens = 256\nthreads = 1\n[llm]\nprovider = 'none'\n",
        )
        done = notes.run("reload")
        assert done.returncode == 0, done.stderr
        assert "changed  search.limit" in done.stderr
        assert "waits    embedder.threads: read only when memoryd starts" in done.stderr
        assert notes.json("reload") == {"changed": [], "needs_restart": ["embedder.threads", "embedder.batch_tokens"]}

        daemon.settle()
        assert len(daemon.call("search", query="words of paragraph")["results"]) == 1
        eventually(lambda: daemon.call("status", brief=True)["chunks"] > chunks, what="smaller chunks")
        assert daemon.events("request"), "the log says more"
        status = notes.run("status")
        assert "embedder.threads · embedder.batch_tokens" in status.stdout
        assert status.returncode == 0
        assert daemon.call("status")["scheduler"]["reconcile"] > daemon.call("status")["scheduler"]["maintain"]
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(60)
            client.connect(os.fspath(notes.socket))
            client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"x" * 4096 + b'"}}\n')
            assert b"request_too_large" in client.recv(4096)


def test_broken_configuration_keeps_the_old_and_says_so_until_it_is_mended(notes: Machine) -> None:
    with notes.daemon() as daemon:
        daemon.settle()
        configure(notes, "[serch]\nlimit = 3\n[search]\nrrf_k = 0\n", "notes", "work")
        hang_up(daemon)
        reason = daemon.health()["config_invalid"]
        assert "2 problems" in reason["message"]
        assert "serch: unknown" in reason["message"]
        assert "search.rrf_k" in reason["message"]
        assert [workspace["name"] for workspace in daemon.call("status")["workspaces"]] == ["notes"]
        assert daemon.found("puppy") == ["memory/pets.md"]

        # people can ask although their file is broken, and are told that it is
        assert notes.run("search", "puppy").returncode == 0
        status = notes.run("status")
        assert (status.returncode, "serch: unknown" in status.stdout) == (4, True)
        refused = notes.run("reload")
        assert refused.returncode == 2
        assert "serch: unknown" in refused.stderr
        assert "former configuration is in force" in refused.stderr

        notes.config_file.unlink()  # nothing to serve is not a wish to forget everything
        hang_up(daemon)
        assert "no workspace is configured" in daemon.health()["config_invalid"]["message"]
        assert daemon.found("puppy") == ["memory/pets.md"]

        configure(notes, "")
        hang_up(daemon)
        assert daemon.call("status")["health"]["reasons"] == []


def test_settings_changed_live_stay_unless_the_file_changes_them_too(notes: Machine) -> None:
    with notes.daemon() as daemon:
        daemon.call("settings.set", settings={"limit": 2, "fusion": "rrf"})
        configure(notes, "[search]\nlimit = 9\n")
        assert notes.json("reload")["changed"] == ["search.limit"]
        described = daemon.call("settings.get")
        assert (described["settings"]["limit"], described["origin"]["limit"]) == (9, "file")
        assert (described["settings"]["fusion"], described["origin"]["fusion"]) == ("rrf", "live")


def test_service_manager_sees_the_reload_begin_and_end(notes: Machine, tmp_path: Path) -> None:
    address = notes.runtime / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(os.fspath(address))
        manager.settimeout(60)
        notes.env = {**notes.env, "NOTIFY_SOCKET": str(address)}
        with notes.daemon() as daemon:
            while b"READY=1" not in manager.recv(1000):
                pass
            for text, says in (("", b"STATUS=serving 1 workspace"), ("[x]\n", b"the former one is in force")):
                configure(notes, text)
                daemon.process.send_signal(signal.SIGHUP)
                began = manager.recv(1000)
                assert began.startswith(b"RELOADING=1\nMONOTONIC_USEC=")
                assert int(began.rpartition(b"=")[2]) > 0
                ended = manager.recv(1000)
                assert ended.startswith(b"READY=1\n")
                assert says in ended


def test_reload_without_a_daemon_says_so(notes: Machine) -> None:
    assert notes.run("reload").returncode == 3
    configure(notes, "[serch]\n")
    assert notes.run("reload").returncode == 2
