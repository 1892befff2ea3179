"""A laptop on battery, as the daemon meets it: the real program, with the machine's power supplies laid over."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.daemon import Machine
from tests.support.surroundings import set_battery
from tests.support.waiting import eventually

SUPPLIES = Path("/sys/class/power_supply")


def with_supplies(root: Path) -> tuple[str, ...]:
    """A command that starts another one where the power supplies are those below the root."""
    if not SUPPLIES.is_dir() or shutil.which("unshare") is None:
        pytest.skip("there are no power supplies to lay others over")
    lay = f'mount --bind "{root}/{SUPPLIES.relative_to("/")}" {SUPPLIES} && exec "$@"'
    command = ("unshare", "--mount", "sh", "-c", lay, "sh")
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not permitted here")
    return command


def test_on_battery_notes_are_found_by_words_and_by_meaning_once_it_is_plugged_in(
    machine: Machine, tmp_path: Path
) -> None:
    laptop = tmp_path / "laptop"
    set_battery(laptop, plugged=False)
    machine.through = with_supplies(laptop)
    machine.env = {"MEMORYD_INDEX__PAUSE_ON_BATTERY": "true"}
    machine.write("memory/plumbing.md", "# House\n\nThe faucet in the bathroom drips.\n")
    with machine.daemon() as daemon:
        daemon.settle()
        indexed = machine.run("index")
        assert indexed.returncode == 0
        assert "embedding paused: on battery" in indexed.stderr
        assert "The index is current" not in indexed.stderr

        found = machine.run("search", "faucet")
        assert "memory/plumbing.md" in found.stdout
        assert "1 file not yet searchable by meaning" in found.stderr
        assert "embedding paused: on battery" in found.stderr

        told = machine.run("status")
        assert told.returncode == 0
        assert "all is well, embedding paused: on battery" in told.stdout
        status = machine.json("status")
        assert (status["health"]["state"], status["embedder"]["paused"]["reason"]) == ("ok", "on battery")

        set_battery(laptop, plugged=True)
        eventually(lambda: not daemon.call("search", query="faucet")["pending_count"], what="the note is embedded")
        assert "paused" not in machine.run("status").stdout
        assert daemon.found("faucet") == ["memory/plumbing.md"]
        assert daemon.call("search", query="leaky tap")["results"][0]["path"] == "memory/plumbing.md"
