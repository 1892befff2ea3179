"""What the doctor sees, gathered from real files, processes and limits."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from memoryd.daemon.config import Config, Embedder, Locations
from memoryd.daemon.doctor.folders import check_folder, gather_folder, read_mounts
from memoryd.daemon.doctor.inotify import gather_inotify
from memoryd.daemon.doctor.machine import check_processor, check_sqlite, gather_machine
from memoryd.daemon.doctor.model import check_model, gather_model
from memoryd.daemon.doctor.notes import NotesFacts, check_dates, check_passed_over, check_workspace, gather_notes
from memoryd.daemon.doctor.process import check_daemon, check_open_files, check_version, gather_process
from memoryd.daemon.doctor.units import check_unit, gather_units
from memoryd.daemon.paths import find_paths
from memoryd.jobs.workspace import Workspace
from tests.support.privileges import public_folder, unprivileged

INCLUDE = ("MEMORY.md", "memory/**/*.md")


def look(root: Path, max_bytes: int = 10_000) -> NotesFacts:
    return gather_notes(Workspace("notes", root, INCLUDE), max_bytes, read_mounts())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "notes/memory/deep/er").mkdir(parents=True)
    (tmp_path / "notes/memory/a.md").write_text("A lighthouse in the fog.\n")
    return tmp_path / "notes"


# -- notes ------------------------------------------------------------------------------------------------


def test_sound_notes_have_nothing_to_tell(root: Path) -> None:
    facts = look(root)
    assert (facts.files, facts.unavailable, facts.ignores_case) == (1, None, False)
    assert {check(facts).state for check in (check_workspace, check_passed_over, check_dates)} == {"ok"}
    assert facts.file_system


def test_links_out_large_and_binary_files_are_named(root: Path) -> None:
    (root / "memory/out.md").symlink_to("/etc/passwd")
    (root / "memory/large.md").write_text("x" * 20_000)
    (root / "memory/binary.md").write_bytes(bytes(range(256)) * 8)
    assert look(root).passed_over == {
        "memory/out.md": "a link to outside of the workspace",
        "memory/large.md": "20,000 bytes, more than index.max_file_bytes",
        "memory/binary.md": "not text",
    }


def test_dates_in_the_future_are_named(root: Path) -> None:
    soon, far = date.today() + timedelta(days=1), date.today() + timedelta(days=400)
    (root / f"memory/{soon}.md").write_text("Tomorrow.")
    (root / f"memory/{far}.md").write_text("In a year.")
    (root / "memory/stated.md").write_text(f"---\ndate: {far}\n---\nSo it says.")
    assert look(root).dated_ahead == {f"memory/{far}.md": far, "memory/stated.md": far}
    os.utime(root / "memory/a.md", (time.time() + 86_400,) * 2)
    assert look(root).written_ahead == ["memory/a.md"]


def test_the_languages_of_notes_are_counted(root: Path) -> None:
    assert look(root).share == 0
    (root / "memory/zh.md").write_text("今天我们把所有的胶圈都换成了新的型号。" * 10)
    assert look(root).share > 0.8


def test_what_cannot_be_read_is_named() -> None:
    with public_folder() as root:
        (root / "memory").mkdir()
        (root / "memory").chmod(0o755)
        (root / "MEMORY.md").write_text("Mine.")
        (root / "MEMORY.md").chmod(0o600 if os.geteuid() == 0 else 0)
        with unprivileged():
            facts = look(root)
    assert list(facts.unreadable) == ["MEMORY.md"]
    assert check_workspace(facts).state == "problem"


def test_a_folder_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    facts = look(tmp_path / "gone")
    assert facts.unavailable
    assert check_workspace(facts).state == "problem"


def test_two_names_of_one_file_are_no_sign_that_case_is_ignored(root: Path) -> None:
    os.link(root / "memory/a.md", root / "memory/A.MD")
    assert not look(root).ignores_case


def test_a_file_system_that_ignores_case_is_seen(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "casefold", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip(
            "no file system that ignores case can be mounted here: not root, or a kernel without CONFIG_UNICODE"
        )
    try:
        (disk / "memory").mkdir()
        subprocess.run(["chattr", "+F", disk / "memory"], check=True)
        (disk / "memory/a.md").write_text("A lighthouse.")
        assert look(disk).ignores_case
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


# -- folders ----------------------------------------------------------------------------------------------


def test_folders_are_judged_as_they_are(tmp_path: Path) -> None:
    def state(path: Path) -> str:
        return check_folder("data folder", "paths.data", gather_folder(path), os.geteuid()).state

    private, open_one, file = tmp_path / "private", tmp_path / "open", tmp_path / "file"
    private.mkdir(mode=0o700)
    open_one.mkdir()
    open_one.chmod(0o755)
    file.write_text("")
    (tmp_path / "link").symlink_to(private)
    assert state(private) == state(private / "not/yet/there") == "ok"
    assert state(open_one) == "warning"
    assert state(file) == state(file / "below") == state(tmp_path / "link") == "problem"


def test_a_folder_of_another_user_is_a_problem() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    with public_folder() as folder, unprivileged():
        facts = gather_folder(folder)
        assert not facts.writable
        assert check_folder("data folder", "paths.data", facts, os.geteuid()).state == "problem"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=20", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not permitted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_room_and_type_are_those_of_the_disk_that_a_folder_is_on(small_disk: Path) -> None:
    facts = gather_folder(small_disk / "memoryd")
    assert facts.file_system == "tmpfs"
    assert facts.free_bytes <= 1 << 20
    assert facts.free_inodes is not None
    assert facts.free_inodes < 20


# -- the machine ------------------------------------------------------------------------------------------


def test_folders_and_the_watches_of_other_programs_are_counted(root: Path) -> None:
    workspace = Workspace("notes", root, INCLUDE)
    before = gather_inotify([workspace], None)
    assert before.folders == 1 + 3  # the root, and memory with the two below it
    libc = ctypes.CDLL(None, use_errno=True)
    instance = libc.inotify_init1(os.O_CLOEXEC)
    assert instance >= 0
    try:
        for folder in (root, root / "memory", root / "memory/deep"):
            assert libc.inotify_add_watch(instance, os.fsencode(folder), 0x100) >= 0
        mine = gather_inotify([], None)
        without_me = gather_inotify([], os.getpid())
    finally:
        os.close(instance)
    # Other programs on this machine come and go; this one's share is exact.
    assert mine.watches - without_me.watches >= 3
    assert mine.instances - without_me.instances >= 1


def test_this_machine_can_run_what_was_built_for_it() -> None:
    facts = gather_machine()
    assert check_sqlite(facts).state == "ok"
    assert check_processor(facts).state == "ok", facts
    assert facts.llama
    assert "CPU" in facts.llama


# -- the model --------------------------------------------------------------------------------------------


def test_the_installed_model_is_whole(default_model: Path, models_dir: Path) -> None:
    finding = check_model(gather_model(Config(), models_dir))
    assert finding.state == "ok"
    assert "384 dimensions" in finding.message


def test_one_changed_byte_is_noticed(default_model: Path, tmp_path: Path) -> None:
    shutil.copytree(default_model.parent, tmp_path / default_model.parent.name)
    copy = tmp_path / default_model.parent.name / default_model.name
    with copy.open("r+b") as file:
        file.seek(-100, os.SEEK_END)
        byte = file.read(1)
        file.seek(-100, os.SEEK_END)
        file.write(bytes([byte[0] ^ 1]))
    finding = check_model(gather_model(Config(), tmp_path))
    assert (finding.state, "checksum" in finding.message) == ("problem", True)


@pytest.mark.parametrize("content", [b"", b"GGUF but not really", b"\0" * 1000])
def test_a_file_that_is_no_model_is_a_problem(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.gguf").write_bytes(content)
    config = Config(embedder=Embedder(model=str(tmp_path / "m.gguf")))
    finding = check_model(gather_model(config, tmp_path))
    assert finding.state == "problem"
    assert finding.fix


def test_a_model_of_another_kind_is_a_problem(small_llm: Path, tmp_path: Path) -> None:
    finding = check_model(gather_model(Config(embedder=Embedder(model=str(small_llm))), tmp_path))
    assert (finding.state, "makes no embeddings" in finding.message) == ("problem", True)


def test_a_model_that_does_not_exist_is_a_problem(tmp_path: Path) -> None:
    finding = check_model(gather_model(Config(embedder=Embedder(model="no-such-model")), tmp_path))
    assert finding.state == "problem"
    assert "no-such-model" in finding.message


def test_a_missing_model_is_fetched_unless_that_is_off(tmp_path: Path) -> None:
    assert check_model(gather_model(Config(), tmp_path)).state == "warning"
    off = Config(embedder=Embedder(auto_install=False))
    assert check_model(gather_model(off, tmp_path)).state == "problem"


# -- the daemon -------------------------------------------------------------------------------------------


class _OldDaemon(socketserver.StreamRequestHandler):
    """Speaks as a daemon of another version: it knows less."""

    def handle(self) -> None:
        request = json.loads(self.rfile.readline())
        status = {"version": "0.0.1", "pid": os.getpid(), "health": {"state": "ok", "reasons": []}}
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": status}
        self.wfile.write(json.dumps(answer).encode() + b"\n")


def test_a_daemon_of_another_version_is_told(tmp_path: Path) -> None:
    path = tmp_path / "s"
    config = Config(paths=Locations(data=str(tmp_path / "data"), socket=str(path)))
    with socketserver.UnixStreamServer(str(path), _OldDaemon) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        facts = gather_process(find_paths(config, {"HOME": str(tmp_path)}))
        thread.join()
    assert check_daemon(facts).state == "ok"
    assert check_version(facts).state == "problem"
    assert check_open_files(facts, config).state == "ok"


# -- units ------------------------------------------------------------------------------------------------


def test_installed_units_are_compared_with_the_packaged_ones(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    assert {check_unit(unit).state for unit in gather_units(environ)} == {"ok"}  # none is installed
    folder = tmp_path / ".config/systemd/user"
    folder.mkdir(parents=True)
    packaged = next(unit.packaged for unit in gather_units(environ) if unit.name == "memoryd.service")
    assert packaged
    program = tmp_path / "bin/memoryd"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    lines = [f"ExecStart={program} run" if line.startswith("ExecStart=") else line for line in packaged.splitlines()]
    installed = folder / "memoryd.service"

    def service() -> str:
        return check_unit(next(unit for unit in gather_units(environ) if unit.name == "memoryd.service")).state

    installed.write_text("\n".join(lines))
    assert service() == "ok"
    installed.write_text("\n".join([*lines, "[Service]", "Nice=19"]))
    assert service() == "warning"
    program.unlink()
    assert service() == "problem"
