"""A data folder that cannot be written: at the start, and from one moment to the next."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Machine
from tests.support.mounts import small_disk
from tests.support.read_only import ReadOnly, ext4_disk
from tests.support.soundness import check_sound
from tests.support.waiting import eventually


@pytest.fixture
def disk(machine: Machine) -> Iterator[Path]:
    with small_disk(machine.folder / "disk", 50) as disk:
        machine.env = {"MEMORYD_PATHS__DATA": str(disk / "memoryd")}
        yield disk


def remount(disk: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(disk)], check=True)


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
    # In 8 bits nothing on that disk stays open for writing; else the kernel refuses to make it read-only.
    machine.env = {"MEMORYD_EMBEDDER__PRECISION": "int8"}
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


@pytest.mark.parametrize("store", ["", "ledger.db", "embeddings.db"], ids=lambda name: name or "all")
def test_store_that_becomes_read_only_keeps_what_it_has_and_resumes_when_it_is_not(
    machine: Machine, store: str
) -> None:
    read_only = ReadOnly(machine.folder, machine.data / store)
    machine.env = read_only.env
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    with machine.daemon() as daemon:
        daemon.settle()
        read_only.set()
        machine.write("memory/b.md", "A violin.\n")
        if store == "embeddings.db":
            daemon.wait_for("violin", "memory/b.md")  # words are the ledger's
        reasons = eventually(daemon.health, what="status tells of it")
        assert all(reason["hint"] for reason in reasons.values())
        eventually(lambda: daemon.call("status")["last_errors"], what="the reason is remembered")
        assert {error["code"] for error in daemon.call("status")["last_errors"]} == {"store_unavailable"}
        assert daemon.found("lighthouse") == ["memory/a.md"]
        assert daemon.call("search", query="who keeps the light")["results"]
        read_only.lift()
        daemon.wait_for("violin", "memory/b.md")
        check_sound(daemon)


def test_disk_that_gives_up_leaves_searches_and_all_is_well_once_it_is_repaired(machine: Machine) -> None:
    """As a kernel does with a disk that meets errors: read-only from here on, until somebody mounts it again."""
    with ext4_disk(machine.folder / "disk", 64) as disk:
        machine.env = {"MEMORYD_PATHS__DATA": str(disk.folder / "memoryd")}
        machine.write("memory/a.md", "The lighthouse keeper.\n")
        with machine.daemon() as daemon:
            daemon.settle()
            disk.give_up()
            machine.write("memory/b.md", "A violin.\n")
            reasons = eventually(daemon.health, what="status tells of it")
            assert all(reason["hint"] for reason in reasons.values())
            assert daemon.found("lighthouse") == ["memory/a.md"]
            assert "Traceback" not in daemon.log()
            daemon.stop()
        disk.repair()
        with machine.daemon() as daemon:
            daemon.wait_for("violin", "memory/b.md")
            check_sound(daemon)  # what the disk had not kept of the vectors was made anew
