"""Too much at once: thousands of files, and one file saved a thousand times."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, Machine
from tests.support.waiting import eventually

FILES = 10_000
OWN = 20  # of so many files one has words of its own: to embed ten thousand texts takes minutes
REWRITES = 1000
A_MINUTE = 60.0
REST_S = 0.1  # a file that is saved again and again is read so often: half of index.settle_ms
ROOM_MB = 250  # that so many files at once may take besides


def resident_mb(daemon: Daemon) -> float:
    """Memory of its own; the mapped model is the disk's."""
    fields = Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines()
    (anonymous,) = [line for line in fields if line.startswith("RssAnon")]
    return int(anonymous.split()[1]) / 1024


def arrive_at_once(machine: Machine, files: int, own: int = 1) -> None:
    """As an unpacked archive or a checked-out branch does: made elsewhere on the disk, then moved in whole.

    Every ``own``-th has words of its own; the rest are one text, which is embedded once.
    """
    beside = machine.folder / "beside"
    beside.mkdir()
    for number in range(files):
        words = f"Parcel n{number}n came.\n" if number % own == 0 else "A parcel came.\n"
        (beside / f"{number}.md").write_text(words)
    (machine.root / "memory").mkdir(exist_ok=True)
    beside.rename(machine.root / "memory/many")


@pytest.mark.timeout(400)  # ten thousand files on a busy machine
def test_ten_thousand_files_at_once_are_all_indexed_and_found(machine: Machine) -> None:
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    with machine.daemon() as daemon:
        daemon.settle()
        before = resident_mb(daemon)
        arrive_at_once(machine, FILES, OWN)
        eventually(lambda: daemon.call("status", brief=True)["documents"] == FILES + 1, 300, "every file is indexed")
        for number in (0, OWN, FILES // 2, FILES - OWN):
            assert daemon.found(f"n{number}n") == [f"memory/many/{number}.md"]
        assert daemon.found("lighthouse") == ["memory/a.md"]
        eventually(lambda: daemon.call("status", brief=True)["current"], 300, "every file has its vectors")
        assert resident_mb(daemon) < before + ROOM_MB
        (workspace,) = daemon.call("status")["workspaces"]
        assert workspace["indexed"] == workspace["vectors"] == workspace["passages"] == FILES + 1
        computed = sum(event["computed"] for event in daemon.events("job_done") if event["kind"] == "embed")
        assert computed == 2 + FILES // OWN


def save_again_and_again(machine: Machine, daemon: Daemon, saves: int, pause_s: float) -> tuple[int, float]:
    """Save one file so often and wait for the last; returns how many were embedded, and how long saving took."""
    daemon.settle()
    began = time.monotonic()
    pace = threading.Event()
    for number in range(saves):
        machine.write("memory/a.md", f"The lighthouse keeper counts to {number}.\n")
        pace.wait(pause_s)
    took = time.monotonic() - began
    last = f"counts to {saves - 1}"
    daemon.wait_for(last, "memory/a.md")
    daemon.settle()
    assert daemon.found(last) == ["memory/a.md"]
    return sum(event["computed"] for event in daemon.events("job_done") if event["kind"] == "embed"), took


def test_file_saved_a_thousand_times_is_embedded_a_few_times(machine: Machine) -> None:
    with machine.daemon() as daemon:
        computed, took = save_again_and_again(machine, daemon, REWRITES, 0.0)
        assert 1 <= computed < REWRITES / 5
        assert computed <= took / REST_S + 2


def test_file_saved_at_a_pace_of_a_thousand_a_minute_is_embedded_by_the_clock_not_by_the_save(machine: Machine) -> None:
    """Six seconds of that minute; `make soak` has all of it."""
    with machine.daemon() as daemon:
        computed, took = save_again_and_again(machine, daemon, REWRITES // 10, A_MINUTE / REWRITES)
        assert 1 <= computed <= took / REST_S + 2
        assert computed < 0.8 * REWRITES / 10
