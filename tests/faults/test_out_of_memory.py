"""The kernel kills the daemon because memory ran out: to the index it is a kill like any other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Machine
from tests.support.soundness import check_sound
from tests.support.waiting import eventually

GROUPS = Path("/sys/fs/cgroup")
LITTLE = 90 * 2**20  # bytes; the model alone is more


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group of the kernel with little memory and no swap."""
    second_version = (GROUPS / "cgroup.controllers").exists()
    group = (GROUPS if second_version else GROUPS / "memory") / f"memoryd-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.max" if second_version else "memory.limit_in_bytes")).write_text(str(LITTLE))
    except OSError as error:
        pytest.skip(f"control groups are not permitted here: {error}")
    try:
        yield group
    finally:
        eventually(lambda: remove(group), what="the group is empty")


def remove(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:
        return False
    return True


def test_daemon_killed_for_want_of_memory_comes_back_sound(machine: Machine, small_group: Path) -> None:
    for number in range(5):
        machine.write(f"memory/{number}.md", f"Lighthouse number {number}.\n")
    daemon = machine.start()
    try:
        (small_group / "cgroup.procs").write_text(str(daemon.process.pid))
        eventually(lambda: daemon.process.poll() is not None, what="the kernel has killed it")
        assert daemon.process.returncode == -9, daemon.log()
    finally:
        daemon.kill()
    with machine.daemon() as daemon:
        check_sound(daemon)
        assert len(daemon.found("lighthouse")) == 5
