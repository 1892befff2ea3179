"""A data folder that cannot be written: at the start, and from one moment to the next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Machine
from tests.support.mounts import mount, small_disk
from tests.support.soundness import check_sound
from tests.support.waiting import eventually


@pytest.fixture
def disk(machine: Machine) -> Iterator[Path]:
    with small_disk(machine.folder / "disk", 50) as disk:
        machine.env = {"MEMORYD_PATHS__DATA": str(disk / "memoryd")}
        yield disk


def remount(disk: Path, mode: str) -> None:
    mount("-o", f"remount,{mode}", str(disk))


def test_start_on_a_read_only_disk_is_refused_with_a_message(machine: Machine, disk: Path) -> None:
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    with machine.daemon() as daemon:
        daemon.settle()
    remount(disk, "ro")
    done = machine.run("run")
    assert done.returncode == 1
    assert "Read-only file system" in done.stderr
    assert "→" in done.stderr
    assert "Traceback" not in done.stderr
    remount(disk, "rw")
    with machine.daemon() as daemon:
        daemon.wait_for("lighthouse", "memory/a.md")


def test_vectors_that_become_read_only_leave_words_and_heal(machine: Machine) -> None:
    with small_disk(machine.data / "vectors", 50) as disk, machine.daemon() as daemon:
        machine.write("memory/a.md", "The lighthouse keeper.\n")
        daemon.settle()
        remount(disk, "ro")
        machine.write("memory/b.md", "A violin.\n")
        daemon.wait_for("violin", "memory/b.md")
        eventually(lambda: "files_failed" in daemon.health(), what="status tells of it")
        (workspace,) = daemon.call("status")["workspaces"]
        assert "cannot be written" in workspace["failed"][0]["reason"]
        assert workspace["failed"][0]["next_retry"]
        remount(disk, "rw")
        check_sound(daemon)
        assert daemon.stop() == 0  # before its disk goes
