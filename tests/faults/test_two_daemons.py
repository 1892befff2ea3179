"""Two daemons and one data folder: one serves, the others are told who does."""

from __future__ import annotations

from tests.support.daemon import Machine
from tests.support.soundness import check_sound
from tests.support.waiting import eventually

RACERS = 4


def test_of_several_that_start_at_once_exactly_one_serves(machine: Machine) -> None:
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    racers = []
    for number in range(RACERS):  # each with a socket of its own: it is the data that only one may have
        machine.env = {"MEMORYD_PATHS__SOCKET": str(machine.runtime / f"{number}.sock")}
        racers.append(machine.start())
    try:
        eventually(lambda: sum(racer.process.poll() is not None for racer in racers) >= RACERS - 1, what="one is left")
        (winner,) = [number for number, racer in enumerate(racers) if racer.process.poll() is None]
        assert {racer.process.poll() for racer in racers} == {None, 1}
        log = racers[winner].log()
        assert log.count(f"Another memoryd (process {racers[winner].process.pid})") == RACERS - 1, log
    finally:
        for racer in racers:
            racer.kill()
    machine.env = {}
    with machine.daemon() as daemon:
        daemon.wait_for("lighthouse", "memory/a.md")
        check_sound(daemon)
