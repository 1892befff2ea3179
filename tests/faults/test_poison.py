"""A file that memoryd dies of: it is set aside, named, and the rest is served."""

from __future__ import annotations

from tests.support.daemon import Daemon, Machine
from tests.support.soundness import check_sound
from tests.support.waiting import eventually

MOST_STARTS = 12  # a service manager that restarts it; it needs five


def run_until_it_lives(machine: Machine) -> Daemon:
    """Start it again and again, as a service manager does, until it stays alive with nothing left to do."""
    for _ in range(MOST_STARTS):
        daemon = machine.start()
        eventually(lambda daemon=daemon: is_dead(daemon) or is_done(daemon), what="it died or has done its work")
        if not is_dead(daemon):
            return daemon
    raise AssertionError(f"it died {MOST_STARTS} times")


def is_dead(daemon: Daemon) -> bool:
    return daemon.process.poll() is not None


def is_done(daemon: Daemon) -> bool:
    try:
        return bool(daemon.call("status", brief=True)["current"])
    except Exception:  # it is starting, or dies while it is asked
        return False


def test_job_that_kills_the_process_each_time_is_set_aside_and_the_daemon_lives(machine: Machine) -> None:
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    machine.env = {"MEMORYD_FAILPOINTS": "vectors.upsert.before=kill"}
    daemon = run_until_it_lives(machine)
    try:
        assert daemon.found("lighthouse") == ["memory/a.md"]
        (workspace,) = daemon.call("status")["workspaces"]
        (failed,) = workspace["failed"]
        assert failed["path"] == "memory/a.md"
        assert failed["parked"]
        assert "died 5 times" in failed["reason"]
        assert failed["hint"]
        assert "files_failed" in daemon.health()
    finally:
        daemon.kill()
    # The fault is mended, and a person says so.
    machine.env = {}
    with machine.daemon() as daemon:
        assert daemon.call("index", force=True)
        check_sound(daemon)


def test_file_that_kills_the_process_is_left_until_it_changes(machine: Machine) -> None:
    """The look at the disk finds it at each start; only another content is a reason to try again."""
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    with machine.daemon() as daemon:
        daemon.settle()
    machine.write("memory/b.md", "A violin.\n")
    machine.env = {"MEMORYD_FAILPOINTS": "document.replace.before=kill"}
    daemon = run_until_it_lives(machine)
    try:
        assert daemon.found("lighthouse") == ["memory/a.md"]
        (workspace,) = daemon.call("status")["workspaces"]
        assert {failed["path"] for failed in workspace["failed"]} == {"memory/b.md"}
    finally:
        daemon.kill()
    daemon = machine.start()  # the fault is still there: it is left alone
    try:
        eventually(lambda: is_dead(daemon) or is_done(daemon))
        assert not is_dead(daemon)
    finally:
        daemon.kill()
    machine.env = {}
    with machine.daemon() as daemon:
        machine.write("memory/b.md", "A violin, tuned.\n")
        daemon.wait_for("violin tuned", "memory/b.md")
        check_sound(daemon)
