"""The daemon killed, and failing, at each commit boundary by name."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.store.failpoints import POINTS
from tests.faults.test_lives import AFTER_A_COMMIT, OF_A_LIFE
from tests.support.daemon import Daemon, Machine, make_machine
from tests.support.soundness import OFTEN, check_sound, tidy
from tests.support.waiting import eventually

ONCE_EVER = ("ledger.migrate", "vectors.create")  # boundaries of an index that is being made
AT_EACH_START = (*ONCE_EVER, "queue.recover", "generation.flip", "generation.serve")
ELSEWHERE = (  # boundaries of other programs than the daemon
    "model.",  # tests/integration/models/test_models_killed.py
    "ingest.",  # tests/e2e/test_ingest*.py
    "facts.",
    "transcript.",  # tests/integration/test_sessions*.py
    "config.",  # test_written_files.py
    "unit.",
)
REFUSING = ("ledger.migrate", "ledger.refold", "cache.create", "queue.recover")  # without them nothing can be served
WAITING = (  # words are served
    "vectors.create",
    "generation.register",
    "generation.flip",
    "generation.serve",
    "generation.retire",
)
FAILING = {  # boundaries that are reached only after something else has failed
    "queue.settle.before": "vectors.upsert.before=error@1-1",
    "queue.settle.after": "cache.keep.before=bug@1-2",  # the batch, and then the first alone: it is parked
}
ALSO_AFTER = (  # where a library may fail though what it was asked for is done
    "cache.keep.after",
    "vectors.upsert.after",
    "vectors.delete.after",
    "vectors.compact.after",
)
OF_THE_DAEMON = [name for name in POINTS if not name.startswith((*ELSEWHERE, *OF_A_LIFE))]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, default_model: Path, models_dir: Path) -> Iterator[Machine]:
    """One machine for all points, with an index that the one before has left, ready for changes."""
    with make_machine(tmp_path_factory.mktemp("points"), models_dir) as machine:
        prepare(machine)
        with machine.daemon() as daemon:
            daemon.settle()
        yield machine


def change_everything(machine: Machine, name: str) -> None:
    """One change of each kind that reaches a boundary: a new note, another text, one that goes."""
    machine.write(f"memory/{name}.md", f"The lighthouse keeper of {name}.\n")
    machine.write("memory/changing.md", f"A violin for {name}.\n")
    (machine.root / "memory/going.md").unlink(missing_ok=True)


def prepare(machine: Machine) -> None:
    for note in (machine.root / "memory").glob("*.md"):
        note.unlink()
    machine.write("memory/going.md", "A harbour that goes.\n")
    machine.write("memory/staying.md", "The meadow stays.\n")


def check_after(machine: Machine, daemon: Daemon) -> None:
    proof = check_sound(daemon)
    on_disk = sorted(path.relative_to(machine.root).as_posix() for path in machine.root.rglob("*.md"))
    assert proof["documents"] == len(on_disk)
    lighthouse = [path for path in on_disk if path not in ("memory/changing.md", "memory/staying.md")]
    assert sorted(daemon.found("lighthouse")) == lighthouse
    assert daemon.found("meadow") == ["memory/staying.md"]
    assert daemon.found("harbour") == []


@pytest.mark.timeout(600)  # a daemon for each boundary
@pytest.mark.parametrize("store", sorted({name.partition(".")[0] for name in OF_THE_DAEMON}))
def test_killed_at_each_boundary_of_a_store_it_comes_back_sound(shared: Machine, store: str) -> None:
    go = shared.folder / "go"  # it is killed once this file exists, and works as ever before
    killed = ""
    for point in [name for name in OF_THE_DAEMON if name.startswith(f"{store}.")]:
        go.unlink(missing_ok=True)
        armed = [f"{point}=kill?{go}", *([f"{FAILING[point]}?{go}"] if point in FAILING else [])]
        shared.env = OFTEN | {"MEMORYD_FAILPOINTS": ",".join(armed)}
        if point.startswith(ONCE_EVER):
            shutil.rmtree(shared.data)
        if point.startswith(AT_EACH_START):
            go.touch()
        victim = shared.start()
        try:
            if not go.exists():
                victim.wait_until_it_answers()
                if killed:  # there, the last time: this is the daemon that comes back from it
                    check_after(shared, victim)
                prepare(shared)
                victim.settle()
                go.touch()
            change_everything(shared, point)
            eventually(lambda victim=victim: victim.process.poll() is not None, what=f"{point} was reached")
            assert victim.process.returncode == -9, victim.log()
        finally:
            victim.kill()
        assert f'"point": "{point}"' in victim.log()
        assert "Traceback" not in victim.log() or point in FAILING, victim.log()
        killed = point
        if point.startswith(AT_EACH_START):
            come_back(shared)
            killed = ""
    if killed:
        come_back(shared)


def come_back(machine: Machine) -> None:
    machine.env = {}
    daemon = machine.start()
    try:
        daemon.wait_until_it_answers()
        check_after(machine, daemon)
        prepare(machine)
        daemon.settle()
        assert "Traceback" not in daemon.log()
    finally:
        daemon.kill()  # stopping well is another test's matter


@pytest.mark.timeout(300)  # a job that meets six of them one after the other waits for 90 s in all
@pytest.mark.parametrize("action", ["error", "full"])
def test_every_boundary_failing_once_loses_nothing(machine: Machine, action: str) -> None:
    """Each boundary raises what its library would, a different one each time; each is tried again."""
    prepare(machine)
    with machine.daemon() as daemon:
        daemon.settle()
    armed = [f"{name}={action}@1-1" for name in OF_THE_DAEMON if name.endswith(".before") or name in ALSO_AFTER]
    armed = [part for part in armed if not part.startswith(("ledger.commit", *REFUSING, *WAITING))]
    armed += [f"ledger.commit.before={action}@30-30", f"ledger.commit.after={action}@40-40"]
    machine.env = OFTEN | {"MEMORYD_FAILPOINTS": ",".join(armed)}
    with machine.daemon() as daemon:
        for number in range(3):
            change_everything(machine, f"{action}{number}")
            daemon.wait_for("lighthouse", *(f"memory/{action}{earlier}.md" for earlier in range(number + 1)))
        eventually(lambda: not daemon.health(), what="all is well again")
        tidy(daemon)
        eventually(lambda: not daemon.health() and not daemon.call("status")["queue"]["depth"], 200, "nothing is left")
        check_after(machine, daemon)
        failed = {event["point"] for event in daemon.events("failpoint")}
        assert {"vectors.upsert.before", "generation.mark.before", "cache.keep.before"} <= failed
        assert {"vectors.compact.before", "document.replace.before", "queue.settle.before"} <= failed


def test_start_that_fails_at_a_boundary_is_refused_with_the_remedy_and_the_next_succeeds(machine: Machine) -> None:
    prepare(machine)
    points = [name for name in POINTS if name.startswith(REFUSING) and name not in AFTER_A_COMMIT]
    for point, action in zip(points, itertools.cycle(("error", "full")), strict=False):
        done = machine.run("run", MEMORYD_FAILPOINTS=f"{point}={action}")
        assert done.returncode == 1, f"{point}: {done.stderr}"
        assert f'"point": "{point}"' in done.stderr
        assert "→" in done.stderr
        assert "Traceback" not in done.stderr
    with machine.daemon() as daemon:
        check_sound(daemon)
        assert daemon.found("harbour") == ["memory/going.md"]


def test_vectors_that_cannot_be_brought_up_leave_words_and_come_up_by_themselves(machine: Machine) -> None:
    prepare(machine)
    points = [name for name in POINTS if name.startswith(WAITING) and name not in AFTER_A_COMMIT]
    armed = ",".join(f"{point}={'full' if 'flip' in point else 'error'}@1-1" for point in points)
    machine.env = {"MEMORYD_FAILPOINTS": armed, "MEMORYD_SCHEDULE__RETRY_MINUTES": "0.01"}
    with machine.daemon() as daemon:
        daemon.wait_for("harbour", "memory/going.md")
        eventually(lambda: daemon.call("status", brief=True)["current"], what="the index is current")
        check_sound(daemon)
        assert {event["point"] for event in daemon.events("failpoint")} == set(points)
        told = [event["code"] for event in daemon.events("semantics_failed")]
        assert (told.count("store_full"), told.count("store_unavailable")) == (1, len(points) - 1)


def test_misspelt_point_is_refused(machine: Machine) -> None:
    done = machine.run("run", MEMORYD_FAILPOINTS="ledger.comit=kill")
    assert done.returncode == 2
    assert "names no fail point" in done.stderr
