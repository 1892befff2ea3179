"""A full disk under the data: memoryd goes on answering, says what is wrong, and recovers by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, Machine
from tests.support.mounts import fill, small_disk
from tests.support.soundness import check_sound
from tests.support.waiting import eventually


@pytest.fixture
def disk(machine: Machine) -> Iterator[Path]:
    """A real file system of 12 MB for the data folder."""
    with small_disk(machine.folder / "disk", 12) as disk:
        machine.env = {"MEMORYD_PATHS__DATA": str(disk / "memoryd")}
        yield disk


def codes(daemon: Daemon) -> set[str]:
    return {error["code"] for error in daemon.call("status")["last_errors"]}


def test_full_disk_is_told_and_survived(machine: Machine, disk: Path) -> None:
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    with machine.daemon() as daemon:
        daemon.settle()
        ballast = fill(disk)
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


def test_start_on_a_full_disk_is_refused_with_a_message(machine: Machine, disk: Path) -> None:
    fill(disk)
    done = machine.run("run")
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_full_disk_of_the_vectors_alone_leaves_words_and_heals(machine: Machine) -> None:
    with small_disk(machine.data / "vectors", 2) as disk, machine.daemon() as daemon:
        machine.write("memory/a.md", "The lighthouse keeper.\n")
        daemon.settle()
        ballast = fill(disk)
        machine.write("memory/b.md", "A violin.\n")
        daemon.wait_for("violin", "memory/b.md")
        eventually(lambda: "store_full" in codes(daemon), what="status tells of the full disk")
        assert daemon.call("status")["health"]["state"] != "ok"
        assert daemon.found("lighthouse") == ["memory/a.md"]
        ballast.unlink()
        check_sound(daemon)
        assert daemon.stop() == 0  # before its disk goes


def test_full_disk_of_the_embedding_cache_alone_leaves_words_and_heals(machine: Machine) -> None:
    machine.data.mkdir(parents=True, mode=0o700)
    with small_disk(machine.folder / "disk", 2) as disk:
        (machine.data / "embeddings.db").symlink_to(disk / "embeddings.db")
        machine.write("memory/a.md", "The lighthouse keeper.\n")
        with machine.daemon() as daemon:
            daemon.settle()
            ballast = fill(disk)
            for number in range(40):  # more vectors than fit into what the file has allocated already
                machine.write(f"memory/b{number}.md", f"A violin {number}.\n")
            eventually(lambda: "store_full" in codes(daemon), what="status tells of the full disk")
            eventually(lambda: len(daemon.found("violin")) == 40, what="the words are found all the same")
            ballast.unlink()
            check_sound(daemon)
            assert daemon.stop() == 0
