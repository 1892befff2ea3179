"""VS Code's JSON-RPC library in Node, beside a real daemon."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.daemon import Machine
from tests.support.programs import find_program, leave_out

CLIENT = Path(__file__).parents[2] / "clients/vscode-jsonrpc"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The client's folder, copied, with its one dependency as the lock file has it."""
    project = tmp_path / "project"
    shutil.copytree(CLIENT, project, ignore=shutil.ignore_patterns("node_modules"))
    find_program("node")
    done = subprocess.run(
        [find_program("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=project, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    if done.returncode:
        leave_out("npm", f"npm cannot install vscode-jsonrpc: {done.stderr.strip()[-200:]}")
    return project


def test_node_asks_cancels_and_is_told_what_happens(machine: Machine, project: Path) -> None:
    machine.write("memory/2026-11-15.md", "# Standup\n\nWe replaced the cron jobs with systemd timers.\n")
    machine.write("memory/日本.md", "灯台は霧の中。😀\n")
    for number in range(100):
        machine.write(
            f"memory/n{number}.md", f"# Note {number}\n\nThe harbour office opens at nine; the ferry leaves at ten.\n"
        )
    with machine.daemon() as daemon:
        daemon.settle()
        done = subprocess.run(
            [find_program("node"), "--test", "--test-reporter=tap", "memoryd.test.js"],
            cwd=project,
            env=machine.environment() | {"NOTES": str(machine.root)},
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "# pass 8\n" in done.stdout
        assert daemon.process.wait(60) == 0  # the test's last word


def test_lock_file_names_no_registry() -> None:
    lock = json.loads((CLIENT / "package-lock.json").read_text())
    assert lock["packages"]["node_modules/vscode-jsonrpc"]["integrity"]
    assert not [package for package in lock["packages"].values() if "resolved" in package]
