"""The Neovim plugin in the real editor, without a screen, beside a real daemon."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.daemon import Machine
from tests.support.programs import find_program
from tests.support.waiting import eventually

PLUGIN = Path(__file__).parents[2] / "clients/neovim"
LONG = "".join(f"Day {number}: the ferry was on time.\n\n" for number in range(1, 21))


@pytest.fixture
def notes(machine: Machine) -> Machine:
    machine.write("MEMORY.md", "# Memory\n\nThe harbour office opens at nine.\n")
    machine.write("memory/a long name.md", LONG + "We replaced the cron jobs with systemd timers.\n")
    machine.write("memory/large.md", "A lighthouse in the fog.\n\n" * 8000)
    return machine


def editor(machine: Machine, *words: str) -> tuple[list[str], dict[str, str]]:
    """A Neovim that knows nothing but the plugin."""
    environment = machine.environment() | {"NOTES": str(machine.root)}
    return [find_program("nvim"), "--clean", "--headless", "--cmd", f"set rtp^={PLUGIN}", *words], environment


def run_tests(machine: Machine, expect: str) -> str:
    command, environment = editor(machine, "-c", f"luafile {PLUGIN}/test/memoryd_test.lua")
    done = subprocess.run(
        command, env=environment | {"EXPECT": expect}, cwd=machine.folder, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout
    return done.stdout


def test_plugin_searches_jumps_and_tells(notes: Machine) -> None:
    with notes.daemon() as daemon:
        daemon.settle()
        assert run_tests(notes, "daemon").count("ok ") == 13


def test_plugin_says_what_to_do_without_a_daemon(machine: Machine) -> None:
    assert run_tests(machine, "nothing").count("ok ") == 2


def test_daemon_restarted_under_an_open_editor_is_not_noticed(notes: Machine) -> None:
    address = notes.runtime / "nvim.sock"
    command, environment = editor(notes, "--listen", str(address))

    def evaluate(code: str) -> str:
        words = [command[0], "--server", str(address), "--remote-expr", f"luaeval({json.dumps(code)})"]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr  # where the answer goes has changed between versions

    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, cwd=notes.folder) as process:
        try:
            eventually(address.exists, what="the editor listens")
            for _ in range(2):
                with notes.daemon():
                    evaluate("(function() vim.g.said = ''; require('memoryd').status(function(problem, lines) "
                             "vim.g.said = problem and problem.message or lines[1] end) end)()")  # fmt: skip
                    eventually(lambda: evaluate("vim.g.said").startswith("memoryd "), what="the daemon's status")
        finally:
            process.terminate()


def test_help_has_a_tag_for_every_command_and_function(tmp_path: Path) -> None:
    (tmp_path / "doc").mkdir()
    (tmp_path / "doc/memoryd.txt").write_bytes((PLUGIN / "doc/memoryd.txt").read_bytes())
    nvim = find_program("nvim")
    done = subprocess.run(
        [nvim, "--clean", "--headless", "-c", f"helptags {tmp_path}/doc", "-c", "qall!"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    tags = {line.split("\t")[0] for line in (tmp_path / "doc/tags").read_text().splitlines()}
    assert {"memoryd", ":MemorySearch", ":MemoryStatus", "memoryd-settings", "memoryd.search()"} <= tags
