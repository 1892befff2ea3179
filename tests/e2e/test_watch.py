"""`memoryd status` on a real terminal and for monitors, beside a real daemon."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.daemon import PROGRAM, Daemon, Machine
from tests.support.terminal import Terminal, terminal

HEAVY = {"numpy", "lancedb", "llama_cpp", "watchdog", "apscheduler", "pyarrow", "httpx", "gguf", "structlog", "yaml"}
CURSOR_BACK, LEAVE_SCREEN = "\x1b[?25h", "\x1b[?1049l"
CLIENT_COMMANDS = [
    ["status"],
    ["status", "--json"],
    ["status", "--prometheus"],
    ["search", "lighthouse"],
    ["bench", "--json", "-n", "1"],
    ["get", "memory/a.md"],
    ["config", "show"],
    ["completion", "bash"],
    ["--help"],
]


@pytest.fixture
def daemon(machine: Machine) -> Iterator[Daemon]:
    machine.write("memory/a.md", "A lighthouse in the fog.\n")
    with machine.daemon() as daemon:
        daemon.settle()
        yield daemon


@contextmanager
def watching(daemon: Daemon) -> Iterator[Terminal]:
    env = daemon.machine.environment() | {"TERM": "xterm-256color"}
    with terminal([PROGRAM, "status", "--watch"], env, daemon.machine.folder) as screen:
        screen.read_until("all is well")
        yield screen


def test_the_picture_follows_what_happens_and_q_ends_it(daemon: Daemon) -> None:
    with watching(daemon) as screen:
        screen.read_until("no query in the last 5 min")
        daemon.call("search", query="lighthouse secret")
        screen.read_until("p50 .* ms")
        screen.read_until("1 query in 5 min")
        daemon.machine.write("memory/b.md", "A violin.\n")
        screen.read_until(r"notes +2 +2 ")
        screen.write("x\x1b[A")  # mean nothing
        screen.write("q")
        assert screen.wait() == 0
        assert screen.raw.endswith(CURSOR_BACK + LEAVE_SCREEN)
        assert "secret" not in screen.raw


def test_a_change_of_size_is_followed(daemon: Daemon) -> None:
    with watching(daemon) as screen:
        daemon.call("search", query="lighthouse")
        screen.read_until("last queries")
        before = len(screen.shown)
        screen.resize(160, 50)
        screen.read_until("█", after=before)  # bars are for wide terminals
        screen.read_until("schedule", after=before)  # and this for high ones
        before = len(screen.shown)
        screen.resize(60, 12)
        screen.read_until("all is well", after=before)
        screen.write("\x03")
        assert screen.wait() == 0
        assert "Traceback" not in screen.shown


def test_a_daemon_that_stops_is_told_and_one_that_comes_back_is_shown(daemon: Daemon) -> None:
    with watching(daemon) as screen:
        assert daemon.stop() == 0
        screen.read_until("not running since")
        before = len(screen.shown)
        with daemon.machine.daemon():
            screen.read_until("memoryd: (all is well|well, and indexing)", after=before)
            back = len(screen.shown)
        screen.read_until("not running since", after=back)
        screen.write("q")
        assert screen.wait() == 3


def test_what_is_no_terminal_gets_the_picture_once(daemon: Daemon) -> None:
    done = daemon.machine.run("status", "--watch")
    assert done.returncode == 0
    assert done.stdout.startswith("● memoryd: all is well")
    assert "\x1b" not in done.stdout


def test_metrics_are_printed_for_a_running_and_for_a_missing_daemon(daemon: Daemon) -> None:
    daemon.call("search", query="lighthouse")
    done = daemon.machine.run("status", "--prometheus")
    found = {s.name + str(s.labels): s.value for f in text_string_to_metric_families(done.stdout) for s in f.samples}
    assert (done.returncode, found["memoryd_up{}"]) == (0, 1)
    assert found["memoryd_request_duration_seconds_count{'method': 'search'}"] == 1
    assert found["memoryd_workspace_vectors{'workspace': 'notes'}"] >= 1
    daemon.stop()
    done = daemon.machine.run("status", "--prometheus")
    assert done.returncode == 3
    assert "memoryd_up 0\n" in done.stdout


def test_forms_of_output_exclude_each_other(machine: Machine) -> None:
    done = machine.run("status", "--prometheus", "--json")
    assert done.returncode == 2
    assert "not allowed with" in done.stderr


def test_client_commands_import_nothing_heavy(daemon: Daemon) -> None:
    for words in CLIENT_COMMANDS:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "memoryd.daemon.cli", *words],
            env=daemon.machine.environment(), capture_output=True, text=True, check=True,
        )  # fmt: skip
        told = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
        imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in told}
        assert "collections" in imported
        assert not imported & HEAVY, words
        if "--json" in words or "--prometheus" in words:
            assert "rich" not in imported, words  # programs ask often


def test_name_that_looks_like_markup_is_shown_as_it_is(machine: Machine) -> None:
    root = machine.folder / "[red]x"
    (root / "memory").mkdir(parents=True)
    (root / "memory/a.md").write_text("A lighthouse in the fog.\n")
    machine.env |= {"MEMORYD_WORKSPACE": str(root), "MEMORYD_EMBEDDER__PROVIDER": "none"}
    with machine.daemon() as daemon:
        daemon.settle()
        assert "[red]x " in machine.run("status").stdout
        env = machine.environment() | {"TERM": "xterm-256color"}
        with terminal([PROGRAM, "status", "--watch"], env, machine.folder) as screen:
            screen.read_until(r"\[red\]x ")
            screen.write("q")
            assert screen.wait() == 0
