"""What the doctor gathers where it may not look, and before a daemon runs."""

from __future__ import annotations

import resource
from pathlib import Path

from memoryd.daemon.config import Config
from memoryd.daemon.doctor.folders import check_folder, gather_folder
from memoryd.daemon.doctor.process import check_open_files, gather_process
from memoryd.daemon.paths import find_paths
from tests.support.privileges import public_folder, unprivileged


def test_folder_behind_a_closed_door_is_a_finding_not_a_crash() -> None:
    with public_folder() as folder:
        (folder / "closed/data").mkdir(parents=True)
        (folder / "closed").chmod(0o000)
        try:
            with unprivileged():
                found = check_folder("data folder", "paths.data", gather_folder(folder / "closed/data"), 0)
        finally:
            (folder / "closed").chmod(0o700)
    assert (found.state, "cannot be written" in found.message) == ("problem", True)


def test_soft_limit_of_the_shell_is_no_complaint_for_the_daemon_raises_its_own(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
    try:
        paths = find_paths(Config(), {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
        facts = gather_process(paths)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    expected = "ok" if hard == resource.RLIM_INFINITY or hard >= 4608 else "warning"
    assert check_open_files(facts, Config()).state == expected
