"""The daemon after a burst of work: what only the work needed leaves its memory, and its disk."""

from __future__ import annotations

from pathlib import Path

from memoryd.store.space import log_bytes
from tests.support.daemon import Daemon, Machine
from tests.support.waiting import eventually


def mapped_pages(daemon: Daemon) -> int:
    """What is in memory of files, libraries for the most part."""
    return int(Path(f"/proc/{daemon.process.pid}/statm").read_text(encoding="ascii").split()[2])


def test_code_of_lancedb_leaves_memory_once_there_is_nothing_to_write(machine: Machine) -> None:
    machine.write("memory/heron.md", "The heron stood in the reeds until dusk.\n")
    with machine.daemon() as daemon:
        daemon.settle()
        writing = mapped_pages(daemon)
        eventually(lambda: mapped_pages(daemon) < writing / 2, what=f"fewer than half of {writing} pages are mapped")
        logs = (machine.data / "ledger.db", machine.data / "embeddings.db")
        eventually(lambda: [log_bytes(path) for path in logs] == [0, 0], what="the logs are folded back")
        machine.write("memory/otter.md", "The otter sleeps on its back.\n")
        daemon.settle()
        assert daemon.found("heron in the reeds") == ["memory/heron.md"]
        assert daemon.found("otter sleeps") == ["memory/otter.md"]
