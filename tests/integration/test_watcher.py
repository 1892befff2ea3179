"""Changes seen through real inotify, and what happens where there is none."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.config import IGNORE, INCLUDE
from memoryd.daemon.ground import Ground
from memoryd.daemon.watcher import Watcher
from memoryd.jobs.workspace import Workspace, signature_of
from memoryd.store.errors import StoreFull
from tests.support.engine import Memory
from tests.support.mounts import small_disk
from tests.support.waiting import eventually


@contextmanager
def watched(memory: Memory, ground: Ground | None = None) -> Iterator[Watcher]:
    """An engine that learns of changes from its watcher alone."""
    with memory.running() as engine:
        workspace = engine.workspaces["notes"]
        watcher = Watcher(
            workspace,
            on_files=partial(engine.index_files, "notes"),
            on_rescan=partial(engine.look_at_disk, ["notes"]),
            settle_s=0.2,
            poll_s=0.2,
            check_s=0.2,
            ground=ground,
        )
        watcher.start()
        try:
            memory.settle()
            yield watcher
        finally:
            watcher.stop()


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = Memory(tmp_path)
    (memory.root / "memory").mkdir()
    return memory


def finds(memory: Memory, query: str, *paths: str) -> None:
    eventually(lambda: set(memory.found(query)) == set(paths), what=f"{query} is found in {paths}")


# -- files ---------------------------------------------------------------------------------------------------


def test_created_file_is_found(memory: Memory) -> None:
    with watched(memory) as watcher:
        assert watcher.status().mode == "inotify"
        memory.write("memory/a.md", "The lighthouse keeper.\n")
        finds(memory, "lighthouse", "memory/a.md")
        memory.write("MEMORY.md", "The night train.\n")
        finds(memory, "train", "MEMORY.md")
        assert watcher.status().last_event is not None


def test_edited_appended_and_truncated_file_is_followed(memory: Memory) -> None:
    file = memory.write("memory/a.md", "The lighthouse keeper.\n")
    with watched(memory):
        file.write_text("The night train.\n")
        finds(memory, "train", "memory/a.md")
        finds(memory, "lighthouse")
        with file.open("a") as end:
            end.write("A violin.\n")
        finds(memory, "violin", "memory/a.md")
        os.truncate(file, len("The night"))  # no file is closed by this
        finds(memory, "violin")
        finds(memory, "night", "memory/a.md")


def test_change_of_the_permissions_alone_is_noticed(memory: Memory) -> None:
    """What could not be read can be; and of what always could, nothing stays pending."""
    file = memory.write("memory/a.md", "The lighthouse keeper.\n")
    with watched(memory):
        file.chmod(0o600)
        wanted = signature_of(file.stat())
        eventually(lambda: memory.live.documents.known("notes")["memory/a.md"].signature == wanted)


def test_file_written_by_a_program_that_never_closes_it_is_found(memory: Memory) -> None:
    with watched(memory), (memory.root / "memory/log.md").open("w") as file:
        file.write("The lighthouse keeper.\n")
        file.flush()
        finds(memory, "lighthouse", "memory/log.md")
        file.write("The night train.\n")
        file.flush()
        finds(memory, "train", "memory/log.md")


def test_atomic_save_is_followed(memory: Memory) -> None:
    file = memory.write("memory/a.md", "The lighthouse keeper.\n")
    with watched(memory):
        for number in range(3):
            draft = memory.root / "memory/.a.md.tmp"
            draft.write_text(f"The night train number{number}.\n")
            draft.replace(file)
            finds(memory, f"number{number}", "memory/a.md")
        finds(memory, "lighthouse")


def test_atomic_save_from_outside_is_followed(memory: Memory, tmp_path: Path) -> None:
    file = memory.write("memory/a.md", "The lighthouse keeper.\n")
    with watched(memory):
        (tmp_path / "draft").write_text("The night train.\n")
        (tmp_path / "draft").replace(file)
        finds(memory, "train", "memory/a.md")


def test_renamed_file_is_found_under_its_new_name(memory: Memory) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    with watched(memory):
        (memory.root / "memory/a.md").rename(memory.root / "memory/b.md")
        finds(memory, "lighthouse", "memory/b.md")
        (memory.root / "memory/b.md").rename(memory.root / "memory/B.md")
        finds(memory, "lighthouse", "memory/B.md")
        (memory.root / "memory/B.md").rename(memory.root / "memory/B.txt")
        finds(memory, "lighthouse")
    assert len(memory.embedder.texts) == 1


def test_file_moved_out_and_back_in_is_followed(memory: Memory, tmp_path: Path) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    with watched(memory):
        (memory.root / "memory/a.md").rename(tmp_path / "a.md")
        finds(memory, "lighthouse")
        (tmp_path / "a.md").rename(memory.root / "memory/a.md")
        finds(memory, "lighthouse", "memory/a.md")


def test_deleted_file_is_no_longer_found(memory: Memory) -> None:
    file = memory.write("memory/a.md", "The lighthouse keeper.\n")
    with watched(memory):
        file.unlink()
        finds(memory, "lighthouse")


def test_hard_and_symbolic_links_are_found(memory: Memory) -> None:
    memory.write("drafts/a.md", "The lighthouse keeper.\n")
    memory.write("drafts/b.md", "The night train.\n")
    with watched(memory):
        (memory.root / "memory/hard.md").hardlink_to(memory.root / "drafts/a.md")
        (memory.root / "memory/soft.md").symlink_to("../drafts/b.md")
        finds(memory, "lighthouse", "memory/hard.md")
        finds(memory, "train", "memory/soft.md")


# -- folders -------------------------------------------------------------------------------------------------


def test_renamed_folder_is_followed_and_stays_watched(memory: Memory) -> None:
    memory.write("memory/one/deep/a.md", "The lighthouse keeper.\n")
    with watched(memory):
        (memory.root / "memory/one").rename(memory.root / "memory/two")
        finds(memory, "lighthouse", "memory/two/deep/a.md")
        memory.write("memory/two/deep/b.md", "The night train.\n")
        finds(memory, "train", "memory/two/deep/b.md")
    assert len(memory.embedder.texts) == 2


def test_folder_moved_in_from_outside_is_found_and_watched(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "outside/deep").mkdir(parents=True)
    (tmp_path / "outside/deep/a.md").write_text("The lighthouse keeper.\n")
    with watched(memory):
        (tmp_path / "outside").rename(memory.root / "memory/inside")
        finds(memory, "lighthouse", "memory/inside/deep/a.md")
        memory.write("memory/inside/deep/b.md", "The night train.\n")
        finds(memory, "train", "memory/inside/deep/b.md")


def test_folder_moved_out_is_forgotten(memory: Memory, tmp_path: Path) -> None:
    memory.write("memory/one/deep/a.md", "The lighthouse keeper.\n")
    with watched(memory):
        (memory.root / "memory/one").rename(tmp_path / "outside")
        finds(memory, "lighthouse")


def test_deleted_folder_is_forgotten(memory: Memory) -> None:
    for number in range(20):
        memory.write(f"memory/one/{number % 3}/{number}.md", f"The lighthouse keeper, number{number}.\n")
    with watched(memory):
        shutil.rmtree(memory.root / "memory/one")
        finds(memory, "lighthouse")


def test_tree_written_in_one_go_is_found_whole(memory: Memory) -> None:
    """A new folder is watched only a moment after it appeared; what was put into it before counts too."""
    with watched(memory):
        for number in range(40):
            memory.write(f"memory/a{number}/b/c/note.md", f"The lighthouse, number{number}x.\n")
        eventually(lambda: memory.live.documents.totals("notes", None).documents == 40)


def test_memory_folder_made_after_the_start_is_watched(memory: Memory) -> None:
    (memory.root / "memory").rmdir()
    with watched(memory):
        memory.write("memory/a.md", "The lighthouse keeper.\n")
        finds(memory, "lighthouse", "memory/a.md")
        memory.write("skills/deploy/SKILL.md", "The night train.\n")
        finds(memory, "train", "skills/deploy/SKILL.md")
        memory.write("memory/deep/b.md", "A violin.\n")
        finds(memory, "violin", "memory/deep/b.md")


def test_memory_folder_removed_and_made_again_is_watched(memory: Memory) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    with watched(memory):
        for number in range(2):
            shutil.rmtree(memory.root / "memory")
            finds(memory, "lighthouse")
            memory.write("memory/a.md", f"The lighthouse keeper{number}.\n")
            finds(memory, "lighthouse", "memory/a.md")
            memory.write("memory/a.md", f"The lighthouse edited{number}.\n")
            finds(memory, f"edited{number}", "memory/a.md")


def test_root_that_goes_away_and_comes_back_is_watched_again(memory: Memory, tmp_path: Path) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    with watched(memory) as watcher:
        memory.root.rename(tmp_path / "away")
        eventually(lambda: watcher.status().mode == "polling")
        assert memory.found("lighthouse") == ["memory/a.md"]
        (tmp_path / "away").rename(memory.root)
        eventually(lambda: watcher.status().mode == "inotify")
        memory.write("memory/b.md", "The night train.\n")
        finds(memory, "train", "memory/b.md")


def test_unmounted_root_is_noticed_and_watched_again_when_it_is_back(memory: Memory) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(memory.root)]
    unmount = ["umount", "-l", str(memory.root)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not permitted here")
    mounted = True
    try:
        memory.write("memory/a.md", "The lighthouse keeper.\n")
        with watched(memory):
            subprocess.run(unmount, check=True)
            mounted = False
            eventually(lambda: memory.live.queue.failures() != [])
            assert memory.found("lighthouse") == ["memory/a.md"]
            subprocess.run(mount, check=True)
            mounted = True
            memory.write("memory/a.md", "The lighthouse keeper.\n")
            memory.write("memory/b.md", "The night train.\n")
            finds(memory, "train", "memory/b.md")
            memory.write("memory/c.md", "A violin.\n")
            finds(memory, "violin", "memory/c.md")
            finds(memory, "lighthouse", "memory/a.md")
    finally:
        if mounted:
            subprocess.run(unmount, check=True)


SOON_S = 20.0  # long before the watcher looks by itself where the ground tells it


@pytest.fixture
def ground() -> Iterator[Ground]:
    ground = Ground()
    yield ground
    ground.stop()


@pytest.mark.parametrize("above", [0, 1, 2], ids=["the root", "its folder", "the folder above"])
def test_folder_that_is_moved_away_and_replaced_is_told_by_the_ground(
    tmp_path: Path, ground: Ground, above: int
) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    memory = Memory(tmp_path / "a/b")
    memory.data = tmp_path / "data"
    memory.configure(paths=replace(memory.config.paths, data=str(memory.data)))
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    moved = [memory.root, *memory.root.parents][above]
    with watched(memory, ground):
        for number, words in enumerate(("night train", "violin")):  # the second time it is another folder that moves
            moved.rename(tmp_path / f"away-{number}")
            memory.write("memory/a.md", f"A {words}.\n")
            query = words.split()[-1]
            eventually(lambda: memory.found(query) == ["memory/a.md"], within=SOON_S)  # noqa: B023 - asked at once


def test_mount_over_a_root_is_told_by_the_ground(memory: Memory, ground: Ground) -> None:
    memory.write("memory/a.md", "The lighthouse keeper.\n")
    with watched(memory, ground), small_disk(memory.root, 1):
        memory.write("memory/b.md", "The night train.\n")
        eventually(lambda: memory.found("train") == ["memory/b.md"], within=SOON_S)
        memory.write("memory/c.md", "A violin.\n")
        eventually(lambda: memory.found("violin") == ["memory/c.md"], within=SOON_S)


def test_watcher_that_has_ground_looks_by_itself_once_in_a_while_only(memory: Memory, ground: Ground) -> None:
    with watched(memory, ground) as watcher:
        eventually(lambda: watcher.silence_s() > 10 * 0.2, what="it has not come round for ten looks")
        memory.write("memory/b.md", "The night train.\n")
        finds(memory, "train", "memory/b.md")


def test_ground_that_is_left_and_stopped_leaves_nothing_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    ground = Ground()
    ground.follow(tmp_path, lambda: None)
    ground.leave(tmp_path)
    ground.stop()
    assert not ground.alive()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


# -- what is no change, and what is too much -------------------------------------------------------------------


class Log:
    """What a watcher says, without an engine behind it."""

    def __init__(self, root: Path, include: tuple[str, ...] = INCLUDE) -> None:
        self.files: list[str] = []
        self.rescans: list[str] = []
        self.full = False
        self.watcher = Watcher(
            Workspace("notes", root, include, IGNORE),
            on_files=self._on_files,
            on_rescan=self._on_rescan,
            settle_s=0.2,
            poll_s=0.2,
        )

    def _on_files(self, paths: list[str]) -> None:
        if self.full:
            raise StoreFull
        self.files.extend(paths)

    def _on_rescan(self, folder: str) -> None:
        self.rescans.append(folder)

    def __enter__(self) -> Log:
        self.watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.watcher.stop()

    def wait_for_marker(self, root: Path) -> None:
        """Until everything that happened before now was handed over: events keep their order."""
        marker = root / "memory/marker.md"
        marker.write_text("x")
        eventually(lambda: "memory/marker.md" in self.files)


def test_noise_and_reading_are_no_changes(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/a.md").write_text("x")
    with Log(tmp_path) as log:
        for name in (".a.md.swp", "a.md~", "b.tmp", "4913", "c.txt", ".hidden.md"):
            (tmp_path / "memory" / name).write_text("x")
            (tmp_path / "memory" / name).unlink()
        (tmp_path / "src").mkdir()
        (tmp_path / "README.md").write_text("x")
        (tmp_path / "memory/a.md").read_text()
        list((tmp_path / "memory").iterdir())
        log.wait_for_marker(tmp_path)
        assert set(log.files) == {"memory/marker.md"}
        assert log.rescans == []


def test_name_that_is_not_utf8_does_not_harm_the_watcher(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    with Log(tmp_path) as log:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/memory/\xff.md")).write_text("x")
        log.wait_for_marker(tmp_path)
        assert set(log.files) == {"memory/marker.md"}
        assert log.watcher.alive()


def test_stream_of_writes_is_coalesced(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    with Log(tmp_path) as log:
        for number in range(300):
            with (tmp_path / "memory/a.md").open("a") as file:
                file.write(f"line {number}\n")
        eventually(lambda: "memory/a.md" in log.files)
        log.wait_for_marker(tmp_path)
        assert log.files.count("memory/a.md") < 100


def test_many_folders_at_once_are_one_look_at_everything(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    with Log(tmp_path) as log:
        for number in range(200):
            (tmp_path / f"memory/{number}").mkdir()
        eventually(lambda: "" in log.rescans)
        log.wait_for_marker(tmp_path)
        assert len(log.rescans) < 100  # about ten; each more is a tenth of a second that 200 folders took


def test_change_that_could_not_be_queued_is_looked_for_later(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    with Log(tmp_path) as log:
        log.full = True
        (tmp_path / "memory/a.md").write_text("x")
        eventually(lambda: log.rescans == [""])
        assert log.watcher.alive()
        log.full = False
        log.wait_for_marker(tmp_path)


def test_lost_events_lead_to_a_look_at_everything(tmp_path: Path) -> None:
    """watchdog tells of an overflow in its log alone."""
    with Log(tmp_path) as log:
        logging.getLogger("watchdog.observers.inotify_c").warning("Inotify queue overflowed; events were lost")
        eventually(lambda: log.rescans == [""])


def test_stopped_watcher_leaves_nothing_behind(tmp_path: Path) -> None:
    with Log(tmp_path):
        pass
    threads = set(threading.enumerate())
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    with Log(tmp_path) as log:
        assert log.watcher.status().mode == "inotify"
    assert log.watcher.status().mode == "stopped"
    assert set(threading.enumerate()) <= threads
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors


# -- limits of the kernel, set for a child alone ---------------------------------------------------------------

CHILD = """
import json, os, pathlib, resource, sys, threading, time
root, limit, value = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
from memoryd.daemon.config import IGNORE, INCLUDE
from memoryd.daemon.ground import Ground
from memoryd.daemon.watcher import Watcher
from memoryd.jobs.workspace import Workspace

