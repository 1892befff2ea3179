"""A process that a signal ends leaves where it was; the next one says so, once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

DIE = (
    "import os, signal, sys; from memoryd.daemon.crash_report import keep_crash_reports\n"
    "def work(): os.kill(os.getpid(), signal.SIGSEGV)\n"
    "keep_crash_reports(dict(STATE_DIRECTORY=sys.argv[1]))\n"
    "if len(sys.argv) > 2: work()\n"
)


def run(folder: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", DIE, folder, *words], capture_output=True, text=True, check=False)


def test_crash_is_told_by_the_next_start_and_kept(tmp_path: Path) -> None:
    died = run(str(tmp_path), "die")
    assert died.returncode == -signal.SIGSEGV
    assert "in work" in (tmp_path / "crash.log").read_text()
    assert (tmp_path / "crash.log").stat().st_mode & 0o777 == 0o600
    after = run(str(tmp_path))
    assert "crashed_last_time" in after.stdout + after.stderr
    assert "in work" in (tmp_path / "crash.last.log").read_text()
    assert (tmp_path / "crash.log").read_text() == ""
    again = run(str(tmp_path))
    assert "crashed_last_time" not in again.stdout + again.stderr


@pytest.mark.parametrize("folder", ["", "/nonexistent/state"])
def test_without_a_folder_of_its_own_the_report_goes_to_stderr(folder: str) -> None:
    died = run(folder, "die")
    assert (died.returncode, "in work" in died.stderr) == (-signal.SIGSEGV, True)
