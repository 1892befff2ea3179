"""SIGTERM in each phase of the daemon's life: it ends well, and nothing is lost."""

from __future__ import annotations

import signal

import pytest

from tests.support.daemon import Machine
from tests.support.soundness import OFTEN, check_sound
from tests.support.waiting import PATIENCE_S, eventually

PHASES = {
    "starting": "queue.recover.after",
    "opening the vectors": "generation.flip.after",
    "text": "queue.complete.before",
    "embedding": "cache.keep.before",
    "writing vectors": "vectors.upsert.before",
    "marking vectors": "generation.mark.before",
    "compaction": "vectors.compact.before",
}
LONGER_THAN_IT_WAITS = 20  # seconds; a lane gets three


@pytest.mark.parametrize("phase", PHASES)
def test_sigterm_in_the_middle_ends_well_and_loses_nothing(machine: Machine, phase: str) -> None:
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    machine.env = OFTEN | {"MEMORYD_FAILPOINTS": f"{PHASES[phase]}=pause:1"}
    daemon = machine.start()
    try:
        eventually(lambda: daemon.events("failpoint"), what=f"it is {phase}")
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(PATIENCE_S) == 0, daemon.log()
    finally:
        daemon.kill()
    assert "Traceback" not in daemon.log()
    assert not machine.socket.exists()
    machine.env = {}
    with machine.daemon() as daemon:
        daemon.wait_for("lighthouse", "memory/a.md")
        check_sound(daemon)


def test_sigterm_is_not_held_up_by_work_that_does_not_end(machine: Machine) -> None:
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    machine.env = {"MEMORYD_FAILPOINTS": f"vectors.upsert.before=pause:{LONGER_THAN_IT_WAITS}"}
    daemon = machine.start()
    try:
        eventually(lambda: daemon.events("failpoint"), what="it is writing vectors")
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(LONGER_THAN_IT_WAITS) == 0, daemon.log()
    finally:
        daemon.kill()
    assert daemon.events("stopped")[0]["lanes_cut_off"] == ["lane-vectors"]
    machine.env = {}
    with machine.daemon() as daemon:
        check_sound(daemon)
