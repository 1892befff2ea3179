"""Files that are not what they were: folders in their place, links in a circle, disks that go, rights that go."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from tests.support.daemon import Machine
from tests.support.engine import Memory
from tests.support.mounts import mount, unmount
from tests.support.privileges import without_privileges
from tests.support.soundness import check_sound
from tests.support.waiting import eventually


def test_file_that_becomes_a_folder_and_a_file_again_is_followed(machine: Machine) -> None:
    note = machine.write("memory/a.md", "The lighthouse keeper.\n")
    with machine.daemon() as daemon:
        daemon.wait_for("lighthouse", "memory/a.md")
        note.unlink()
        machine.write("memory/a.md/inside.md", "A violin.\n")
        daemon.wait_for("violin", "memory/a.md/inside.md")
        daemon.wait_for("lighthouse")
        shutil.rmtree(note)
        machine.write("memory/a.md", "The lighthouse is back.\n")
        daemon.wait_for("lighthouse", "memory/a.md")
        daemon.wait_for("violin")
        check_sound(daemon)


def test_links_in_a_circle_and_out_of_the_root_are_passed_over_and_named(machine: Machine) -> None:
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    outside = machine.folder / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("A secret lighthouse.\n")
    with machine.daemon() as daemon:
        (machine.root / "memory/circle").symlink_to(machine.root / "memory", target_is_directory=True)
        (machine.root / "memory/self.md").symlink_to(machine.root / "memory/self.md")
        (machine.root / "memory/out").symlink_to(outside, target_is_directory=True)
        (machine.root / "memory/out.md").symlink_to(outside / "secret.md")
        machine.write("memory/b.md", "A violin.\n")
        daemon.wait_for("violin", "memory/b.md")
        daemon.settle()
        assert daemon.found("lighthouse") == ["memory/a.md"]
        (workspace,) = daemon.call("status")["workspaces"]
        assert {"memory/out", "memory/out.md"} <= {skipped["path"] for skipped in workspace["skipped"]}
        assert daemon.call("verify")["drift"] == []


def test_workspace_that_is_unmounted_is_kept_and_followed_when_it_is_back(machine: Machine) -> None:
    disk = machine.folder / "disk"
    (disk / "memory").mkdir(parents=True)
    (disk / "memory/a.md").write_text("The lighthouse keeper.\n")
    again = machine.folder / "again"
    again.mkdir()
    for place in (machine.root, again):
        mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place))  # another device than what it hides
        shutil.copytree(disk, place, dirs_exist_ok=True)
    mounted = True
    try:
        with machine.daemon() as daemon:
            daemon.wait_for("lighthouse", "memory/a.md")
            daemon.settle()
            unmount(machine.root)
            mounted = False
            assert daemon.call("index", wait=False)
            eventually(lambda: "reconcile_failing" in daemon.health(), what="status tells of it")
            assert daemon.found("lighthouse") == ["memory/a.md"]
            mount("--bind", str(again), str(machine.root))  # with its notes: an empty disk is one without them
            mounted = True
            machine.write("memory/b.md", "A violin.\n")
            daemon.wait_for("violin", "memory/b.md")
            daemon.wait_for("lighthouse", "memory/a.md")
            check_sound(daemon)
            forgotten = [event for event in daemon.events("job_done") if event.get("outcome") == "forgotten"]
            assert forgotten == []
    finally:
        if mounted:
            unmount(machine.root)
        unmount(again)


def test_rights_that_are_taken_away_forget_nothing_and_are_followed_when_they_return(machine: Machine) -> None:
    machine.through = without_privileges()
    note = machine.write("memory/a.md", "The lighthouse keeper.\n")
    inside = machine.write("memory/in/b.md", "A violin.\n")
    with machine.daemon() as daemon:
        daemon.settle()
        inside.parent.chmod(0)
        note.chmod(0)
        beside = machine.write("memory/in.tmp", "The lighthouse is dark.\n")
        beside.chmod(0)
        beside.replace(note)
        eventually(lambda: "files_failed" in daemon.health(), what="status tells of it")
        daemon.call("index", wait=False)
        assert daemon.found("lighthouse keeper") == ["memory/a.md"]  # as it was when it could be read
        assert daemon.found("violin") == ["memory/in/b.md"]
        inside.parent.chmod(0o700)
        note.chmod(0o600)
        daemon.wait_for("lighthouse dark", "memory/a.md")
        assert daemon.found("violin") == ["memory/in/b.md"]
        check_sound(daemon)


def test_events_in_any_order_and_number_end_with_what_is_on_disk(tmp_path: Path) -> None:
    """An event says where to look, not what is there: late, early, twice or for nothing, it does no harm."""
    chance = random.Random(4)
    memory = Memory(tmp_path)
    paths = [f"memory/{number}.md" for number in range(12)]
    with memory.running() as engine:
        memory.settle()
        for _ in range(6):
            events: list[str] = []
            for _ in range(15):
                path = chance.choice(paths)
                if chance.random() < 0.6:
                    memory.write(path, f"Note {chance.random()}.\n")
                else:
                    (memory.root / path).unlink(missing_ok=True)
                events += [path] * chance.randint(1, 3)
            chance.shuffle(events)
            for path in events:
                engine.index_files("notes", [path])
            memory.settle()
            on_disk = {path: (memory.root / path).read_text() for path in paths if (memory.root / path).exists()}
            with engine.database.read() as sql:
                rows = sql.execute("SELECT path, text FROM passages JOIN documents ON documents.id = document_id")
                assert dict(rows.fetchall()) == on_disk
