"""Too much at once: thousands of files, and one file saved a thousand times."""

from __future__ import annotations

from pathlib import Path

from tests.support.daemon import Daemon, Machine
from tests.support.waiting import eventually

FILES = 10_000
REWRITES = 1000
ROOM_MB = 250  # that so many files at once may take besides


def resident_mb(daemon: Daemon) -> float:
    """Memory of its own; the mapped model is the disk's."""
    fields = Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines()
    (anonymous,) = [line for line in fields if line.startswith("RssAnon")]
    return int(anonymous.split()[1]) / 1024


def arrive_at_once(machine: Machine, files: int) -> None:
    """As an unpacked archive or a checked-out branch does: made elsewhere on the disk, then moved in whole."""
    beside = machine.folder / "beside"
    beside.mkdir()
    for number in range(files):
        (beside / f"{number}.md").write_text(f"Parcel n{number}n came.\n")
    (machine.root / "memory").mkdir(exist_ok=True)
    beside.rename(machine.root / "memory/many")


def test_thousands_of_files_at_once_are_all_found_by_their_words(machine: Machine) -> None:
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    daemon = machine.start()
    try:
        daemon.wait_until_it_answers()
        daemon.settle()
        before = resident_mb(daemon)
        arrive_at_once(machine, FILES)
        eventually(lambda: daemon.call("status", brief=True)["documents"] == FILES + 1, 200, "every file is indexed")
        for number in (0, 7, FILES // 2, FILES - 1):
            assert daemon.found(f"n{number}n") == [f"memory/many/{number}.md"]
        assert daemon.found("lighthouse") == ["memory/a.md"]
        assert resident_mb(daemon) < before + ROOM_MB
    finally:
        daemon.kill()  # their vectors would take a minute more, and are another test's matter


def test_file_saved_a_thousand_times_is_embedded_a_few_times(machine: Machine) -> None:
    with machine.daemon() as daemon:
        daemon.settle()
        for number in range(REWRITES):
            machine.write("memory/a.md", f"The lighthouse keeper counts to {number}.\n")
        last = f"counts to {REWRITES - 1}"
        daemon.wait_for(last, "memory/a.md")
        daemon.settle()
        assert daemon.found(last) == ["memory/a.md"]
        computed = sum(event["computed"] for event in daemon.events("job_done") if event["kind"] == "embed")
        assert 1 <= computed < REWRITES / 5