spare = [os.open("/dev/null", os.O_RDONLY) for _ in range(8)]
if limit == "files":  # so few descriptors that inotify gets none
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(spare) + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
elif limit:
    pathlib.Path(f"/proc/sys/user/{limit}").write_text(value)

looked = threading.Event()
watcher = Watcher(Workspace("notes", root, INCLUDE, IGNORE), on_files=lambda files: None,
                  on_rescan=lambda folder: looked.set(), settle_s=0.2, poll_s=0.2)
watcher.start()
status = watcher.status()
polled = looked.wait(20) if status.mode == "polling" else False
if limit == "files":
    for descriptor in spare:
        os.close(descriptor)
elif limit:
    pathlib.Path(f"/proc/sys/user/{limit}").write_text("1000")
deadline = time.monotonic() + 20
while watcher.status().mode != "inotify" and time.monotonic() < deadline:
    time.sleep(0.05)
result = {"mode": status.mode, "reason": status.reason, "polled": polled, "later": watcher.status().mode}
watcher.stop()
pathlib.Path(sys.argv[4]).write_text(json.dumps(result))
"""


def run_child(root: Path, limit: str, value: str) -> dict[str, Any]:
    answer = root / "answer.json"  # stdout has the log
    command = [sys.executable, "-c", CHILD, str(root), limit, value, str(answer)]
    if limit.startswith("max_"):  # these limits belong to a user namespace: a new one has its own
        unshare = ["unshare", "--user", "--map-root-user"]
        if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
            pytest.skip("user namespaces are not permitted here")
        command = unshare + command
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(answer.read_text())
    return result


@pytest.mark.parametrize(
    ("limit", "value"), [("files", ""), ("max_inotify_instances", "0"), ("max_inotify_watches", "10")]
)
def test_kernel_that_gives_no_more_watches_is_polled_until_it_does(tmp_path: Path, limit: str, value: str) -> None:
    for number in range(30):
        (tmp_path / f"memory/{number}").mkdir(parents=True)
    result = run_child(tmp_path, limit, value)
    assert result["mode"] == "polling"
    assert result["polled"]
    assert result["reason"]
    assert result["later"] == "inotify"
