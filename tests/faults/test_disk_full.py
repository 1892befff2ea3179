"""A full disk under the data: memoryd goes on answering, says what is wrong, and recovers by itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Machine
from tests.support.waiting import eventually


@pytest.fixture
def small_disk(machine: Machine) -> Iterator[Path]:
    """A real file system of 12 MB for the data folder."""
    disk = machine.folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not permitted here")
    machine.env = {"MEMORYD_PATHS__DATA": str(disk / "memoryd")}
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Take every byte that is left."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    assert os.statvfs(disk).f_bavail == 0
    return ballast


def test_full_disk_is_told_and_survived(machine: Machine, small_disk: Path) -> None:
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    with machine.daemon() as daemon:
        daemon.settle()
        ballast = fill(small_disk)
        for number in range(10):  # more than fits into what the stores have allocated already
            text = "\n\n".join(f"Words {number} {line} of many." for line in range(2000))
            machine.write(f"memory/big{number}.md", text)

        def complains() -> bool:
            status = daemon.call("status")
            errors = [error["code"] for error in status["last_errors"]]
            return "store_full" in errors and status["health"]["state"] != "ok"

        eventually(complains, what="status tells of the full disk")
        assert daemon.found("lighthouse") == ["memory/a.md"]
        for number in range(10):
            (machine.root / f"memory/big{number}.md").unlink()
        machine.write("memory/b.md", "A violin.\n")
        assert daemon.call("ping")["pong"]

        ballast.unlink()
        daemon.wait_for("violin", "memory/b.md")
        daemon.wait_for("lighthouse", "memory/a.md")
        eventually(lambda: daemon.call("status")["health"]["state"] == "ok", what="all is well again")
        (workspace,) = daemon.call("status")["workspaces"]
        assert workspace["indexed"] == 2
        assert workspace["vectors"] == workspace["passages"] == 2
        assert "Traceback" not in daemon.log()


def test_start_on_a_full_disk_is_refused_with_a_message(machine: Machine, small_disk: Path) -> None:
    fill(small_disk)
    done = machine.run("run")
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
