"""Events that the kernel drops: what they would have told is found by looking."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.support.daemon import Machine

QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")


def test_note_saved_while_the_kernels_queue_overflowed_is_found(machine: Machine) -> None:
    """A daemon that does not get to run for a while cannot empty the queue; what comes then is lost."""
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    with machine.daemon() as daemon:
        daemon.wait_for("lighthouse", "memory/a.md")
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            noise = machine.root / "memory/noise.tmp"
            for _ in range(int(QUEUE.read_text()) // 2):  # each made, closed and deleted
                noise.touch()
                noise.unlink()
            machine.write("memory/b.md", "A violin.\n")
            machine.write("memory/deep/c.md", "A cello.\n")
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        daemon.wait_for("violin", "memory/b.md")
        daemon.wait_for("cello", "memory/deep/c.md")
        assert "overflowed" in daemon.log()
        machine.write("memory/deep/d.md", "A piano.\n")
        daemon.wait_for("piano", "memory/deep/d.md")
