"""The Emacs package in the real editor, in batch mode, beside a real daemon."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.daemon import Machine
from tests.support.programs import find_program
from tests.support.waiting import eventually

PACKAGE = Path(__file__).parents[2] / "clients/emacs"
LONG = "".join(f"Day {number}: the ferry was on time.\n\n" for number in range(1, 21))


@pytest.fixture
def notes(machine: Machine) -> Machine:
    machine.write("MEMORY.md", "# Memory\n\nThe harbour office opens at nine.\n")
    machine.write("memory/a long name.md", LONG + "We replaced the cron jobs with systemd timers.\n")
    machine.write("memory/日本.md", "# 日記 😀\n\n灯台は霧の中。😀 灯台。\n")
    return machine


def run_emacs(machine: Machine, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = machine.environment() | {"NOTES": str(machine.root), "LC_ALL": "C.UTF-8"} | env
    command = [find_program("emacs"), "--batch", "-Q", "-L", str(PACKAGE), *words]
    return subprocess.run(
        command, env=environment, cwd=machine.folder, capture_output=True, text=True, timeout=110, check=False
    )


def run_tests(machine: Machine, tag: str, **env: str) -> int:
    """How many tests with this tag there were, all of which passed."""
    batch = f"(ert-run-tests-batch-and-exit '(tag {tag}))"
    done = run_emacs(machine, "-l", "memoryd-tests", "--eval", batch, **env)
    assert done.returncode == 0, done.stderr
    found = re.search(r"Ran (\d+) tests?, (\d+) results as expected", done.stderr)
    assert found, done.stderr
    return int(found[2])


def test_package_searches_jumps_and_tells(notes: Machine) -> None:
    with notes.daemon() as daemon:
        daemon.settle()
        assert run_tests(notes, "daemon") == 9


def test_daemon_restarted_under_an_open_editor_is_not_noticed(notes: Machine) -> None:
    wanted, done = notes.folder / "wanted", notes.folder / "done"
    script = notes.folder / "restart"
    script.write_text(f'#!/bin/sh\ntouch "{wanted}"\nuntil [ -e "{done}" ]; do sleep 0.05; done\n')
    script.chmod(0o700)
    with notes.daemon() as first, ThreadPoolExecutor(1) as threads:
        tests = threads.submit(run_tests, notes, "restart", RESTART=str(script))
        eventually(lambda: wanted.exists() or tests.done(), what="the editor has asked once")
        first.stop()
        with notes.daemon():
            done.touch()
            assert tests.result() == 1


def test_package_says_what_to_do_without_a_daemon(machine: Machine) -> None:
    assert run_tests(machine, "absent") == 2


def test_package_compiles_without_a_warning(machine: Machine) -> None:
    copy = machine.folder / "memoryd.el"
    copy.write_bytes((PACKAGE / "memoryd.el").read_bytes())
    done = run_emacs(machine, "--eval", "(setq byte-compile-error-on-warn t)", "-f", "batch-byte-compile", str(copy))
    assert done.returncode == 0, done.stderr
    assert copy.with_suffix(".elc").exists()


def test_documentation_is_as_emacs_wants_it(machine: Machine) -> None:
    for file in ("memoryd.el", "memoryd-tests.el"):
        done = run_emacs(machine, "--eval", f'(checkdoc-file "{PACKAGE / file}")')
        assert (done.returncode, done.stderr) == (0, "")
